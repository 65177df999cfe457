"""Libraries that take long to import. Each is imported when one of its names is first used.

A module has `from firstflight.deferred import numpy as np` in place of `import numpy as np`, so that a call
does not wait for libraries that it does not use: altair takes 0.4 s. Python 3.15 has `lazy import` for this
(PEP 810). `importlib.util.LazyLoader` does not work here: a second import statement loads the library at
once.
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
            """Imports the library. The result is stored, so that each name is looked up once."""
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
