"""Libraries that take long to import, each imported when something of it is first used.

A module says `from firstflight.deferred import numpy as np` where it would say `import numpy as np`, so that
no call waits for what it does not use: altair takes 0.4 s. Python 3.15 has `lazy import` for
this (PEP 810). `importlib.util.LazyLoader` would not do: a second import statement loads what the first one
put off.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair
    import jinja2
    import numpy
    import polars
    import pydantic
    import tomlkit
    import vl_convert
else:

    class _Deferred:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> object:
            """Imports the library; what is found stays, so that it is asked once for each name."""
            found = getattr(import_module(self._name), name)
            setattr(self, name, found)
            return found

    altair = _Deferred("altair")
    jinja2 = _Deferred("jinja2")
    numpy = _Deferred("numpy")
    polars = _Deferred("polars")
    pydantic = _Deferred("pydantic")
    tomlkit = _Deferred("tomlkit")
    vl_convert = _Deferred("vl_convert")

__all__ = ["altair", "jinja2", "numpy", "polars", "pydantic", "tomlkit", "vl_convert"]
