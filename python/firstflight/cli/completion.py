"""What a shell offers for a value: the words that a plan key may be, names of what comes with firstflight."""

from collections.abc import Callable, Iterable
from typing import Literal, get_args, get_origin

from pydantic import BaseModel

from firstflight.experiment.plan import Plan
from firstflight.experiment.sources import presets
from firstflight.pages import embedded_names
from firstflight.published import published_names


def complete_page(incomplete: str) -> list[str]:
    """Embedded pages; where none fits, the shell offers files."""
    return [name for name in embedded_names() if name.startswith(incomplete)]


def complete_side(incomplete: str) -> list[str]:
    """Published tables; where none fits, the shell offers files."""
    return [name for name in published_names() if name.startswith(incomplete)]


def key_completer(key: str, model: type[BaseModel] = Plan) -> Callable[[str], list[str]] | None:
    """Offers the words of a plan key, in a list after each comma; `None` if any text will do."""
    words = tuple(presets()) if key == "path" else _words(model.model_fields[key].annotation)
    return _completer(words) if words else None


def _completer(words: Iterable[str]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        before, comma, _ = incomplete.rpartition(",")
        fresh = [word for word in words if word not in before.split(",")]
        return [f"{before}{comma}{word}" for word in fresh]

    return complete


def _words(annotation: object) -> tuple[str, ...]:
    """Every word of a `Literal`, within lists and unions too."""
    if get_origin(annotation) is Literal:
        return tuple(word for word in get_args(annotation) if isinstance(word, str))
    return tuple(word for part in get_args(annotation) for word in _words(part))
