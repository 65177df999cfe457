"""The programs that load pages. One module per client."""

from firstflight.engines.clients.versions import Client, client_versions, installed_clients

__all__ = ["Client", "client_versions", "installed_clients"]
