"""Pages whose servers answer at once, or whose client takes more or less time than in the recording."""

from __future__ import annotations

from dataclasses import asdict

from firstflight.pages.model import Page

_LONGEST_MS = 600_000.0
"""As `crates/page/src/validate.rs` has it."""


def paced(page: Page, *, server_time: bool = True, processing: float = 1.0) -> Page:
    """`page` with other times than those of its recording.

    Args:
        page: As it was recorded.
        server_time: Whether servers and the main thread take any time; pauses (`delay_ms`) stay in any case.
        processing: Factor on the main thread's time (`cpu_ms`) and on pauses.
    """
    if server_time and processing == 1:
        return page
    fields = asdict(page)
    for resource in fields["resources"]:
        resource["server_ms"] *= server_time
        resource["cpu_ms"] = min(_LONGEST_MS, resource["cpu_ms"] * processing * server_time)
        if resource["initiator"]:
            resource["initiator"]["delay_ms"] = min(
                _LONGEST_MS, resource["initiator"]["delay_ms"] * processing
            )
    return Page.from_fields(fields)
