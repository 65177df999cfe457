"""Makes docs/reference/python.md: every public name of firstflight, from its signature and docstring."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator

import firstflight

_HEAD = """# Python API

<!-- Made by `make reference`; a test checks that it is current. -->

This page lists every public name of `import firstflight as ff`. [From Python](../python.md) shows how they
work together. Frames have the columns of [results](../results.md). *Keys* are [the keys of a plan](plan.md).
"""
_GROUPS = {
    "Pages and paths": ("load_page", "LoadedPage", "Page", "path", "Path"),
    "Loads": ("emulate", "simulate", "Load", "waterfall"),
    "Runs and results": ("Plan", "run", "open_results", "Results", "CellPair"),
    "Errors": ("FirstflightError", "UsageError", "ExperimentError"),
}
_SECTION = re.compile(r"(Args|Attributes|Raises|Returns):$")


def render() -> str:
    """Renders the page. Raises `ValueError` when a public name is in no group."""
    named = {name for names in _GROUPS.values() for name in names}
    if named != set(firstflight.__all__):
        raise ValueError(f"in no group, or not public: {sorted(named ^ set(firstflight.__all__))}")
    parts = [_HEAD]
    for group, names in _GROUPS.items():
        parts.append(f"\n## {group}\n")
        parts += (part for name in names for part in _symbol(name))
    return "".join(parts)


def _symbol(name: str) -> Iterator[str]:
    found = getattr(firstflight, name)
    if not inspect.isclass(found):
        yield f"\n### {name}\n\n```python\n{_call(name, found)}\n```\n\n{_prose(found)}"
        return
    base = found.__bases__[0].__name__
    yield f"\n### {name}\n\n{'' if base in ('object', 'Protocol') else f'Base: `{base}`. '}{_prose(found)}"
    if members := list(_members(found)):
        yield "\n| member | what it is |\n|---|---|\n"
        yield from members


def _members(found: type) -> Iterator[str]:
    for name, member in vars(found).items():
        target = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        is_value = hasattr(member, "__get__") and not callable(target)
        text = inspect.getdoc(target) or ""
        if name.startswith(("_", "model_")) or not text or not (is_value or inspect.isfunction(target)):
            continue
        shown = name if is_value else f"{name}({', '.join(_parameters(target))})"
        yield f"| `{shown}` | {_linked(text.splitlines()[0])} |\n"


def _parameters(function: Callable[..., object]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [str(p.replace(annotation=p.empty)) for p in parameters if p.name not in ("self", "cls")]


def _call(name: str, function: Callable[..., object]) -> str:
    signature = inspect.signature(function)
    parts = [_parameter(p) for p in signature.parameters.values()]
    keywords = [i for i, p in enumerate(signature.parameters.values()) if p.kind is p.KEYWORD_ONLY]
    if keywords:
        parts.insert(keywords[0], "*")
    result = f" -> {signature.return_annotation}"
    one_line = f"{name}({', '.join(parts)}){result}"
    return one_line if len(one_line) <= 100 else f"{name}(\n    " + ",\n    ".join(parts) + f",\n){result}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
    return f"{stars}{parameter.name}: {parameter.annotation}{default}"


def _default(value: object) -> str:
    return value.__name__ if callable(value) and hasattr(value, "__name__") else repr(value)


def _prose(found: object) -> str:
    """Converts a docstring to Markdown: its sections become lists."""
    lines: list[str] = []
    section = ""
    for line in (inspect.getdoc(found) or "").splitlines():
        if heading := _SECTION.match(line):
            section = heading[1]
            lines += [f"**{section}**", ""]
        elif section and (item := re.match(r"    ([\w.]+): (.*)", line)):
            lines.append(f"- `{item[1]}`: {item[2]}")
        elif section and line.startswith("        "):
            lines.append(f"  {line.strip()}")
        else:
            lines.append(line.strip() if section else line)
    return _linked("\n".join(lines)) + "\n"


def _linked(text: str) -> str:
    """Replaces names of pages of docs/ by links from docs/reference/."""
    return re.sub(r"\bdocs/([\w/-]+\.md)", lambda found: f"[{found[1]}]({_target(found[1])})", text)


def _target(page: str) -> str:
    return page.removeprefix("reference/") if page.startswith("reference/") else f"../{page}"


if __name__ == "__main__":
    sys.stdout.write(render())
