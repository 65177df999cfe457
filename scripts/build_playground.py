"""Writes the playground as one file that needs no network: `build_playground.py MODULE.wasm PLAYGROUND.html`.

`build_playground.py --into SITE PLAYGROUND.html` puts that file into its page of the built documentation.

The file contains the modules of `playground/` one after the other, the embedded profiles, the paper's table
and the simulator. A file of more than 3 MB is an error.
"""

import base64
import csv
import gzip
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "playground"
MOST_BYTES = 3_000_000
_MODULES = ("settings", "job", "simulator", "critical_path", "packets", "draw", "tour", "main")
"""In this order, each module comes after the modules that it imports."""
_PAGES = ("amazon", "nytimes", "wsj", "wikipedia")
_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./(\w+)\.mjs\";\n", re.MULTILINE)


_PLACE = re.compile(r'<div id="playground">.*?</div>', re.DOTALL)
"""The element of `docs/playground.md` that the playground replaces."""


def main(arguments: list[str]) -> int:
    """Writes the file.

    The exit code is 1 if it is too large, or if no page of the site has a place for it.
    """
    if arguments[0] == "--into":
        return embed(Path(arguments[1]), Path(arguments[2]))
    module, target = map(Path, arguments)
    page = playground(module.read_bytes())
    if len(page) > MOST_BYTES:
        sys.stderr.write(f"error: {target}: {len(page)} bytes\nhint: at most {MOST_BYTES} are allowed\n")
        return 1
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(page)
    sys.stdout.write(f"{target}: {len(page)} bytes\n")
    return 0


def playground(module: bytes) -> bytes:
    """The contents of the file; `module` is the simulator as WebAssembly."""
    packed = base64.b64encode(gzip.compress(module, mtime=0)).decode()
    data = {"profiles": profiles(), "paper": paper(), "wasm": packed}
    parts = {
        "/*STYLE*/": (SOURCES / "style.css").read_text(),
        # Without `<` the data cannot end the script element that contains them.
        "/*DATA*/": json.dumps(data).replace("<", "\\u003c"),
        "/*SCRIPT*/": script(),
    }
    page = (SOURCES / "page.html").read_text()
    for mark, text in parts.items():
        before, found, after = page.partition(mark)
        if not found:
            raise ValueError(f"page.html has no {mark}")
        page = before + text + after
    return page.encode()


def embed(site: Path, file: Path) -> int:
    """Puts the built file into the site; the exit code is 1 if no page has a place for it."""
    found = [page for page in site.rglob("*.html") if _PLACE.search(page.read_text())]
    if len(found) != 1:
        sys.stderr.write(f'error: {site}: {len(found)} pages have a <div id="playground">, not one\n')
        sys.stderr.write("hint: docs/playground.md has it; build the site first\n")
        return 1
    [page] = found
    target = site / "playground" / "playground.html"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(file.read_bytes())
    link = target.relative_to(page.parent).as_posix()
    look = "width:100%;height:85vh;border:0"
    frame = (
        f'<p><a href="{link}">The playground on a page of its own</a></p>'
        f'<iframe src="{link}" title="Playground" loading="lazy" style="{look}"></iframe>'
    )
    page.write_text(_PLACE.sub(lambda _: f'<div id="playground">{frame}</div>', page.read_text()))
    return 0


def script() -> str:
    """All modules, joined to one script."""
    known: set[str] = set()
    texts = []
    for name in _MODULES:
        text = (SOURCES / f"{name}.mjs").read_text()
        if missing := set(_IMPORT.findall(text)) - known:
            raise ValueError(f"{name}.mjs imports {', '.join(missing)}, which stands after it")
        known.add(name)
        texts.append(re.sub(r"^export ", "", _IMPORT.sub("", text), flags=re.MULTILINE))
    return "\n".join(texts)


def profiles() -> dict[str, str]:
    """The embedded pages by name, in the profile format."""
    embedded = ROOT / "python/firstflight/pages/embedded"
    files = {"one": SOURCES / "one.json", **{name: embedded / f"{name}.json" for name in _PAGES}}
    return {name: json.dumps(json.loads(file.read_text())) for name, file in files.items()}


def paper() -> list[dict[str, str | float]]:
    """Table 1 of the paper: page, RTT, and the load times without and with TFO."""
    lines = (ROOT / "python/firstflight/published/tables/paper.csv").read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return [
        {"page": row["page"], **{key: float(row[key]) for key in ("rtt_ms", "tcp_ms", "tfo_ms")}}
        for row in rows
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
