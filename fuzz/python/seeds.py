"""Writes what each target begins with, made here: `python seeds.py FOLDER` makes FOLDER/TARGET/0, 1, ...

A fuzzer finds its way into a format much sooner from one whole file of it.
"""

import gzip
import json
import struct
import sys
import zlib
from pathlib import Path

SEPARATOR = b"\n=====\n"
HTML = (
    b"<!doctype html><base href=/><link rel=stylesheet href=s.css><style>@import 'i.css';"
    b"@font-face{src:url(f.woff)}</style><script src=j.js integrity=sha256-x></script><img srcset='i.png 2x'>"
    b"<noscript><img src=n.png></noscript><script>f('https:\\/\\/b.example\\/x.json')</script>"
    b"<iframe src='//c.example/'></iframe><!-- <img src=no.png> --><body background=b.gif onload=f()>"
)
CSS = b"@import url(i.css); @font-face { src: url('f.woff2') } p { background: url(i.png) }"
SCRIPT = b"var u = 'https://a.example/late.js?v=12345678'; fetch('/data.json')"
MOMENT = "2024-01-01T00:00:00.000Z"


def har_entry(url: str, mime: str, text: str, **more: object) -> dict[str, object]:
    """One entry, as Chrome writes it."""
    return {
        "startedDateTime": MOMENT,
        "time": 50.5,
        "pageref": "p",
        "request": {
            "method": "GET",
            "url": url,
            "headers": [{"name": "Referer", "value": "http://a.example/"}],
        },
        "response": {
            "status": 200,
            "headers": [{"name": "Content-Type", "value": mime}],
            "content": {"size": len(text), "mimeType": mime, "text": text},
            "redirectURL": "",
            "headersSize": 100,
            "bodySize": len(text),
            "_transferSize": 100 + len(text),
        },
        "timings": {
            "blocked": 1,
            "dns": 2,
            "connect": 30,
            "ssl": 10,
            "send": 0.1,
            "wait": 20,
            "receive": 7.4,
        },
        **more,
    }


def har() -> list[bytes]:
    """A page with a script's stack, a redirect, a coding and a cached answer."""
    stack = {"type": "script", "stack": {"callFrames": [{"url": "http://a.example/j.js", "lineNumber": 1}]}}
    entries = [
        har_entry("http://a.example/", "text/html", HTML.decode()),
        har_entry(
            "http://a.example/j.js",
            "text/javascript",
            SCRIPT.decode(),
            _initiator={"type": "parser", "url": "http://a.example/"},
        ),
        har_entry(
            "https://a.example/data.json", "application/json", "{}", _initiator=stack, _fromCache="disk"
        ),
        har_entry("http://a.example/i.png", "image/png", "aGVsbG8="),
    ]
    entries[3]["response"] |= {
        "content": {"size": 5, "mimeType": "image/png", "text": "aGVsbG8=", "encoding": "base64"}
    }
    moved = har_entry("http://a.example/old", "", "")
    moved["response"] |= {"status": 302, "redirectURL": "/"}
    page = {"id": "p", "startedDateTime": MOMENT, "pageTimings": {"onLoad": 300, "onContentLoad": 200}}
    log = {"version": "1.2", "creator": {"name": "x"}, "pages": [page]}
    return [
        json.dumps({"log": {**log, "entries": entries[:1]}}).encode(),
        json.dumps({"log": {**log, "entries": [moved, *entries]}}).encode(),
        gzip.compress(json.dumps({"log": {"entries": entries}}).encode(), mtime=0),
    ]


def warc_record(kind: str, url: str, block: bytes, **fields: str) -> bytes:
    """One record."""
    head = {
        "WARC-Type": kind,
        "WARC-Target-URI": url,
        "WARC-Date": MOMENT,
        "Content-Type": "application/http",
    }
    head |= {name.replace("_", "-"): value for name, value in fields.items()}
    lines = [f"{name}: {value}" for name, value in {**head, "Content-Length": len(block)}.items()]
    return ("\r\n".join(["WARC/1.0", *lines]) + "\r\n\r\n").encode() + block + b"\r\n\r\n"


