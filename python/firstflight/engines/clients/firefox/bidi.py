"""WebDriver BiDi (w3.org/TR/webdriver-bidi), as Firefox speaks it: JSON over one WebSocket (RFC 6455).

Responses may arrive in any order, with events in between. Not supported: WebSocket extensions, and messages
that are not text.
"""

import base64
import json
import os
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

Params = dict[str, Any]
"""Parameters of a command or an event, or a result, as the standard defines them."""

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_LAST = 0x80
_MASKED = 0x80
_SHORT, _TWO_BYTES, _EIGHT_BYTES = 126, 126, 127
_PIECE = 1 << 16


class BidiError(Exception):
    """The browser refused a command, did not answer in time, or is gone.

    Attributes:
        is_refused: Whether the browser refused the command. Then the browser works, and the error is the
            page's.
    """

    def __init__(self, message: str, *, is_refused: bool = False) -> None:
        super().__init__(message)
        self.is_refused = is_refused


class Bidi:
    """A connection to a browser.

    Args:
        port: The port on 127.0.0.1 that it listens on.
        handler: Called with the name and the parameters of each event, while `call` or `listen` waits.
    """

    def __init__(self, port: int, handler: Callable[[str, Params], None]) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._handler = handler
        self._unread = b""
        self._last_id = 0
        self._shake_hands(port)

    def call(self, method: str, params: Params | None = None, timeout_s: float = 30.0) -> Params:
        """Sends a command and waits for its result.

        Raises:
            BidiError: The browser refused the command, did not answer in time, or is gone.
        """
        number, deadline_s = self.post(method, params), time.monotonic() + timeout_s
        while True:
            message = self._message(deadline_s)
            if message is None:
                raise BidiError(f"{method}: no answer after {timeout_s:g} s")
            if message.get("id") != number:
                self._note(message)
            elif message["type"] == "error":
                raise BidiError(f"{method}: {message['message']}", is_refused=True)
            else:
                return dict(message["result"])

    def post(self, method: str, params: Params | None = None) -> int:
        """Sends a command without waiting for its result; returns the command's number."""
        self._last_id += 1
        command = {"id": self._last_id, "method": method, "params": params or {}}
        self._send(_TEXT, json.dumps(command).encode())
        return self._last_id

    def listen(self, duration_s: float) -> None:
        """Passes events to the handler for this many seconds."""
        deadline_s = time.monotonic() + duration_s
        while message := self._message(deadline_s):
            self._note(message)

    def _note(self, message: Params) -> None:
        if message.get("type") == "event":
            self._handler(message["method"], message["params"])

    def _shake_hands(self, port: int) -> None:
        """Opens a WebSocket (RFC 6455, section 4.1). The peer is known, so its accept key is not checked."""
        key = base64.b64encode(os.urandom(16)).decode()
        fields = (
            f"Host: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        )
        self._socket.sendall(f"GET /session HTTP/1.1\r\n{fields}\r\n".encode())
        deadline_s = time.monotonic() + 10
        while b"\r\n\r\n" not in self._unread:
            if not self._receive(deadline_s):
                raise BidiError("the browser does not answer")
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101 "):
            raise BidiError(f"the browser refuses a WebSocket: {head.splitlines()[0].decode('latin-1')}")

    def _send(self, kind: int, payload: bytes) -> None:
        """Sends one frame, masked, as a client must (RFC 6455, section 5.3)."""
        length = len(payload)
        if length < _SHORT:
            head = struct.pack("!BB", _LAST | kind, _MASKED | length)
        elif length < _PIECE:
            head = struct.pack("!BBH", _LAST | kind, _MASKED | _TWO_BYTES, length)
        else:
            head = struct.pack("!BBQ", _LAST | kind, _MASKED | _EIGHT_BYTES, length)
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
        try:
            self._socket.settimeout(10)
            self._socket.sendall(head + mask + masked)
        except OSError as error:
            raise BidiError(f"the browser is gone: {error}") from error

    def _message(self, deadline_s: float) -> Params | None:
        """The next message; `None` when none arrives before the deadline."""
        while (frame := self._frame()) is None:
            if not self._receive(deadline_s):
                return None
        kind, is_last, payload = frame
        if kind == _PING:
            self._send(_PONG, payload)
        if kind == _CLOSE:
            raise BidiError("the browser is gone: it closed the connection")
        if kind != _TEXT:
            return {}
        while not is_last:
            while (frame := self._frame()) is None:
                if not self._receive(deadline_s):
                    raise BidiError("the browser is gone in the middle of a message")
            _, is_last, more = frame
            payload += more
        return dict(json.loads(payload))

    def _frame(self) -> tuple[int, bool, bytes] | None:
        """Takes a whole frame from the buffer: opcode, whether it ends a message, payload."""
        unread = self._unread
        if len(unread) < 2:
            return None
        start, length = 2, unread[1] & ~_MASKED
        if length in (_TWO_BYTES, _EIGHT_BYTES):
            form = "!H" if length == _TWO_BYTES else "!Q"
            start += struct.calcsize(form)
            if len(unread) < start:
                return None
            (length,) = struct.unpack_from(form, unread, 2)
        if len(unread) < start + length:
            return None
        self._unread = unread[start + length :]
        return unread[0] & 0xF, bool(unread[0] & _LAST), unread[start : start + length]

    def _receive(self, deadline_s: float) -> bool:
        """Reads once; returns whether something arrived before the deadline."""
        try:
            self._socket.settimeout(max(deadline_s - time.monotonic(), 0.001))
            piece = self._socket.recv(_PIECE)
        except TimeoutError:
            return False
        except OSError as error:
            raise BidiError(f"the browser is gone: {error}") from error
        if not piece:
            raise BidiError("the browser is gone: it closed the connection")
        self._unread += piece
        return True

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()
