"""Makes the data for others: profiles of recordings, tables of studies, sources of what is not passed on.

    python scripts/corpus.py RECORDINGS OUT.tar.xz

RECORDINGS has `corpus/` with `MANIFEST.tsv`, and `formats/`. OUT is one folder:

- `profiles/NAME.json`: each recording that opens, anonymous (`firstflight.pages.corpus`): facts such
  as sizes and times, no content, no path, no query, no header;
- `studies/NAME/TABLE.parquet`: the tables of the studies;
- `sources.tsv`: what each profile was made from, which stays with its publishers: repository, path, licence
  as that repository states it, and the SHA-256 of the file that was read. `fetch_recordings.py` fetches it
  and checks that it gives the same profile;
- `README.md` and `SHA256SUMS`, which `sha256sum --check` reads.

The same input gives the same bytes. What does not open is named on standard error, with the reason.
"""

import csv
import hashlib
import io
import re
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import polars as pl

import firstflight
from firstflight.errors import FirstflightError
from firstflight.pages import Page, load_page
from firstflight.pages.corpus import anonymous

PROJECT = Path(__file__).parents[1]
FORMATS = "pmeenan/waterfall-tools"
"""The repository of the files in `formats/`; its licence is Apache-2.0."""
SAME_VISIT = re.compile(r"netlog\.amazon|tcpdump\.|devtools-log\.amazon\.json")
"""Files to leave out: other recordings of a visit that a WebPageTest trace covers, and packet captures."""
PERSONAL = re.compile(r"\?|@|%40|[0-9a-f]{16,}|\d{9,}")
"""Parts that no URL of an anonymous profile may contain: queries, e-mail addresses, tokens."""

README = """# Profiles of {pages} recorded pages, and the tables of firstflight's studies

Made by `make data` of firstflight {version}. `profiles/` holds facts about recordings (sizes, types, times,
hosts, who loads whom) and none of their content: numbers stand in place of paths, queries and host labels
that could be tokens. docs/profile.md of firstflight describes the format. Facts and tables may be used under
the terms of firstflight (MIT or Apache-2.0).

`sources.tsv` names what each profile was made from. The recordings stay with their publishers; their licences
are given as the repositories state them ("none stated" where they state none).
`python fetch_recordings.py sources.tsv FOLDER` fetches them and checks that they give these profiles. Before
they were read, cookies, authorization and posted values were masked (same length), and of archives with
several pages one was kept. So a SHA-256 is that of the file that was read, not of the published one.

`sha256sum --check SHA256SUMS` checks every file. `firstflight pages --corpus FILE.tar.xz` lists the pages;
with the file in `~/.local/share/firstflight`, `firstflight run corpus:NAME` loads one.
"""


@dataclass(frozen=True)
class Source:
    """A recording and its origin. The fields are the columns of `sources.tsv`."""

    name: str
    recording: str
    """Path below `RECORDINGS`."""
    repository: str
    path: str
    licence: str
    year: str
    sha256: str = ""
    requests: int = 0


def main(recordings: Path, out: Path) -> int:
    """Writes the archive; lists on standard error what it left out."""
    made = {}
    sources = []
    for source in _sources(recordings):
        try:
            page = _page(recordings, source)
        except FirstflightError as error:
            sys.stderr.write(f"left out: {source.recording}: {error.message}\n")
            continue
        content = page.to_json().encode()
        _refuse_personal(page, source)
        made[f"profiles/{source.name}.json"] = content
        digest = _digest(recordings / source.recording.partition("#")[0])
        sources.append(replace(source, sha256=digest, requests=len(page.resources)))
    made |= {f"studies/{name}": content for name, content in _tables()}
    made["sources.tsv"] = _table(sources)
    made["fetch_recordings.py"] = (PROJECT / "scripts" / "fetch_recordings.py").read_bytes()
    made["README.md"] = README.format(pages=len(sources), version=firstflight.__version__).encode()
    sums = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(made.items()))
    made["SHA256SUMS"] = "".join(sums).encode()
    _pack(out, made)
    size = out.stat().st_size
    sys.stderr.write(f"wrote {out}: {len(sources)} profiles, {len(made)} files, {size / 1000:.0f} kB\n")
    return 0


def _sources(recordings: Path) -> Iterator[Source]:
    """Every recording, each with a unique name."""
    with (recordings / "corpus" / "MANIFEST.tsv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    for row in rows:
        file = row["file"].rstrip("/")
        if "/traces/" in file or file.startswith("depgraph/"):
            continue
        name = re.sub(r"(\.har|\.warc\.gz)$", "", Path(file).name)
        if "tp5n" in file:
            name, file = f"2011_{name}_tp5n", f"{file}#{row['page_url']}"
        yield Source(name, f"corpus/{file}", row["source_repo"], row["path"], row["licence"], row["year"])
    for file in sorted((recordings / "formats").iterdir()):
        if not SAME_VISIT.match(file.name):
            name = f"2026_{re.sub(r'[.](json|har)?[.]?(gz|zip)$', '', file.name).replace('.', '-')}"
            yield Source(name, f"formats/{file.name}", FORMATS, file.name, "Apache-2.0", "2026")


def _page(recordings: Path, source: Source) -> Page:
    """The first page of a recording, made anonymous."""
    said = f"{source.year}, derived from {source.path} of github.com/{source.repository}"
    return replace(
        anonymous(load_page(f"{recordings}/{source.recording}")[0].page, said), name=source.name
    ).checked(place=source.name)


def _refuse_personal(page: Page, source: Source) -> None:
    for resource in page.resources:
        if PERSONAL.search(resource.url):
            sys.exit(f"error: {source.recording}: {resource.url}: may name a visitor. hint: see anonymous()")


def _digest(path: Path) -> str:
    """The SHA-256 of a file. For a folder, that of the list of its files and their SHA-256."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = sorted(file for file in path.rglob("*") if file.is_file())
    listed = "".join(f"{_digest(file)}  {file.relative_to(path)}\n" for file in files)
    return hashlib.sha256(listed.encode()).hexdigest()


def _table(sources: Sequence[Source]) -> bytes:
    columns = [column.name for column in fields(Source)]
    lines = ["\t".join(columns)]
    lines += ["\t".join(str(getattr(source, column)) for column in columns) for source in sources]
    return ("\n".join(lines) + "\n").encode()


def _tables() -> Iterator[tuple[str, bytes]]:
    for file in sorted((PROJECT / "studies").glob("*/*.csv")):
        written = io.BytesIO()
        pl.read_csv(file, infer_schema_length=None).write_parquet(written, compression="zstd")
        yield f"{file.parent.name}/{file.stem}.parquet", written.getvalue()


def _pack(out: Path, made: dict[str, bytes]) -> None:
    """Writes a tar archive without owner and times, so that the same input gives the same bytes."""
    out.parent.mkdir(parents=True, exist_ok=True)
    top = out.name.removesuffix(".tar.xz")
    partial = out.with_suffix(".partial")
    with tarfile.open(partial, mode="w:xz", format=tarfile.PAX_FORMAT, preset=9) as archive:
        for name, content in sorted(made.items()):
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    partial.rename(out)


if __name__ == "__main__":
    if len(sys.argv) != 3 or not Path(sys.argv[1], "corpus", "MANIFEST.tsv").is_file():
        sys.exit("usage: corpus.py RECORDINGS OUT.tar.xz. hint: RECORDINGS has corpus/MANIFEST.tsv")
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
