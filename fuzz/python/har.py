"""HAR files, plain or gzipped."""

from target import FOLDER, main, opened


def test(data: bytes) -> None:
    """Opens `data` as a HAR."""
    path = FOLDER / "input.har"
    path.write_bytes(data)
    opened(path)


main(test)
