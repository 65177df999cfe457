"""Pages: what a load loads, and where pages come from."""

from firstflight.model.page import (
    FORMAT,
    Initiator,
    Kind,
    LoadedPage,
    Missing,
    Page,
    PageDescription,
    Resource,
    Via,
    describe,
    paced,
    strip,
)
from firstflight.pages.profile import embedded_names
from firstflight.pages.scheme import (
    UnderSchemes,
    clear_warning,
    under,
    unshared_warning,
    untold_warning,
    was_cleared,
    was_unshared,
)
from firstflight.pages.sources import load_page, open_pages

__all__ = [
    "FORMAT",
    "Initiator",
    "Kind",
    "LoadedPage",
    "Missing",
    "Page",
    "PageDescription",
    "Resource",
    "UnderSchemes",
    "Via",
    "clear_warning",
    "describe",
    "embedded_names",
    "load_page",
    "open_pages",
    "paced",
    "strip",
    "under",
    "unshared_warning",
    "untold_warning",
    "was_cleared",
    "was_unshared",
]
