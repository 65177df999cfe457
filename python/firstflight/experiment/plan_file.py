"""Builds a plan from a TOML file, flags and defaults. Errors name the key, the file and the line.

Flags override the file, and the file overrides the defaults. Both may name a `network` (formerly `path`): a
preset or a TOML file of path keys. Keys given beside `network` override those of that network. The network
replaces every path key of the layer below. Relative file names in a file start at its folder. A results
folder holds the traces of its run in `traces/down/` and `traces/up/`, and its `plan.toml` names them.
"""

import gzip
import re
import tomllib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import has_magic, iglob
from itertools import islice, takewhile
from pathlib import Path

from pydantic import ValidationError

from firstflight import _core
from firstflight.errors import UsageError
from firstflight.model.path import Trace, write_trace
from firstflight.model.plan import ALIASES, FLAGS_ONLY, PATH_KEYS, TRACES, Plan
from firstflight.model.treatment import pages_named
from firstflight.model.units import BadValueError, explain, nearest
from firstflight.pages.readers import is_archive
from firstflight.published.networks import network_files
from firstflight.published.plans import plan_files
from firstflight.results import write_whole

NETWORK_OF_ARCHIVES = "cable"
"""If a plan gives no link, archives are loaded over this one, all other pages over the paper's."""

HTTP_OF_ARCHIVES = "recorded"
"""Where a plan gives no version of HTTP, each host of an archive speaks the recorded one."""

_LINK = {"rtt", "down", "up", "down_trace", "up_trace", "topology"}
_FEW = 20
_MOST_CHARACTERS = 1_000_000


@dataclass(frozen=True)
class PlanFile:
    """The keys of a TOML plan as written, not yet checked."""

    file: Path | None = None
    text: str = ""
    values: dict[str, object] = field(default_factory=dict)
    is_path: bool = False

    @property
    def comment(self) -> str:
        """The comment in its first lines."""
        lines = takewhile(lambda line: line.startswith("#"), self.text.splitlines())
        return " ".join(line.removeprefix("#").strip() for line in lines)

    def place(self, key: str) -> str:
        """The place of a key, such as `paper.toml, line 7, rtt`; the key alone if the file lacks it."""
        if self.file is None or key not in self.values:
            return key
        for number, line in enumerate(self.text.splitlines(), start=1):
            if re.match(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=.\]]""", line):
                return f"{self.file}, line {number}, {key}"
        return f"{self.file}, {key}"


def presets() -> dict[str, PlanFile]:
    """The paths that are part of firstflight, by name."""
    return {file.stem: read_plan_file(file, "path") for file in network_files()}


def read_plan(named: Path) -> PlanFile:
    """Reads a plan: a TOML file or, if there is no such file, a plan that is part of firstflight, by name.

    Raises:
        UsageError: There is neither, or the file is not a plan.
    """
    plans = plan_files()
    if str(named) in plans and not named.is_file():
        return read_plan_file(plans[str(named)])
    if not named.suffix and not named.exists():
        raise UsageError(
            f"plan: {named} is neither a file nor a plan that comes with firstflight",
            f"name a TOML file, or one of {', '.join(plans)}",
        )
    return read_plan_file(named)


def read_plan_file(file: Path, kind: str = "plan") -> PlanFile:
    """Reads a TOML plan or path. Raises `UsageError` when the file cannot be read or is not TOML."""
    hint = f"a {kind} is a TOML file, see docs/{kind}.md"
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(_MOST_CHARACTERS + 1)
        if len(text) > _MOST_CHARACTERS:
            raise UsageError(f"{kind}: {file} is too long", hint)
        return PlanFile(file, text, tomllib.loads(text), kind == "path")
    except OSError as error:
        raise UsageError(f"{kind}: cannot read {file}: {error.strerror}", f"see docs/{kind}.md") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{kind}: {file} is not UTF-8 text", hint) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(
            f"{kind}: {file} is not TOML: {error}", f"fix that line; docs/{kind}.md has an example"
        ) from error


def resolve(flags: Mapping[str, object], plan_file: PlanFile | None = None) -> Plan:
    """Combines flags, file and defaults; flags override the file, the file the defaults.

    Args:
        flags: Plan keys with the values given on the command line; those not given are absent.
        plan_file: The plan of `--plan`, if any.

    Raises:
        UsageError: A value or key is wrong; the message names it and its place.
    """
    layers = [*_layers(plan_file or PlanFile()), *_layers(PlanFile(values=dict(flags)))]
    archives = _of_archives(layers)
    if archives and not any(layer.is_path or layer.values.keys() & _LINK for layer in layers):
        layers.insert(0, presets()[NETWORK_OF_ARCHIVES])
    values: dict[str, object] = {}
    for layer in layers:
        for key in FLAGS_ONLY:
            if layer.file and layer.values.get(key):
                raise UsageError(
                    f"{layer.place(key)}: a plan cannot name a program to run",
                    f"leave the key out, and name the program on the command line: --{key} PATH",
                )
        values = {**_left(values, layer), **layer.values}
    key = ""
    try:
        for key in TRACES.values():
            if isinstance(name := values.get(key), str) and name not in ("", "off"):
                values[key] = read_trace(Path(name))
        if archives and "http" not in values:
            return _as_recorded(values)
        return Plan.model_validate(values)
    except BadValueError as error:
        problem, hint = error.problem, error.hint
    except ValidationError as error:
        key, problem, hint = explain(error, Plan.model_fields)
    place = next((layer.place(key) for layer in reversed(layers) if key in layer.values), key)
    raise UsageError(f"{place}: {problem}" if place else problem, hint)


def _as_recorded(values: Mapping[str, object]) -> Plan:
    """The plan with the recorded versions of HTTP; unchanged if they are not valid in it."""
    try:
        return Plan.model_validate({**values, "http": HTTP_OF_ARCHIVES})
    except (BadValueError, ValidationError):
        return Plan.model_validate(values)


def _of_archives(layers: Sequence[PlanFile]) -> bool:
    """Whether all pages of a plan are archives. Of a pattern, only the first few files are checked."""
    named = next((layer.values["pages"] for layer in reversed(layers) if "pages" in layer.values), None)
    compared = (pages_named(one.values.get("compare", "off"), one.values.get("treatment")) for one in layers)
    named = named or next(filter(None, compared), None)
    specs = named if isinstance(named, list | tuple) else [named]
    return bool(specs) and all(isinstance(spec, str) and _is_archive(spec) for spec in specs)


def _is_archive(spec: str) -> bool:
    name = spec if Path(spec).exists() else spec.partition("#")[0]
    if has_magic(name) and not Path(name).exists():
        found = list(islice(iglob(name, recursive=True), _FEW))  # noqa: PTH207 (absolute patterns too)
        return bool(found) and all(is_archive(Path(file)) for file in found)
    try:
        return is_archive(Path(name))
    except (OSError, ValueError):
        return False


def _layers(plan_file: PlanFile) -> Iterator[PlanFile]:
    """The network that a file names, if any, then the file's own keys, which override it."""
    values = {**plan_file.values}
    named = {key: values.pop(key) for key in ("network", *ALIASES) if key in values}
    if len(named) > 1:
        problem = f"{plan_file.place('network')}: so is path, which is its old name"
        raise UsageError(problem, "leave one of the two out")
    for key, name in named.items():
        if name != "":
            folder = plan_file.file.parent if plan_file.file else Path()
            yield _read_path(name, folder, plan_file.place(key))
    yield _beside(plan_file, values)


