"""Flags made from the plan model, with the same names, values and descriptions.

Also shell completion for pages and sides of a comparison.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from typing import Annotated, Literal, get_args, get_origin

import typer
from pydantic import BaseModel

from firstflight.experiment.plan_file import presets
from firstflight.model.plan import ALIASES, PAPER_PAGES, PATH_KEYS, Plan

LAB_KEYS = (
    "network",
    *PATH_KEYS,
    "initial_window",
    "congestion_control",
    "ip",
    "mode",
    "scheme",
    "keep_alive",
    "cookies",
    "seed",
)
"""Keys that describe one path and one treatment."""

PATH_AND_COOKIES = ("network", *PATH_KEYS, "ip", "cookies", "seed")
"""Keys that describe one path, and the cookie and ticket state of its servers."""

NOT_FLAGS = ("pages", "treatment")
"""Keys without a flag: pages are arguments, and tables of treatments are only in files."""


def with_plan_flags(command: Callable[..., int]) -> Callable[..., int]:
    """Adds one flag per key of `Plan` to a command, except for tables, and PAGE arguments for `pages`.

    The command's first parameter gets the given keys in the form of the command line; the plan model parses
    them. Its other parameters remain separate flags.
    """
    return _with_flags(
        command, [_pages(), *(_flag(key) for key in Plan.model_fields if key not in NOT_FLAGS)]
    )


def with_flags_of(model: type[BaseModel]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Adds one flag per field of another model to a command, as `with_plan_flags` does."""
    flags = [_flag(key, model=model) for key in model.model_fields]
    return lambda command: _with_flags(command, flags)


def with_path_flags(
    defaults: Mapping[str, str], keys: Sequence[str] = LAB_KEYS
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Adds the flags of one path and one treatment to a command, as `with_plan_flags` does.

    Args:
        defaults: Values of flags that are not given, if they differ from the plan's defaults.
        keys: The plan keys that become flags.
    """
    flags = [_flag(key, defaults.get(key, "")) for key in keys]
    return lambda command: _with_flags(command, flags)


def _with_flags(command: Callable[..., int], flags: list[inspect.Parameter]) -> Callable[..., int]:
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in list(inspect.signature(command).parameters.values())[1:]
    ]

    @wraps(command)
    def run(**values: object) -> int:
        given = {flag.name: values.pop(flag.name) for flag in flags}
        return command({key: value for key, value in given.items() if value not in (None, [])}, **values)

    run.__signature__ = inspect.Signature([*flags, *own])  # type: ignore[attr-defined]
    return run


def _pages() -> inspect.Parameter:
    annotation = Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAGE",
            help=_help("pages", "the paper's four"),
            show_default=False,
            autocompletion=complete_page,
        ),
    ]
    return inspect.Parameter("pages", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _flag(key: str, default: str = "", model: type[BaseModel] = Plan) -> inspect.Parameter:
    field = model.model_fields[key]
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    name = "--" + key.replace("_", "-")
    names = [f"{name}/--no-{name[2:]}"] if field.annotation is bool else [name]
    names += [f"--{alias}" for alias, meant in ALIASES.items() if meant == key]
    metavar = str(extra["metavar"]) if "metavar" in extra else None
    option = typer.Option(
        *names,
        metavar=metavar,
        help=_help(key, default, model),
        show_default=False,
        autocompletion=key_completer(key, model),
    )
    kind = bool if field.annotation is bool else str
    return inspect.Parameter(
        key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def _help(key: str, default: str = "", model: type[BaseModel] = Plan) -> str:
    shown, meaning = default or default_text(key, model), str(model.model_fields[key].description)
    return f"{meaning} [{shown}]" if shown else meaning


def default_text(key: str, model: type[BaseModel] = Plan) -> str:
    """The default of a plan key, in the form of a flag."""
    value = _defaults(model)[key]
    if isinstance(value, list):
        return ",".join(str(part) for part in value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


@cache
def _defaults(model: type[BaseModel]) -> dict[str, object]:
    return model().model_dump(mode="json")


def key_completer(key: str, model: type[BaseModel] = Plan) -> Callable[[str], list[str]] | None:
    """Completes the words of a plan key, in a list also after a comma; `None` if any text is valid."""
    if key == "network":
        return _completer(presets)
    words = _words(model.model_fields[key].annotation)
    return _completer(lambda: words) if words else None


def _completer(words: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        before, comma, _ = incomplete.rpartition(",")
        fresh = [word for word in words() if word not in before.split(",")]
        return [f"{before}{comma}{word}" for word in fresh]

    return complete


def _words(annotation: object) -> tuple[str, ...]:
    """Every word of a `Literal`, including those within lists and unions."""
    if get_origin(annotation) is Literal:
        return tuple(word for word in get_args(annotation) if isinstance(word, str))
    return tuple(word for part in get_args(annotation) for word in _words(part))


def complete_page(incomplete: str) -> list[str]:
    """Completes names of embedded pages; if none matches, the shell completes files."""
    return [name for name in PAPER_PAGES if name.startswith(incomplete)]
