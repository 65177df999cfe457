"""The pages of the grid: anonymous profiles of other people's recordings, committed in the folder `PAGES`.

    python tests/validation/accuracy_pages.py CORPUS

This draws them at random (fixed seed) from the recordings of a corpus, and writes them without content, as
`firstflight.pages.corpus.anonymous` makes them.
"""

import csv
import json
import random
import sys
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.pages import Page, load_page
from firstflight.pages.corpus import anonymous

PAGES = Path(__file__).parents[1] / "data" / "pages"

SEED = 2011
CORPUS_PAGES = 40
SMALLEST, LARGEST = 5, 400
"""The least and the most requests of a page."""
HEAVIEST_BYTES = 3_000_000

_ARCHIVES = ("*.har", "*.warc.gz")


def main(corpus: Path) -> int:
    """Writes the profiles of the pages that the seed draws from the corpus."""
    with (corpus / "MANIFEST.tsv").open(newline="", encoding="utf-8") as lines:
        sources = {row["file"]: source(row) for row in csv.DictReader(lines, delimiter="\t")}
    for name in drawn(corpus):
        [recorded] = load_page(str(corpus / name))
        file(name).write_text(text(anonymous(recorded.page, sources[name])), encoding="utf-8")
    return 0


def file(name: str) -> Path:
    """The profile of the page named after its recording, such as `har/native/2016_bbc_wpt.har`."""
    return PAGES / f"{Path(name).name.removesuffix('.har').removesuffix('.warc.gz')}.json"


def drawn(corpus: Path) -> list[str]:
    """A random sample of the recordings that open and are small enough for many loads on slow links."""
    files = sorted(found for pattern in _ARCHIVES for found in corpus.rglob(pattern))
    candidates = [str(found.relative_to(corpus)) for found in files if _fits(found)]
    return sorted(random.Random(SEED).sample(sorted(candidates), CORPUS_PAGES))


def source(row: dict[str, str]) -> str:
    """The source that a profile names, from the manifest's row of its recording."""
    return f"{row['year']}, derived from {row['path']} of github.com/{row['source_repo']}"


def text(page: Page) -> str:
    """The profile with a line for each resource, so that a diff shows what an importer changed."""
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