def answer(mime: bytes, body: bytes, more: bytes = b"") -> bytes:
    """A response as it came over the wire."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%s\r\n%s" % (mime, more, body)


def warc() -> list[bytes]:
    """A page with codings, chunks, a revisit and a redirect: plain, gzipped, in a WACZ."""
    page = "http://a.example/"
    coded = zlib.compress(CSS)
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(SCRIPT), SCRIPT)
    info = b'json-metadata: {"pages": [{"url": "http://a.example/", "timestamp": "2024-01-01"}]}\r\n'
    whole = b"".join(
        [
            warc_record("warcinfo", "", info),
            warc_record(
                "request", page, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", WARC_Concurrent_To="<urn:1>"
            ),
            warc_record(
                "response",
                page,
                answer(b"text/html", HTML),
                WARC_Record_ID="<urn:1>",
                WARC_Payload_Digest="sha1:x",
            ),
            warc_record(
                "response", f"{page}s.css", answer(b"text/css", coded, b"Content-Encoding: deflate\r\n")
            ),
            warc_record(
                "response",
                f"{page}j.js",
                answer(b"text/javascript", chunked, b"Transfer-Encoding: chunked\r\n"),
            ),
            warc_record(
                "revisit", f"{page}again", b"HTTP/1.1 304 Not Modified\r\n\r\n", WARC_Payload_Digest="sha1:x"
            ),
            warc_record("response", f"{page}old", b"HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n"),
            warc_record("resource", f"{page}i.png", b"\x89PNG"),
        ]
    )
    short = warc_record("response", page, answer(b"text/html", b"<img src=i.png>"))
    listed = b'{"format": "json-pages-1.0"}\n{"url": "http://a.example/", "ts": "2024-01-01T00:00:00Z"}'
    timed = b'{"url": "http://a.example/", "ts": "2024-01-01T00:00:00Z", "har": "x.har"}'
    told = har_entry(page, "text/html", "", _warcRecordId="<urn:1>")
    log = {"pages": [{"id": "p", "startedDateTime": MOMENT}], "entries": [told]}
    return [
        b"p" + whole,
        b"p" + short,
        b"g" + short,
        b"z" + SEPARATOR.join([listed, b"archive/x.warc", whole]),
        b"z" + SEPARATOR.join([listed, b"archive/x.warc.gz", short]),
        b"z" + SEPARATOR.join([timed, b"archive/x.warc", whole, json.dumps({"log": log}).encode()]),
    ]


def varint(value: int) -> bytes:
    """A number, as Protocol Buffers write it."""
    head = b"".join(
        bytes([value >> shift & 0x7F | 0x80]) for shift in range(0, max(value.bit_length() - 7, 0), 7)
    )
    return head + bytes([value >> (7 * len(head)) & 0x7F])


def piece(number: int, data: bytes) -> bytes:
    """A field with bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(first_line: bytes, body: bytes = b"", **fields: bytes) -> bytes:
    """An HTTP message."""
    head = b"".join(piece(2, piece(1, name.encode()) + piece(2, value)) for name, value in fields.items())
    return piece(1, first_line) + head + piece(3, body)


def mahimahi() -> list[bytes]:
    """A document and a style sheet."""

    def exchange(target: bytes, body: bytes, mime: bytes) -> bytes:
        asked = message(b"GET %s HTTP/1.1" % target, Host=b"a.example", Referer=b"http://a.example/")
        said = message(b"HTTP/1.1 200 OK", body, **{"Content-Type": mime})
        return piece(1, b"10.0.0.1") + b"\x10\x50\x18\x01" + piece(4, asked) + piece(5, said)

    return [exchange(b"/", HTML, b"text/html") + SEPARATOR + exchange(b"/s.css", CSS, b"text/css")]


def mirror() -> list[bytes]:
    """Three files and the browser's log of them."""
    log = b"""*** Renamed /long?x=1 to /0123456789abcdef0123456789abcdef ***
<stats>
c:tcp.write_bytes:\t900
</stats>
<resolves>
strt (ms)| end (ms)| len (ms)| error| host
1.0|2.0|1.0|0|a.example:80 -> 10.0.0.1
</resolves>
<transactions>
strt (ms)| end (ms)| len (ms)| url
10.0|30.0|20.0|http://a.example/
40.0|60.0|20.0|http://a.example/s.css
</transactions>
<responses>
status | mime | charset | url -> redirect
OK|text/html|utf-8|http://a.example/ -> nil
OK|text/css||http://a.example/s.css -> nil
</responses>
<queries>
Histogram: Net.Connect recorded 3 samples, average = 1.5
</queries>
"""
    return [SEPARATOR.join([HTML, CSS, SCRIPT, log]), SEPARATOR.join([b"<img src=i.png>", b"", b"", log])]


