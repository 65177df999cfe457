"""Documents the plan model: the page docs/reference/plan.md, and a JSON schema for editors.

`python -m firstflight.experiment.reference` prints the page, with `--schema` the schema.
"""

from __future__ import annotations

import json
import sys
from typing import TypedDict, cast

from firstflight.deferred import tomlkit
from firstflight.experiment.plan_file import PlanFile, presets
from firstflight.model.plan import ALIASES, Plan

_HEAD = """\
# Keys of a plan

<!-- Made by `make reference`; a test checks that it is current. -->

Every key except `treatment` is also a flag of `firstflight run`. [Plans](../plan.md) says how the keys work
together. The [JSON schema](plan.schema.json) describes the same keys for editors. An editor that supports
schemas of TOML finds it by a first line `#:schema PATH/plan.schema.json` in the plan.

"""


_PATHS = """
## Paths by name

`--network NAME` sets the keys in its row. The sources were read on 24 November 2026. [The path](../path.md)
says which keys a path file of your own may have.

| name | keys | source |
|---|---|---|
"""


def render_reference() -> str:
    """The page: each key with its flag, values, default and meaning, then the presets of paths."""
    schema, defaults = _entries(), Plan().model_dump(mode="json")
    rows = [
        f"| `{key}` | {_flag(key)} | {_takes(schema[key])} | `{tomlkit.item(defaults[key]).as_string()}` "
        f"| {field.description} |"
        for key, field in Plan.model_fields.items()
    ]
    head = ["| key | flag | takes | default | meaning |", "|---|---|---|---|---|"]
    paths = [f"| `{name}` | {_settings(path)} | {path.comment} |" for name, path in presets().items()]
    return _HEAD + "\n".join([*head, *rows]) + "\n" + _PATHS + "\n".join(paths) + "\n"


def _settings(path: PlanFile) -> str:
    """The keys of a path, as its file has them."""
    return ", ".join(f"`{key} = {tomlkit.item(value).as_string()}`" for key, value in path.values.items())


class Entry(TypedDict, total=False):
    """A key of a JSON schema."""

    type: str
    enum: list[str]
    const: str
    anyOf: list[Entry]
    items: Entry


def plan_schema() -> dict[str, object]:
    """The JSON schema of a plan as a results folder stores it, with every value in its plain form."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A plan of firstflight",
        "type": "object",
        "properties": _entries(),
        "additionalProperties": False,
    }


def _entries() -> dict[str, Entry]:
    properties = Plan.model_json_schema(mode="serialization")["properties"]
    properties |= {alias: properties[key] for alias, key in ALIASES.items()}
    return {
        key: cast(Entry, {name: part for name, part in entry.items() if name not in ("title", "metavar")})
        for key, entry in properties.items()
    }


def _flag(key: str) -> str:
    if key == "pages":
        return "`PAGE ...`"
    if key == "treatment":
        return "none: `[[treatment]]` tables"
    name = "--" + key.replace("_", "-")
    others = [f"`--{alias}`" for alias, meant in ALIASES.items() if meant == key]
    no = [f"`--no-{name[2:]}`"] if Plan.model_fields[key].annotation is bool else []
    return ", ".join([f"`{name}`", *no, *others])


def _takes(entry: Entry) -> str:
    """What a key takes, in words."""
    if "enum" in entry:
        return " or ".join(f"`{word}`" for word in entry["enum"])
    if "const" in entry:
        return f"`{entry['const']}`"
    if "anyOf" in entry:
        takes = [_takes(part) for part in entry["anyOf"]]
        return " or ".join(words for words in takes if words != "whole number" or "number" not in takes)
    if entry["type"] == "array":
        return f"list: {_takes(entry['items'])}"
    words = {"string": "text", "boolean": "`true` or `false`", "integer": "whole number", "object": "table"}
    return words.get(entry["type"], str(entry["type"]))


if __name__ == "__main__":
    schema = json.dumps(plan_schema(), indent=2) + "\n"
    sys.stdout.write(schema if "--schema" in sys.argv else render_reference())
