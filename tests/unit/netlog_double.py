"""Writes net logs in Chromium's format, with the requests that a test describes."""

import base64
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_TYPES = (
    "URL_REQUEST_START_JOB",
    "HTTP_TRANSACTION_SEND_REQUEST_HEADERS",
    "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS",
    "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
    "URL_REQUEST_FILTERS_SET",
    "URL_REQUEST_JOB_BYTES_READ",
    "URL_REQUEST_JOB_FILTERED_BYTES_READ",
    "URL_REQUEST_REDIRECTED",
    "CANCELLED",
    "FAILED",
    "SOCKET_BYTES_RECEIVED",
)
EPOCH_MS = 1_700_000_000_000.0


class Log:
    """Writes a net log; each event is one millisecond after the one before."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._last = 0

    def start(self, url: str, method: str = "GET", initiator: str = "http://a.test") -> int:
        """Begins a request by the page at `initiator`; returns the number of the request."""
        self._last += 1
        self.happens(
            "URL_REQUEST_START_JOB",
            self._last,
            {"url": url, "method": method, "initiator": initiator},
            phase=1,
        )
        return self._last

    def send(
        self, number: int, line: str = "GET / HTTP/1.1", fields: Sequence[str] = ("Host: a.test",)
    ) -> None:
        params = {"line": f"{line}\r\n", "headers": list(fields)}
        self.happens("HTTP_TRANSACTION_SEND_REQUEST_HEADERS", number, params)

    def answer(self, number: int, status: str, fields: Iterable[str] = ()) -> None:
        params = {"headers": [f"HTTP/1.1 {status}", *fields]}
        self.happens("HTTP_TRANSACTION_READ_RESPONSE_HEADERS", number, params)

    def read(self, number: int, data: bytes, *, decoded: bytes | None = None) -> None:
        """Logs bytes of the body.

        `data` are the bytes on the wire, `decoded` those after the content decoding.
        """
        if decoded is not None:
            self.happens("URL_REQUEST_FILTERS_SET", number, {"filters": "FILTER_GZIP"})
            self.happens("URL_REQUEST_JOB_BYTES_READ", number, _bytes(data))
        shown = data if decoded is None else decoded
        self.happens("URL_REQUEST_JOB_FILTERED_BYTES_READ", number, _bytes(shown))

    def happens(
        self, kind: str, number: int, params: dict[str, Any], phase: int = 0, source: int = 1
    ) -> None:
        self._events.append(
            {
                "params": params,
                "phase": phase,
                "source": {"id": number, "start_time": "0", "type": source},
                "time": str(1000 + len(self._events)),
                "type": _TYPES.index(kind),
            }
        )

    def write(self, folder: Path, *, cut: int = 0) -> Path:
        """Writes the log to a file, without its last `cut` characters."""
        constants = {
            "timeTickOffset": EPOCH_MS,
            "logEventTypes": {name: number for number, name in enumerate(_TYPES)},
            "logSourceType": {"NONE": 0, "URL_REQUEST": 1, "SOCKET": 2},
            "logEventPhase": {"PHASE_NONE": 0, "PHASE_BEGIN": 1, "PHASE_END": 2},
        }
        events = ",\n".join(json.dumps(event) for event in self._events)
        text = f'{{"constants":{json.dumps(constants)},\n"events": [\n{events}],\n"polledData": [{{}}]\n}}\n'
        file = folder / "net.json"
        file.write_text(text[: len(text) - cut], encoding="utf-8")
        return file


def _bytes(data: bytes) -> dict[str, Any]:
    return {"byte_count": len(data), "bytes": base64.b64encode(data).decode()}