def scan() -> list[bytes]:
    """Markup, a style sheet, a header."""
    header = (
        b"Content-Type: text/html\nStrict-Transport-Security: x\nSet-Cookie: a=b; Secure; SameSite=None\n"
    )
    return [
        HTML,
        CSS,
        SCRIPT,
        header,
        b"<![if IE]><![CDATA[x]]><?php ?><svg><image xlink:href=a.svg></svg>",
        b"HTTP://A.example:80/x y#z",
    ]


def coding() -> list[bytes]:
    """A body in each coding that the standard library has, and chunks."""
    plain = zlib.compressobj(wbits=-15)
    bare = plain.compress(HTML) + plain.flush()
    return [
        b"\x00" + gzip.compress(HTML, mtime=0),
        b"\x01" + zlib.compress(HTML),
        b"\x01" + bare,
        b"\x15" + zlib.compress(zlib.compress(HTML)),
        b"\x20" + b"5;x=1\r\nhello\r\n0\r\n\r\n",
        b"\x02" + bytes.fromhex("0b028068656c6c6f03"),
        b"\x03" + bytes.fromhex("28b52ffd0458290000") + b"hello" + bytes.fromhex("2dcf9dc0"),
    ]


def profile() -> dict[str, object]:
    """A page of two resources."""
    document = {
        "url": "http://a.example/",
        "kind": "document",
        "mime": "text/html",
        "request_bytes": 400,
        "header_bytes": 200,
        "body_bytes": 300,
    }
    style = {
        **document,
        "url": "https://b.example:8443/s.css?x=1",
        "kind": "style",
        "mime": "text/css",
        "initiator": {"resource": 0, "via": "parser", "at_byte": 20, "delay_ms": 1.5},
    }
    missing = [{"url": "http://a.example/x", "reason": "y"}]
    return {
        "format": "firstflight-profile/1",
        "name": "small",
        "resources": [document, style],
        "missing": missing,
        "hosts": [{"host": "a.example", "rtt_ms": 20.5, "lookup_ms": 2.0}],
    }


def page() -> list[bytes]:
    """A small page; a script that asks for data, and a redirect."""
    longer = profile()
    document, style = longer["resources"]
    by_script = {"resource": 1, "via": "script", "after": 0}
    moved = {"status": 302, "body_bytes": 0, "kind": "frame", "mime": "", "initiator": by_script}
    longer["resources"] = [
        document,
        {**style, "url": "http://a.example/j.js", "kind": "script", "mime": "text/javascript", "cpu_ms": 5.5},
        {**style, "kind": "xhr", "mime": "application/json", "method": "POST", "initiator": by_script},
        {**style, **moved, "url": "http://c.example/old"},
        {
            **document,
            "url": "http://c.example/",
            "kind": "frame",
            "initiator": {"resource": 3, "via": "redirect"},
        },
    ]
    return [json.dumps(profile()).encode(), json.dumps(longer).encode()]


def job() -> list[bytes]:
    """A load, a program's load, a program with pages, a calibration."""
    path = {
        "topology": "star",
        "rtt_ms": 20.5,
        "down_bps": 4_000_000,
        "up_bps": 256_000,
        "queue": {"packets": 9},
    }
    path |= {"loss": 0.1, "seed": 3, "origin_rtt_ms": [1.0, 5.0]}
    around = {"path": path, "mode": "tfo", "cookies": "warm", "scheme": "recorded", "keep_alive": True}
    load = {
        **around,
        "page": profile(),
        "bodies": {"0": "x"},
        "headers": {"0": [["a", "b"]]},
        "timeout_ms": 9,
    }
    command = {"kind": "command", "argv": ["x"], "env": {"A": "b"}, "accepts": [0, 8], "result": "r"}
    program = {**around, "pages": [{"page": profile()}], "program": {"argv": ["x"]}, "late_bound_ms": 2.0}
    probes = {"path": {"rtt_ms": 20.0}, "probes": 9, "probe_gap_ms": 5.0, "rate_ms": 100, "origins": 2}
    documents = (load, {**load, "client": command}, program, probes)
    return [json.dumps(document).encode() for document in documents]


