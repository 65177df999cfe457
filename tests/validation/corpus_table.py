"""Opens every archive and page in a folder of recordings and prints the results, as TSV.

    python tests/validation/corpus_table.py FOLDER [--summary]

Columns: file, result (`ok`, or why it was refused), requests, origins, bytes on the wire, bodies, share of
initiators that firstflight's rules inferred, requests left out. `--summary` prints one Markdown row per
folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.pages import LoadedPage, load_page
from firstflight.pages.readers import format_of


@dataclass(frozen=True, slots=True)
class Row:
    """The result for one recording."""

    file: str
    result: str
    requests: int = 0
    origins: int = 0
    wire_bytes: int = 0
    bodies: int = 0
    inferred: int = 0
    left_out: int = 0


def main() -> int:
    """Prints the table. An error other than a refusal of a recording ends the program."""
    parser = argparse.ArgumentParser(description="Open every recording in a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--summary", action="store_true", help="one Markdown row per folder")
    options = parser.parse_args()
    rows = [row(options.folder, name, spec) for name, spec in specs(options.folder)]
    sys.stdout.write(summary(rows) if options.summary else table(rows))
    return 0


def specs(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and PAGE of every recording under `folder`."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.name == "PAGES.tsv":
            for line in path.read_text(encoding="utf-8").splitlines():
                page, _, start = line.partition("\t")
                yield (
                    f"{Path(name).parent.as_posix()}/{page}",
                    f"{path.parent / page}#http://{start.partition('/')[2]}",
                )
        elif format_of(path) is not None:
            yield name, str(path)


def row(folder: Path, name: str, spec: str) -> Row:
    """Opens one recording."""
    try:
        (loaded,) = load_page(spec)
    except PageInputError as error:
        return Row(name, error.message.removeprefix(f"{folder / name}: "))
    facts = loaded.page.describe()
    return Row(
        name,
        "ok",
        facts.requests,
        facts.origins,
        facts.wire_bytes,
        len(loaded.bodies),
        facts.inferred,
        left_out(loaded),
    )


def left_out(loaded: LoadedPage) -> int:
    """How many recorded requests are not in the page."""
    notes = (note.rpartition(": ") for note in loaded.notes if note.startswith("left out"))
    return sum(int(count) for _, _, count in notes)


def table(rows: list[Row]) -> str:
    """The rows as TSV."""
    lines = ["file\tresult\trequests\torigins\twire_bytes\tbodies\tinferred_share\tleft_out"]
    for r in rows:
        share = f"{r.inferred / r.requests:.2f}" if r.requests else ""
        counts = (r.requests, r.origins, r.wire_bytes, r.bodies, share, r.left_out)
        lines.append("\t".join([r.file, r.result, *map(str, counts)]))
    return "\n".join(lines) + "\n"


def summary(rows: list[Row]) -> str:
    """One Markdown row per folder."""
    lines = [
        "| recordings | opened | requests | MB on the wire | bodies | inferred | left out |",
        "|---|---|---|---|---|---|---|",
    ]
    for folder in dict.fromkeys(Path(r.file).parent.as_posix() for r in rows):
        own = [r for r in rows if Path(r.file).parent.as_posix() == folder]
        requests = sum(r.requests for r in own)
        cells = (
            folder,
            f"{sum(r.result == 'ok' for r in own)} of {len(own)}",
            f"{requests:,}",
            f"{sum(r.wire_bytes for r in own) / 1e6:,.1f}",
            f"{sum(r.bodies for r in own):,}",
            f"{sum(r.inferred for r in own) / max(requests, 1):.0%}",
            f"{sum(r.left_out for r in own):,}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
