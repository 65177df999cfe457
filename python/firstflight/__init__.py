"""firstflight: a page-load laboratory for the first round trip.

In a notebook: `import firstflight as ff`; docs/python.md says what there is.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firstflight.analysis.cells import CellPair
    from firstflight.api import (
        Load,
        Results,
        emulate,
        load_page,
        open_results,
        path,
        run,
        simulate,
        waterfall,
    )
    from firstflight.errors import ExperimentError, FirstflightError, UsageError
    from firstflight.model.path import Path
    from firstflight.model.plan import Plan
    from firstflight.pages import LoadedPage, Page

    __version__: str

__all__ = [
    "CellPair",
    "ExperimentError",
    "FirstflightError",
    "Load",
    "LoadedPage",
    "Page",
    "Path",
    "Plan",
    "Results",
    "UsageError",
    "emulate",
    "load_page",
    "open_results",
    "path",
    "run",
    "simulate",
    "waterfall",
]

_HOMES = {
    "CellPair": "firstflight.analysis.cells",
    "ExperimentError": "firstflight.errors",
    "FirstflightError": "firstflight.errors",
    "UsageError": "firstflight.errors",
    "LoadedPage": "firstflight.pages",
    "Page": "firstflight.pages",
    "Path": "firstflight.model.path",
    "Plan": "firstflight.model.plan",
}


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used, so that the program loads nothing only notebooks need."""
    if name == "__version__":
        return import_module("importlib.metadata").version("firstflight")
    if name not in __all__:
        raise AttributeError(f"module 'firstflight' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "firstflight.api")), name)


def __dir__() -> list[str]:
    return __all__
