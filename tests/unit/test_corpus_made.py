"""`make data` writes anonymous profiles of recordings, reports what it left out, and is reproducible."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import corpus
import fetch_recordings
import polars as pl
import pytest

from firstflight.pages.corpus import read_corpus

NAME = "2020_made_chrome"


def recorded(url: str, started: str) -> dict[str, object]:
    """An entry of a HAR."""
    return {
        "startedDateTime": started,
        "time": 30,
        "request": {"method": "GET", "url": url, "headers": [{"name": "Cookie", "value": "SECRET"}]},
        "response": {
            "status": 200,
            "headers": [],
            "content": {"size": 5_000, "mimeType": "text/html", "text": "CONTENT"},
            "bodySize": 5_000,
        },
        "timings": {"send": 0, "wait": 20, "receive": 10},
    }


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """One recording that opens and one that does not."""
    folder = tmp_path / "recordings"
    native = folder / "corpus" / "har"
    native.mkdir(parents=True)
    (folder / "formats").mkdir()
    entries = [
        recorded("https://www.shop.example/ann?visitor=4711", "2020-01-01T00:00:00Z"),
        recorded("https://www.shop.example/me@mail.example", "2020-01-01T00:00:01Z"),
    ]
    (native / f"{NAME}.har").write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    (native / "bad.har").write_text("{}")
    rows = ["file\tsource_repo\tpath\tlicence\tyear", f"har/{NAME}.har\town/repo\ta/b.har\tMIT\t2020"]
    rows += ["har/bad.har\town/repo\ta/c.har\tnone stated\t2020"]
    (folder / "corpus" / "MANIFEST.tsv").write_text("\n".join(rows) + "\n")
    return folder


def test_the_file_holds_facts_with_sums_sources_and_tables(
    recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "firstflight-corpus-1.tar.xz"
    assert corpus.main(recordings, file) == 0
    assert "left out: corpus/har/bad.har: " in capsys.readouterr().err
    (page,) = read_corpus(file)
    assert (page.name, len(page.resources)) == (NAME, 2)
    with tarfile.open(file) as archive:
        members = {one.name.partition("/")[2]: archive.extractfile(one) for one in archive if one.isfile()}
        contents = {name: stream.read() for name, stream in members.items() if stream}
    for told in (b"SECRET", b"CONTENT", b"visitor", b"4711", b"me@"):
        assert told not in b"".join(contents.values())
    sums = contents.pop("SHA256SUMS").decode().splitlines()
    assert sums == [f"{hashlib.sha256(contents[name]).hexdigest()}  {name}" for name in sorted(contents)]
    studies = {path.relative_to(corpus.PROJECT) for path in (corpus.PROJECT / "studies").glob("*/*.csv")}
    assert {name for name in contents if name.endswith(".parquet")} == {
        str(path.with_suffix(".parquet")) for path in studies
    }
    paper = pl.read_parquet(io.BytesIO(contents["studies/paper/measured.parquet"]))
    assert paper.equals(pl.read_csv(corpus.PROJECT / "studies/paper/measured.csv", infer_schema_length=None))


def test_the_same_recordings_give_the_same_bytes(recordings: Path, tmp_path: Path) -> None:
    files = [tmp_path / folder / "firstflight-corpus-1.tar.xz" for folder in ("one", "two")]
    for file in files:
        corpus.main(recordings, file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_recording_that_was_fetched_is_held_to_its_profile(
    recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "firstflight-corpus-1.tar.xz"
    corpus.main(recordings, file)
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path, filter="data")
    table = tmp_path / "firstflight-corpus-1" / "sources.tsv"
    fetched = tmp_path / "fetched" / f"{NAME}.har"
    fetched.parent.mkdir()
    text = (recordings / "corpus" / "har" / f"{NAME}.har").read_text()
    fetched.write_text(text)
    assert fetch_recordings.main(table, fetched.parent, []) == 0
    assert "1 of 1 give their profile" in capsys.readouterr().out
    fetched.write_text(text.replace('"bodySize": 5000', '"bodySize": 4000'))
    assert fetch_recordings.main(table, fetched.parent, [NAME]) == 1
    assert f"{NAME}: 2 of 2 resources differ" in capsys.readouterr().out