def _beside(plan_file: PlanFile, values: Mapping[str, object]) -> PlanFile:
    """The plan file with these values; relative trace names now start at its folder."""
    folder = plan_file.file.parent if plan_file.file else Path()
    found = {
        key: str(folder / name)
        for key in TRACES.values()
        if isinstance(name := values.get(key), str) and name not in ("", "off")
    }
    return replace(plan_file, values={**values, **found})


def _read_path(name: object, folder: Path, place: str) -> PlanFile:
    """A preset, or a file of path keys in `folder`."""
    known = presets()
    if not isinstance(name, str):
        raise UsageError(f"{place}: {name} is neither a preset nor a file", f"presets are {', '.join(known)}")
    if name in known:
        return known[name]
    if not (folder / name).exists() and "," in name:
        raise UsageError(
            f"{place}: {name} names several networks, and a run has one",
            "run each for itself, then: firstflight compare; firstflight gate takes several",
        )
    if not (folder / name).exists():
        raise UsageError(
            f'{place}: there is no preset "{name}", nor such a file', f"presets are {', '.join(known)}"
        )
    path = read_plan_file(folder / name, "path")
    for key in path.values:
        if key not in PATH_KEYS:
            known_key = key in Plan.model_fields or key in ALIASES
            problem = "not a key of a path" if known_key else "unknown key"
            raise UsageError(f"{path.place(key)}: {problem}", nearest(key, PATH_KEYS))
    return _beside(path, path.values)


def _left(below: Mapping[str, object], above: PlanFile) -> dict[str, object]:
    """The keys of the lower layers that `above` does not replace.

    A path replaces a path, a rate a trace, and a trace a rate. `compare` replaces treatments, and treatments
    replace `compare`; if they name pages, they also replace `pages`.
    """
    displaced = set(PATH_KEYS) if above.is_path else set()
    for rate, trace in TRACES.items():
        if rate in above.values:
            displaced.add(trace)
        if above.values.get(trace, "off") != "off":
            displaced.add(rate)
    if above.values.get("compare", "off") != "off":
        displaced.add("treatment")
    if above.values.get("treatment"):
        displaced.add("compare")
    if pages_named(above.values.get("compare", "off"), above.values.get("treatment")):
        displaced.add("pages")
    return {key: value for key, value in below.items() if key not in displaced}


_MOST_BYTES = 100_000_000

_GZIP = b"\x1f\x8b"

_MOST_NAME = 200

_FORMAT = "a trace has a time in ms on each line, none before the one above; docs/path.md"


def read_trace(file: Path) -> Trace:
    """Reads a trace in Mahimahi's format.

    Raises:
        BadValueError: The file cannot be read, or is not a trace.
    """
    text = _text(file)
    try:
        mean_bps, lasts_ms = _core.measure_trace(text)
    except ValueError as error:
        raise BadValueError(f"{file}: {error}", _FORMAT) from None
    return Trace(file.name.removesuffix(".gz")[:_MOST_NAME], text, mean_bps, lasts_ms)


def keep_trace(folder: Path, way: str, trace: Trace | None) -> None:
    """Writes a trace into a results folder, if there is one."""
    if trace:
        write_whole(folder / write_trace(way)(trace), gzip.compress(trace.text.encode(), mtime=0))


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            zipped = opened.read(len(_GZIP)) == _GZIP
        with gzip.open(file) if zipped else file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise BadValueError(f"{file}: is too long", f"a trace has at most {_MOST_BYTES} bytes")
        return data.decode()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadValueError(f"{file}: not whole gzip: {error}", "copy the file again") from None
    except UnicodeDecodeError as error:
        raise BadValueError(f"{file}: byte {error.start} is not text", _FORMAT) from None
    except OSError as error:
        raise BadValueError(f"{file}: {error.strerror or error}", "check the path of the trace") from None
