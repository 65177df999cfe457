"""Where a plan comes from: a TOML file, flags over it, defaults below it; errors name key, file and line."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from firstflight.errors import UsageError
from firstflight.experiment.plan import Plan
from firstflight.experiment.units import BadValueError

_MOST_CHARACTERS = 1_000_000


@dataclass(frozen=True)
class PlanFile:
    """A TOML plan as it stands in the file, not checked yet."""

    file: FilePath | None = None
    text: str = ""
    values: dict[str, Any] = field(default_factory=dict)

    def place(self, key: str) -> str:
        """`paper.toml, line 7, rtt` for a key of this file, else the key alone."""
        if self.file is None or key not in self.values:
            return key
        for number, line in enumerate(self.text.splitlines(), start=1):
            if re.match(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=.\]]""", line):
                return f"{self.file}, line {number}, {key}"
        return f"{self.file}, {key}"


def read_plan_file(file: FilePath) -> PlanFile:
    """Reads a TOML plan. Raises `UsageError` when it cannot be read or is not TOML."""
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(_MOST_CHARACTERS + 1)
        if len(text) > _MOST_CHARACTERS:
            raise UsageError(f"plan: {file} is too long", "a plan is a TOML file, see docs/plan.md")
        return PlanFile(file, text, tomllib.loads(text))
    except OSError as error:
        raise UsageError(f"plan: cannot read {file}: {error.strerror}", "see plans/ for examples") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"plan: {file} is not UTF-8 text", "a plan is a TOML file, see docs/plan.md"
        ) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(
            f"plan: {file} is not TOML: {error}", "mend that line; docs/plan.md has an example"
        ) from error


def resolve(flags: Mapping[str, Any], plan_file: PlanFile | None = None) -> Plan:
    """Puts flags over the file's keys over the defaults.

    Args:
        flags: Plan keys with the values given on the command line; those not given are absent.
        plan_file: The plan of `--plan`, if any.

    Raises:
        UsageError: A value or key is wrong; the message names it and its place.
    """
    plan_file = plan_file or PlanFile()
    try:
        return Plan.model_validate({**plan_file.values, **flags})
    except ValidationError as error:
        key, problem, hint = explain(error)
        place = key if key in flags else plan_file.place(key)
        raise UsageError(f"{place}: {problem}" if place else problem, hint) from error


def explain(error: ValidationError) -> tuple[str, str, str]:
    """The first thing that is wrong: its key (empty if it is no single one's), the problem, and the mend."""
    details = error.errors()[0]
    key = str(details["loc"][0]) if details["loc"] else ""
    return key, *_explain(details, key)


def _explain(details: ErrorDetails, key: str) -> tuple[str, str]:
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, BadValueError):
        return cause.problem, cause.hint
    if details["type"] == "extra_forbidden":
        return "unknown key", _nearest_key(key)
    return details["msg"], "see docs/plan.md"


def _nearest_key(key: str) -> str:
    near = difflib.get_close_matches(key.replace("-", "_"), Plan.model_fields, n=1)
    return f"did you mean {near[0]}?" if near else f"keys are {', '.join(Plan.model_fields)}"
