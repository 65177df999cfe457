"""Pages without TLS, as the paper's and the course's experiments load them."""

from dataclasses import replace

from firstflight import _core
from firstflight.pages.loaded import LoadedPage
from firstflight.pages.model import Page


def under(scheme: str, page: LoadedPage) -> LoadedPage:
    """The page as it is to be loaded.

    Args:
        scheme: `recorded`: as it is. `http`: every https URL made http; the laboratory does the same to
            references in recorded bodies.
        page: The page.
    """
    if scheme == "recorded" or not any(origin.startswith("https:") for origin in page.page.origins):
        return page
    clear = Page.from_json(_core.in_the_clear(page.page.to_json()), place=page.page.name)
    return replace(page, page=clear)
