"""Pages: the model of what is loaded, and the sources that pages are read from."""

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
    Deviation,
    UnderSchemes,
    under,
    was_cleared,
    was_unshared,
)
from firstflight.pages.sources import load_page, open_pages

__all__ = [
    "FORMAT",
    "Deviation",
    "Initiator",
    "Kind",
    "LoadedPage",
    "Missing",
    "Page",
    "PageDescription",
    "Resource",
    "UnderSchemes",
    "Via",
    "describe",
    "embedded_names",
    "load_page",
    "open_pages",
    "paced",
    "strip",
    "under",
    "was_cleared",
    "was_unshared",
]
