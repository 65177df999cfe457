"""curl: every URL of the page at once, six at a time; it discovers nothing."""

from firstflight.engines.clients.command import Command
from firstflight.engines.lab import CA_FILE
from firstflight.pages import Page

_OPTIONS = (
    "--disable",  # nothing of the user's; must stand first
    "--silent",
    "--show-error",
    # A page is no reason to read a file or to speak another protocol.
    "--proto",
    "=http,https",
    "--proto-redir",
    "=http,https",
    "--globoff",
    "--path-as-is",
    # It would first wait whether a connection can carry several transfers, as those of HTTP/2 can.
    "--http1.1",
    "--cacert",
    CA_FILE,
    "--parallel",
    "--parallel-max",
    "6",
    "--config",
    "-",
)


_CLASSIC = ("--curves", "X25519:P-256:P-384")
"""OpenSSL offers X25519MLKEM768 by itself from version 3.5 on."""


def command(program: str, page: Page, post_quantum: bool) -> Command:
    """Fetches every GET of `page`, in the page's order, keeping nothing.

    Args:
        program: Path of curl.
        page: The page.
        post_quantum: Whether its TLS may offer X25519MLKEM768.
    """
    urls = (resource.url for resource in page.resources if resource.method == "GET")
    groups = () if post_quantum else _CLASSIC
    return Command((program, *_OPTIONS, *groups), input="".join(map(_entry, urls)))


def _entry(url: str) -> str:
    """One transfer of a config file (curl(1), --config), whose options end with their line."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"{url!r}: no URL that a page can hold")
    escaped = url.replace("\\", "\\\\").replace('"', '\\"')
    return f'url = "{escaped}"\noutput = "/dev/null"\n'
