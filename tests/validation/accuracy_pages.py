"""The pages of the grid, without content: profiles made of other people's recordings, committed as `PAGES`.

    python tests/validation/accuracy_pages.py CORPUS

draws them from the recordings of a corpus by a seed and writes them. A profile keeps what both clocks need
(sizes, types, times, hosts, who loads whom) and nothing that a recording could say of its visitor: paths and
queries become numbers, and labels of host names that could be tokens become numbers too. URLs keep their
length, since that of a request and of a redirect depends on it.
"""

import csv
import json
import random
import re
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from firstflight.errors import PageInputError
from firstflight.pages import Page, load_page

PAGES = Path(__file__).parents[1] / "data" / "pages"

SEED = 2011
CORPUS_PAGES = 40
SMALLEST, LARGEST = 5, 400
"""Requests of a page."""
HEAVIEST_BYTES = 3_000_000

TOKEN = re.compile(r"(?=.*\d).{8,}|\d{4,}")
"""A label of a host name that may stand for an account or a visitor."""
_ARCHIVES = ("*.har", "*.warc.gz")
_SUFFIXES = {"style": ".css", "script": ".js", "image": ".img", "font": ".font"}


def main(corpus: Path) -> int:
    """Writes the profiles of the pages that the seed draws from the corpus."""
    with (corpus / "MANIFEST.tsv").open(newline="", encoding="utf-8") as lines:
        sources = {row["file"]: source(row) for row in csv.DictReader(lines, delimiter="\t")}
    for name in drawn(corpus):
        [recorded] = load_page(str(corpus / name))
        file(name).write_text(text(without_content(recorded.page, sources[name])), encoding="utf-8")
    return 0


def file(name: str) -> Path:
    """The profile of the page named after its recording, such as `har/native/2016_bbc_wpt.har`."""
    return PAGES / f"{Path(name).name.removesuffix('.har').removesuffix('.warc.gz')}.json"


def drawn(corpus: Path) -> list[str]:
    """The recordings that open and are of a size that can be loaded often on slow links: some of them."""
    files = sorted(found for pattern in _ARCHIVES for found in corpus.rglob(pattern))
    candidates = [str(found.relative_to(corpus)) for found in files if _fits(found)]
    return sorted(random.Random(SEED).sample(sorted(candidates), CORPUS_PAGES))


def source(row: dict[str, str]) -> str:
    """What a profile says of its recording, from the manifest's row."""
    return f"{row['year']}, derived from {row['path']} of github.com/{row['source_repo']}"


def without_content(page: Page, said: str) -> Page:
    """The page with numbers in place of paths, queries and tokens; both schemes of a URL get one number."""
    numbers: dict[str, int] = {}
    labels: dict[str, int] = {}

    def host(name: str) -> str:
        parts = name.split(".")
        return ".".join(
            f"n{labels.setdefault(part, len(labels))}" if TOKEN.fullmatch(part) else part for part in parts
        )

    def shape(url: str, kind: str) -> str:
        parts = urlsplit(url)
        _, _, rest = url.partition("://")
        number = numbers.setdefault(rest, len(numbers))
        port = f":{parts.port}" if parts.port else ""
        start = f"{parts.scheme}://{host(parts.hostname or '')}{port}/"
        if rest.endswith(f"{parts.netloc}/"):
            return start
        suffix = _SUFFIXES.get(kind, "")
        return f"{start}{number}{'x' * (len(url) - len(f'{start}{number}{suffix}'))}{suffix}"

    return replace(
        page,
        source=said,
        missing=(),
        hosts=tuple(replace(one, host=host(one.host)) for one in page.hosts),
        resources=tuple(replace(one, url=shape(one.url, one.kind)) for one in page.resources),
    )


def text(page: Page) -> str:
    """The profile with a line for each resource, so that a diff shows what an importer did to the page."""
    fields = json.loads(page.to_json())
    lists = {key: fields.pop(key) for key in ("resources", "hosts", "missing") if key in fields}
    parts = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items()]
    for key, rows in lists.items():
        lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
        parts.append(f'  "{key}": [\n{lines}\n  ]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _fits(recording: Path) -> bool:
    try:
        facts = load_page(str(recording))[0].page.describe()
    except PageInputError:
        return False
    return SMALLEST <= facts.requests <= LARGEST and facts.wire_bytes <= HEAVIEST_BYTES


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