def http() -> list[bytes]:
    """Responses, targets, ranges: two bytes say how they are cut."""
    plain = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody"
    chunks = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4;x=y\r\nbody\r\n0\r\nt: 1\r\n\r\n"
    moved = b"HTTP/1.1 302 Found\r\nLocation: /b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    targets = b"/p?a=1&t=1353542341;x=%3B /p?a=1&t=1753542342;x=;"
    return [
        b"\x00\x20" + data for data in (plain, chunks, moved, targets, b"bytes=0-5", b"bytes=-3", b"bytes=2-")
    ]


def packet() -> list[bytes]:
    """A SYN with a cookie and data; the fields of a short connection."""
    ip = bytes.fromhex("4500003c00010000400600 00c6120001c6130001".replace(" ", ""))
    tcp = bytes.fromhex("9c400050000003e800000000b002ffff00000000") + bytes.fromhex(
        "0101220a0102030405060708"
    )
    fields = [
        (2, 1, 1, 8, 1000, 0, 100),
        (1, 1, 3, 0, 5000, 1101, 0),
        (0, 1, 2, 0, 1101, 5001, 50),
        (1, 1, 2, 0, 5001, 1151, 1400),
        (0, 1, 6, 0, 1151, 6401, 0),
        (1, 1, 6, 0, 6401, 1152, 0),
    ]
    return [ip + tcp + b"GET /", b"".join(struct.pack(">BBBBIIH", *segment) for segment in fields)]


def texts() -> list[bytes]:
    """A list, a profile, a plan, values."""
    plan = b"""pages = ["wikipedia"]
rtt = [20, 100.5]
down = ["4mbit", "unlimited"]
up = "256kbit"
topology = "access"
loss = 0.01
queue = "64kB"
mode = ["tcp", "tfo"]
client = "loader"
scheme = "recorded"
keep_alive = false
repeats = 3
jobs = "auto"
seed = 7
"""
    values = [b"20,100,200", b"4mbit", b"2.5 Gbit", b"unlimited", b"1000p", b"64kB", b"1e3", b"nan", b"auto"]
    lists = b"lhttp://a.example/\n\n  https://b.example:8443/x?y=z  \n"
    return [lists, b"j" + json.dumps(profile()).encode(), b"t" + plan, *(b"u" + value for value in values)]


def load(mode: str, block: int) -> dict[str, object]:
    """One load, as the journal has it."""
    row = {
        "load_id": f"small-020-{block:02d}-{mode}",
        **{
            "block": block,
            "order": block,
            "repeat": block,
            "page": "small",
            "engine": "emulate",
            "client": "loader",
        },
        **{
            "mode": mode,
            "cookies": "warm",
            "topology": "access",
            "rtt_ms": 20.0,
            "down_mbps": 4.0,
            "up_mbps": None,
        },
        **{
            "loss": 0.0,
            "seed": 1,
            "started_at": "2026-01-02T03:04:05.678+00:00",
            "plt_ms": 100.5,
            "first_byte_ms": 40.0,
        },
        **{"requests": 1, "failed_requests": 0, "unmatched_requests": 0, "connections": 1, "tfo_offered": 1},
        **{
            "tfo_accepted": 1,
            "bytes_down": 500,
            "bytes_up": 400,
            "retransmits": 0,
            "status": "ok",
            "error": None,
        },
    }
    request = {
        **{
            "index": 0,
            "url": "http://a.example/",
            "origin": "http://a.example",
            "connection": 0,
            "queued_ms": 0.0,
        },
        **{
            "connect_start_ms": 0.0,
            "connect_end_ms": 20.0,
            "sent_ms": 20.0,
            "first_byte_ms": 40.0,
            "end_ms": 100.5,
        },
        **{"status": 200, "mime": "text/html", "body_bytes": 300, "wire_bytes": 500, "initiator": None},
    }
    connection = {
        **{
            "connection": 0,
            "origin": "http://a.example",
            "opened_ms": 0.0,
            "syn_payload_bytes": 0,
            "cookie": "none",
        },
        **{
            "syn_data_acked": False,
            "syn_retransmits": 0,
            "bytes_down": 500,
            "bytes_up": 400,
            "closed_ms": None,
        },
    }
    relay = {
        "packets": 9,
        "late_p50_ms": 0.1,
        "late_p99_ms": 0.2,
        "late_max_ms": 0.3,
        "late": False,
        "dropped": 0,
    }
    proof = {"ok": True, "disagreements": []}
    return {"load": row, "requests": [request], "connections": [connection], "proof": proof, "relay": relay}


