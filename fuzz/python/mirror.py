"""Mirror directories: a document, a style sheet, a script and the browser's log, parted by separators."""

from target import FOLDER, main, opened

SEPARATOR = b"\n=====\n"
HOST = FOLDER / "mirror" / "a.example"
LOGS = FOLDER / "mirror.fetchlog"
NAMES = ("index.html", "s.css", "j.js")


def test(data: bytes) -> None:
    """Opens a mirror of the parts of `data`, by its log and without it, its start page named and not."""
    HOST.mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(exist_ok=True)
    *parts, log = (data.split(SEPARATOR) + [b""] * 4)[:4]
    for name, part in zip(NAMES, parts, strict=True):
        (HOST / name).write_bytes(part)
    path = LOGS / "httpa.example"
    path.unlink(missing_ok=True)
    opened(str(HOST.parent))
    opened(f"{HOST.parent}#http://a.example/")
    path.write_bytes(log)
    opened(f"{HOST.parent}#http://a.example/")


main(test)
