"""Firefox as the laboratory's client."""

from firstflight.engines.clients.browser import Browser


class Firefox(Browser):
    """Loads pages in Firefox."""

    driver = "firstflight.engines.clients.firefox.drive"
