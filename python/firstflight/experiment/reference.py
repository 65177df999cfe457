"""The table of plan keys in docs/plan.md, made by `python -m firstflight.experiment.reference`."""

import sys

import tomlkit

from firstflight.experiment.plan import Plan


def reference() -> str:
    """A Markdown table: every key, its default as TOML, what it means."""
    defaults = Plan().model_dump(mode="json")
    rows = [
        f"| `{key}` | `{tomlkit.item(defaults[key]).as_string()}` | {field.description} |"
        for key, field in Plan.model_fields.items()
    ]
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
