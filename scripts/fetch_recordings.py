"""Fetches the recordings that a corpus was made from, and checks that they give its profiles.

    python fetch_recordings.py sources.tsv FOLDER [NAME ...]

FOLDER receives a file per recording, called NAME and the ending of the published file. One that is there
already is not fetched again, so that FOLDER may be filled by hand where there is no network. Recordings that
are folders of many files are named and left out. firstflight must be installed. Ends with 1 where a recording
is not there, does not open, or gives other resources than its profile.
"""

import csv
import sys
import urllib.error
import urllib.request
from pathlib import Path

from firstflight.errors import FirstflightError
from firstflight.pages import Page, load_page
from firstflight.pages.corpus import anonymous

RAW = "https://raw.githubusercontent.com/{repository}/HEAD/{path}"
SECONDS = 60.0


def main(table: Path, folder: Path, wanted: list[str]) -> int:
    """Prints the result for each recording."""
    with table.open(newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines, delimiter="\t") if not wanted or row["name"] in wanted]
    if missing := set(wanted) - {row["name"] for row in rows}:
        sys.exit(f"error: {table} has no {', '.join(sorted(missing))}. hint: see its column `name`")
    folder.mkdir(parents=True, exist_ok=True)
    verdicts = []
    for row in rows:
        verdict = _checked(row, table.parent / "profiles" / f"{row['name']}.json", folder)
        sys.stdout.write(f"{row['name']}: {verdict}\n")
        verdicts.append(verdict)
    same = sum(verdict == "same" for verdict in verdicts)
    sys.stdout.write(f"{same} of {len(rows)} give their profile\n")
    return 0 if same == len(rows) else 1


def _checked(row: dict[str, str], profile: Path, folder: Path) -> str:
    if not Path(row["recording"]).suffix or "#" in row["recording"]:
        return f"a folder of files: see github.com/{row['repository']}, {row['path']}"
    file = folder / f"{row['name']}{_suffix(row['path'])}"
    try:
        if not file.exists():
            url = RAW.format(repository=row["repository"], path=row["path"])
            with urllib.request.urlopen(url, timeout=SECONDS) as answer:
                file.write_bytes(answer.read())
        page = anonymous(load_page(str(file))[0].page, "")
    except (OSError, urllib.error.URLError) as error:
        return f"not fetched: {error}"
    except FirstflightError as error:
        return f"does not open: {error.message}"
    return _compared(page, Page.from_json(profile.read_text(encoding="utf-8"), place=str(profile)))


def _suffix(path: str) -> str:
    name = Path(path).name
    return ".warc.gz" if name.endswith(".warc.gz") else Path(name).suffix


def _compared(page: Page, kept: Page) -> str:
    if len(page.resources) != len(kept.resources):
        return f"{len(page.resources)} resources instead of {len(kept.resources)}"
    others = sum(one != two for one, two in zip(page.resources, kept.resources, strict=True))
    return f"{others} of {len(kept.resources)} resources differ" if others else "same"


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: fetch_recordings.py sources.tsv FOLDER [NAME ...]")
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
