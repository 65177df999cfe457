"""Where the library lies that gives stock programs TCP Fast Open."""

from pathlib import Path

from firstflight import _core
from firstflight.errors import LabError


def preload_library() -> str:
    """Its path, as `LD_PRELOAD` takes it. Raises `LabError` when it is not there or cannot be named."""
    library = Path(_core.__file__).parent / "_bin" / "libfirstflight_preload.so"
    if not library.is_file():
        raise LabError("the library libfirstflight_preload.so is missing", "build it: make")
    # The separators of LD_PRELOAD cannot be escaped (ld.so(8)).
    if " " in str(library) or ":" in str(library):
        raise LabError(
            f"LD_PRELOAD cannot name {library}: its path has a space or a colon",
            "install firstflight in a folder without",
        )
    return str(library)
