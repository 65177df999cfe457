"""TCP Fast Open and TLS as no stack of the laboratory has them: what only the simulator does."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WhatIf:
    """The differences; by default there are none. docs/what-if.md says what each means.

    Attributes:
        negative_cache: The client remembers where Fast Open failed: in this `load`, or on an earlier `visit`.
        one_time_cookies: A cookie is good for one connection, and the client keeps so many of a host.
        client_cookies: A cookie is bound to a secret of the client's, not to its address.
        unproven_bytes: A server answers SYNs that prove nothing with so many bytes at most.
        unproven_ms: And so long after the SYN at most, ms; None: until the handshake ends.
        syn_payload: Segments of data that may leave with the SYN, its own among them.
        early_data: Sessions of TLS are resumed, and so many bytes may go with the ClientHello; 0: none.
    """

    negative_cache: str | None = None
    one_time_cookies: int | None = None
    client_cookies: bool = False
    unproven_bytes: int | None = None
    unproven_ms: int | None = None
    syn_payload: int = 1
    early_data: int | None = None

    @property
    def names(self) -> list[str]:
        """What is otherwise, as a plan has it: one text each."""
        found = []
        if self.negative_cache:
            found.append("negative-cache" + ("=visit" if self.negative_cache == "visit" else ""))
        if self.one_time_cookies:
            found.append(f"one-time-cookies={self.one_time_cookies}")
        if self.client_cookies:
            found.append("client-cookies")
        if self.unproven_bytes is not None:
            limit = "" if self.unproven_ms is None else f":{self.unproven_ms}"
            found.append(f"unproven={self.unproven_bytes}{limit}")
        if self.syn_payload > 1:
            found.append(f"syn-payload={self.syn_payload}")
        if self.early_data is not None:
            found.append(f"early-data={self.early_data}")
        return found

    def __str__(self) -> str:
        """As a plan has it: `negative-cache,syn-payload=4`; `off` where nothing is otherwise."""
        return ",".join(self.names) or "off"

    def to_json(self) -> dict[str, Any]:
        """The form in which the simulator takes it."""
        unproven = None
        if self.unproven_bytes is not None:
            unproven = {"bytes": self.unproven_bytes, "ms": self.unproven_ms}
        return {
            "negative_cache": self.negative_cache,
            "one_time_cookies": self.one_time_cookies,
            "client_cookies": self.client_cookies,
            "unproven": unproven,
            "more_syn_segments": self.syn_payload - 1,
            "early_data": self.early_data,
        }


TODAY = WhatIf()
"""Nothing is otherwise."""
