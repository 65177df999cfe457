"""Content codings and chunks. The first byte says which codings, in which order, and if there are chunks."""

import atheris

from target import main, refused_or

with atheris.instrument_imports(include=["firstflight"]):
    from firstflight.pages.bodies import BodyStore, CodingError, decoded, encoded, keep

CODINGS = ("gzip", "deflate", "br", "zstd")
MOST_PIECE = 1 << 20
MOST_OUTPUT = 1 << 24
STORE = BodyStore("input")


def test(data: bytes) -> None:
    """Undoes codings in `data`; does and undoes them; keeps `data` as a body in them."""
    flags, data = data[0] if data else 0, data[1:]
    names = [CODINGS[flags & 3]] + ([CODINGS[flags >> 2 & 3]] if flags & 16 else [])
    read(data, names)
    for name in names:
        assert b"".join(decoded([encoded(data, [name], len(data))], [name])) == data
    chunked, encoding = bool(flags & 32), ", ".join(names)
    body = refused_or(lambda: keep(STORE, [data], "x", chunked=chunked, encoding=encoding, scan=True))
    assert body
    assert body.file.stat().st_size <= len(data)


def read(data: bytes, names: list[str]) -> None:
    """However much comes out of `data`, it comes in pieces."""
    total = 0
    try:
        for piece in decoded([data], names):
            assert len(piece) <= MOST_PIECE
            total += len(piece)
            if total > MOST_OUTPUT:
                return
    except CodingError as error:
        assert str(error)


main(test)
