"""Derives the four embedded profiles from the course's recording of the paper's pages (March 2013).

    python scripts/derive_profiles.py --data ../shared/data/course --out python/firstflight/pages/embedded

A profile holds facts only: URLs, sizes, types, times, who loads whom. Who and when are in
`firstflight.pages.discovery` and `firstflight.pages.times`; sizes on the wire are below, with the rules that
make them.

What the log's counters count (`<stats>`), since they differ from one another:

- amazon: 67 URL requests, 68 transactions: one request was redirected (`iu3`) and so took two.
- nytimes: 191 URL requests, 54 transactions. The browser's cache was warm (161 hits), so 7 transactions are
  revalidations that ended in `304 Not Modified`. The profile keeps what crossed the network: status 304, no
  body.
- wsj: 134 transactions, 133 rows. The 134th, `http://www.google.com/pagead/drt/ui` (name looked up at 4,996
  ms), was still open when the browser quit: it is the first of the "Leaked 3 URLRequest(s)" that the log ends
  with. It has no row, hence no place in the profile. The start page takes three rows: two permanent redirects
  come before it.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from dataclasses import replace
from pathlib import Path

from firstflight.errors import FirstflightError
from firstflight.pages import Page
from firstflight.pages.assemble import make_page
from firstflight.pages.discovery import Discovery, with_wire_offset
from firstflight.pages.exchange import Exchange
from firstflight.pages.fields import even_shares
from firstflight.pages.profile import read_pages_list
from firstflight.pages.readers.fetchlog import FetchLog
from firstflight.pages.readers.mirror import Recording, read_recording

NAMES = {
    "http://www.amazon.com": "amazon",
    "http://www.nytimes.com": "nytimes",
    "http://www.wsj.com": "wsj",
    "http://en.wikipedia.org/wiki/Transmission_Control_Protocol": "wikipedia",
}
SOURCE = (
    "derived from the course's recording of March 2013 (Paper, Paper.fetchlog) by scripts/derive_profiles.py"
)
TEXT = ("javascript", "json", "xml")


def derive(data: Path) -> dict[str, Page]:
    """The profiles by their name.

    Args:
        data: The folder with `Paper/`, `Paper.fetchlog/` and `Paper.pages`.
    """
    pages = {}
    for url in read_pages_list(data / "Paper.pages"):
        recording = read_recording(data / "Paper", url)
        name = NAMES[url]
        exchanges = with_wire_sizes(recording)
        discovery = on_wire(recording.discovery, recording.exchanges, exchanges)
        pages[name] = make_page(exchanges, discovery, recording.times, name=name, source=SOURCE)
    return pages


def with_wire_sizes(recording: Recording) -> list[Exchange]:
    """Sets the wire sizes, so that requests sum to `tcp.write_bytes` and responses to `tcp.read_bytes`.

    Body sizes come first (`body_sizes`). The rest of the bytes read is shared evenly among the response
    headers: 480 to 670 bytes each, which is a usual size. These shares also include bytes without a row of
    their own: the small bodies of redirects, the chunk headers of chunked bodies, and the handshakes and
    records of the few https connections. The reader sets the sizes of requests: see
    `firstflight.pages.fields.request_sizes`.
    """
    log = recording.log
    if log is None:
        raise FirstflightError("the recording has no fetch log", "keep Paper.fetchlog/ beside Paper/")
    bodies = body_sizes(recording.exchanges, log)
    headers = even_shares(log.stats["tcp.read_bytes"] - sum(bodies), len(bodies))
    return [
        replace(exchange, header_bytes=header, body_bytes=body)
        for exchange, header, body in zip(recording.exchanges, headers, bodies, strict=True)
    ]


def on_wire(discovery: Discovery, files: list[Exchange], wire: list[Exchange]) -> Discovery:
    """Converts each `at_byte` of `discovery` from an offset in the file to one on the wire, in proportion."""
    initiators = [
        by and with_wire_offset(by, files[by.resource].body_bytes, wire[by.resource].body_bytes)
        for by in discovery.initiators
    ]
    return replace(discovery, initiators=initiators)


def body_sizes(exchanges: list[Exchange], log: FetchLog) -> list[int]:
    """Body of each response on the wire.

    - 204, 304 and redirects: none.
    - Images and other binary types: the file.
    - Text: gzip -6 of the file (wikipedia: 224,365 bytes where the log's histograms add up to 224,960; amazon
      159,779 for 162,541), or the file where that is smaller.
    - Text that was sent plain: the log has the number of such answers and their bytes
      ("ShouldHaveBeenCompressed", one histogram for http and one for https), not which they are. The largest
      files that fit into that sum are taken first. (nytimes: the one answer of 353,050 bytes is 97 % of it.)
    """
    plain = _sent_plain(exchanges, log, "http:", "NoProxy") | _sent_plain(exchanges, log, "https:", "SSL")
    sizes = []
    for index, exchange in enumerate(exchanges):
        whole = exchange.body_bytes if _has_body(exchange) else 0
        compressed = (
            len(gzip.compress(exchange.read(), 6, mtime=0)) if whole and _is_text(exchange) else whole
        )
        sizes.append(whole if index in plain else min(whole, compressed))
    return sizes


def _sent_plain(exchanges: list[Exchange], log: FetchLog, scheme: str, channel: str) -> set[int]:
    logged = log.histograms.get(f"Net.Compress.{channel}.ShouldHaveBeenCompressed")
    if logged is None:
        return set()
    # The log prints the mean with one decimal. The sum is therefore known to half a byte per ten answers.
    count, left = logged.samples, logged.samples * (logged.average + 0.05)
    texts = [i for i, e in enumerate(exchanges) if e.url.startswith(scheme) and _has_body(e) and _is_text(e)]
    plain: set[int] = set()
    for index in sorted(texts, key=lambda i: -exchanges[i].body_bytes):
        if len(plain) < count and exchanges[index].body_bytes <= left:
            plain.add(index)
            left -= exchanges[index].body_bytes
    return plain


def _has_body(exchange: Exchange) -> bool:
    return exchange.body is not None and exchange.status not in (204, 304)


def _is_text(exchange: Exchange) -> bool:
    return exchange.mime.startswith("text/") or exchange.mime.endswith(TEXT)


def main(arguments: list[str] | None = None) -> int:
    """Writes the profiles; returns the exit code."""
    parser = argparse.ArgumentParser(description="Derives the embedded profiles from the course's recording.")
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with Paper/, Paper.fetchlog/ and Paper.pages"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the profiles")
    options = parser.parse_args(arguments)
    try:
        pages = derive(options.data)
    except FirstflightError as error:
        sys.stderr.write(f"error: {error.message}\nhint: {error.hint}\n")
        return 2
    for name, page in pages.items():
        (options.out / f"{name}.json").write_text(page.to_json(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
