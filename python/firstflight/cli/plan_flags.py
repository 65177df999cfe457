"""The flags of a plan, made from the plan model: same names, same values, same words."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated

import typer

from firstflight.experiment.plan import Plan


def with_plan_flags(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command one flag per key of `Plan`, and PAGE arguments for `pages`.

    The command's first parameter receives the keys that were given, as the command line holds them; the
    plan model parses them. Its other parameters stay flags of their own.
    """
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in list(inspect.signature(command).parameters.values())[1:]
    ]
    plan = [_pages(), *(_flag(key) for key in Plan.model_fields if key != "pages")]

    @wraps(command)
    def run(**values: object) -> int:
        given = {key: values.pop(key) for key in Plan.model_fields}
        return command({key: value for key, value in given.items() if value not in (None, [])}, **values)

    run.__signature__ = inspect.Signature([*plan, *own])  # type: ignore[attr-defined]
    return run


def _pages() -> inspect.Parameter:
    annotation = Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAGE",
            help=_help("pages", "the paper's four"),
            show_default=False,
        ),
    ]
    return inspect.Parameter("pages", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _flag(key: str) -> inspect.Parameter:
    field = Plan.model_fields[key]
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    name = "--" + key.replace("_", "-")
    names = [f"{name}/--no-{name[2:]}"] if field.annotation is bool else [name]
    metavar = str(extra["metavar"]) if "metavar" in extra else None
    option = typer.Option(*names, metavar=metavar, help=_help(key), show_default=False)
    kind = bool if field.annotation is bool else str
    return inspect.Parameter(
        key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def _help(key: str, default: str = "") -> str:
    return f"{Plan.model_fields[key].description} [{default or default_text(key)}]"


def default_text(key: str) -> str:
    """The default of a plan key as a flag takes it."""
    value = Plan().model_dump(mode="json")[key]
    if isinstance(value, list):
        return ",".join(str(part) for part in value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
