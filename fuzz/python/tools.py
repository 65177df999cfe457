"""JSON of any tool: DevTools logs, traces, net logs, results of WebPageTest; and what its agent leaves."""

import atheris

from target import FOLDER, main, opened

with atheris.instrument_imports(include=["firstflight"]):
    # Readers are imported when there is something to read: too late to be instrumented.
    import firstflight.pages.readers.json_file  # noqa: F401


def test(data: bytes) -> None:
    """Opens `data` as a file, or as the requests in an agent's folder: the first byte says which."""
    kind, data = data[:1], data[1:]
    path = FOLDER / "input.json"
    if kind == b"a":
        folder = FOLDER / "agent"
        folder.mkdir(exist_ok=True)
        path = folder / "1_devtools_requests.json"
    path.write_bytes(data)
    opened(path if kind != b"a" else path.parent)


main(test)