def journal() -> list[bytes]:
    """One load, a block of two, and a torn line."""
    lines = [json.dumps(load(mode, block)).encode() + b"\n" for block in (0, 1) for mode in ("tcp", "tfo")]
    return [lines[0], b"".join(lines), b"".join(lines) + lines[0][:50]]


def tools() -> list[bytes]:
    """A log of the DevTools protocol, a trace, a net log, a result of WebPageTest; what an agent leaves."""
    answer = {"status": 200, "statusCode": 200, "mimeType": "text/html", "protocol": "h2", "connectionId": 7}
    answer |= {"headers": {"content-type": "text/html"}, "encodedDataLength": 40, "url": "https://a.example/"}
    answer["timing"] = {"requestTime": 10.0, "connectStart": 1, "connectEnd": 2, "sendStart": 3, "sendEnd": 4}
    asked = {"url": "https://a.example/", "method": "GET", "initialPriority": "High", "headers": {}}
    of = {"requestId": "1", "loaderId": "1", "frameId": "f", "type": "Document", "timestamp": 10.0}
    log = [
        {"method": "Network.requestWillBeSent", "params": {**of, "request": asked, "wallTime": 1e9}},
        {"method": "Network.responseReceived", "params": {"requestId": "1", "response": answer}},
        {"method": "Network.loadingFinished", "params": {**of, "encodedDataLength": 540}},
        {"method": "Page.loadEventFired", "params": {"timestamp": 11.0}},
    ]
    data = {"requestId": "1", "frame": "f", "url": "https://a.example/", "resourceType": "Document"}
    events = [
        {"name": name, "ph": "I", "ts": ts, "args": {"data": {**data, **more}, "frame": "f"}}
        for name, ts, more in (
            ("navigationStart", 1, {"isOutermostMainFrame": True}),
            ("ResourceSendRequest", 2, {}),
            ("ResourceReceiveResponse", 3, answer),
            ("ResourceFinish", 4, {"encodedDataLength": 540}),
        )
    ]
    types = [
        "URL_REQUEST_START_JOB",
        "HTTP_TRANSACTION_SEND_REQUEST",
        "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
    ]
    said = [
        {"url": "https://a.example/", "method": "GET", "request_type": "main frame"},
        {},
        {"headers": ["HTTP/1.1 200", "content-type: text/html"]},
    ]
    netlog = {
        "constants": {
            "logEventTypes": {name: number for number, name in enumerate(types)},
            "logSourceType": {"URL_REQUEST": 1},
            "logEventPhase": {"PHASE_BEGIN": 1, "PHASE_END": 2},
            "timeTickOffset": 1,
        },
        "events": [
            {"source": {"id": 1, "type": 1}, "type": n, "time": str(n), "phase": 1, "params": params}
            for n, params in enumerate(said)
        ],
    }
    request = {
        "full_url": "https://a.example/",
        "responseCode": 200,
        "contentType": "text/html",
        "load_start": 9,
    }
    request |= {"load_end": 90, "ttfb_ms": 20, "objectSize": 5, "headers": {"response": ["HTTP/1.1 200 OK"]}}
    view = {"firstView": {"date": 1, "loadTime": 90, "requests": [request]}}
    agent = {"pageData": {"date": 1}, "requests": [request]}
    whole = [log, {"traceEvents": events}, netlog, {"data": {"runs": {"1": view, "2": view}}}]
    return [*(b"j" + json.dumps(document).encode() for document in whole), b"a" + json.dumps(agent).encode()]


TARGETS = (har, tools, warc, mahimahi, mirror, scan, coding, texts, journal, page, job, http, packet)


def main(folder: Path) -> None:
    """Writes the seeds of every target."""
    for target in TARGETS:
        (folder / target.__name__).mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(target()):
            (folder / target.__name__ / str(number)).write_bytes(seed)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
