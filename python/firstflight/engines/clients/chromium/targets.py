"""DevTools sessions of a page and of every frame and worker that has a process of its own.

Playwright hands out a session for a page. Targets below it are spoken to through it, message in message
(`Target.sendMessageToTarget`), so that none starts before its network events are listened to.
"""

import json
from collections.abc import Callable
from typing import Any

from playwright.sync_api import CDPSession

from firstflight.engines.clients.chromium.fetches import GONE

Handler = Callable[[str, dict[str, Any]], None]
Send = Callable[[str, dict[str, Any]], None]

CODINGS = {"Accept-Encoding": "gzip, deflate, br, zstd"}
"""What Chromium offers with https. In the clear it offers, and takes, gzip and deflate alone."""

_EVENTS = (
    "Network.requestWillBeSent",
    "Network.requestServedFromCache",
    "Network.responseReceived",
    "Network.loadingFinished",
    "Network.loadingFailed",
    GONE,
)
_CHILDREN = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": False}


class Targets:
    """Passes every network event of a page to one handler.

    Args:
        session: The page's session.
        handler: Is called with the name and the parameters of each event.
        blocked: URL patterns that are not asked for.
        headers: Fields of every request, in place of the browser's own.
    """

    def __init__(
        self,
        session: CDPSession,
        handler: Handler,
        blocked: list[str],
        headers: dict[str, str] | None = None,
    ) -> None:
        self._handler = handler
        self._last_id = 0
        self._blocked = blocked
        self._headers = headers
        for event in _EVENTS:
            session.on(event, self._passing(event))
        session.on("Target.attachedToTarget", lambda params: self._attached(send, params))
        session.on("Target.receivedMessageFromTarget", lambda params: self._received(send, params))

        def send(method: str, params: dict[str, Any]) -> None:
            session.send(method, params)

        self._listen(send)

    def _passing(self, event: str) -> Callable[[dict[str, Any]], None]:
        return lambda params: self._handler(event, params)

    def _listen(self, send: Send) -> None:
        send("Network.enable", {})
        if self._blocked:
            send("Network.setBlockedURLs", {"urls": self._blocked})
        if self._headers:
            send("Network.setExtraHTTPHeaders", {"headers": self._headers})
        send("Target.setAutoAttach", _CHILDREN)

    def _attached(self, parent: Send, params: dict[str, Any]) -> None:
        child = self._through(parent, params["sessionId"])
        self._listen(child)
        child("Runtime.runIfWaitingForDebugger", {})

    def _received(self, parent: Send, params: dict[str, Any]) -> None:
        message = json.loads(params["message"])
        child = self._through(parent, params["sessionId"])
        match message.get("method"):
            case "Target.attachedToTarget":
                self._attached(child, message["params"])
            case "Target.receivedMessageFromTarget":
                self._received(child, message["params"])
            case str() as event if event in _EVENTS:
                self._handler(event, message["params"])

    def _through(self, parent: Send, session_id: str) -> Send:
        def send(method: str, params: dict[str, Any]) -> None:
            self._last_id += 1
            message = json.dumps({"id": self._last_id, "method": method, "params": params})
            parent("Target.sendMessageToTarget", {"sessionId": session_id, "message": message})

        return send
