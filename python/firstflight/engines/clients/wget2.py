"""wget2: the document, and what HTML and style sheets name; it runs no scripts."""

from firstflight.engines.clients.command import Command
from firstflight.engines.lab import CA_FILE
from firstflight.pages import Page

_OPTIONS = (
    "--no-config",  # nothing of the user's
    "--no-netrc",
    "--no-hsts",
    "--no-ocsp",
    "--no-robots",
    "--no-tcp-fastopen",  # that is the preload's part, in every mode alike
    f"--ca-certificate={CA_FILE}",
    "--page-requisites",
    "--span-hosts",
    "--tries=1",
    "--no-verbose",
    "--output-document=/dev/null",
)
_SERVER_SAID_ERROR = 8
"""Exit code of wget2 when a response is an error, as a recorded 404 is."""


_CLASSIC = "--secure-protocol=NORMAL:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1"
"""GnuTLS offers X25519MLKEM768 by itself from version 3.8.8 on, where it was built with it."""


def command(program: str, page: Page, post_quantum: bool) -> Command:
    """Loads `page` as `wget2 --page-requisites` does, keeping nothing.

    Args:
        program: Path of wget2.
        page: The page.
        post_quantum: Whether its TLS may offer X25519MLKEM768.
    """
    groups = () if post_quantum else (_CLASSIC,)
    return Command((program, *_OPTIONS, *groups, "--", page.url), accepts=(0, _SERVER_SAID_ERROR))
