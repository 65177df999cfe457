"""Clients that are programs of their own: the laboratory runs them beside the page's servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from firstflight.engines.task import PlannedLoad
    from firstflight.pages import LoadedPage


class ForeignClient(Protocol):
    """Tells the laboratory how a program loads a page, and what its answer means."""

    def equip(self, job: dict[str, Any], planned: PlannedLoad, page: LoadedPage) -> dict[str, Any]:
        """The laboratory's job with this client in it.

        Args:
            job: A job for the built-in loader.
            planned: The load to be made.
            page: Its page.
        """

    def complete(self, answer: dict[str, Any], page: LoadedPage) -> dict[str, Any]:
        """The laboratory's answer with what the client itself saw of the load."""
