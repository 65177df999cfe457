"""Mahimahi recordings: two exchanges, parted by a separator."""

from target import FOLDER, main, opened

SEPARATOR = b"\n=====\n"
RECORDING = FOLDER / "recording"


def test(data: bytes) -> None:
    """Opens a recording whose exchanges are the parts of `data`."""
    RECORDING.mkdir(exist_ok=True)
    first, _, second = data.partition(SEPARATOR)
    (RECORDING / "save.1").write_bytes(first)
    (RECORDING / "save.2").write_bytes(second)
    opened(RECORDING)
    opened(f"{RECORDING}#http://a.example/")


main(test)
