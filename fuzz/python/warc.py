"""WARC files, plain, gzipped, or in a WACZ with a list of pages: the first byte says which."""

import gzip
import zipfile
from pathlib import Path

from target import FOLDER, main, opened

SEPARATOR = b"\n=====\n"


def test(data: bytes) -> None:
    """Opens `data` as an archive of the kind that its first byte says."""
    kind, data = data[:1], data[1:]
    if kind == b"z":
        opened(zipped(data))
        return
    path = FOLDER / ("input.wacz" if kind == b"r" else "input.warc")
    path.write_bytes(gzip.compress(data, 1) if kind == b"g" else data)
    opened(path)


def zipped(data: bytes) -> Path:
    """A WACZ: its list of pages, the name of a WARC, that WARC, and a HAR."""
    path = FOLDER / "made.wacz"
    listed, name, warc, har = (data.split(SEPARATOR, 3) + [b""] * 3)[:4]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("pages/pages.jsonl", listed)
        archive.writestr(name.decode("latin-1").partition("\0")[0] or "archive/x.warc", warc)
        archive.writestr("x.har", har)
    return path


main(test)
