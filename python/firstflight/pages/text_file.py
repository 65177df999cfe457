"""Text files, in bounded memory."""

from __future__ import annotations

from pathlib import Path

from firstflight.errors import PageInputError


def read_text(path: Path, most_bytes: int) -> str:
    r"""Reads a UTF-8 text file; lines end in `\n`.

    Raises:
        PageInputError: The file cannot be read, is longer than `most_bytes`, or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise PageInputError(f"{path}: too many bytes", f"such a file has at most {most_bytes} bytes")
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise PageInputError(
            f"{path}: {error.strerror or error}", "check the path and its permissions"
        ) from None
    except UnicodeDecodeError as error:
        raise PageInputError(
            f"{path}: byte {error.start} is not UTF-8", "save the file as UTF-8 text"
        ) from None
