"""Generated pages that contain every way in which a browser can discover a resource."""

from typing import Any

Profile = dict[str, Any]

ROOT = "http://www.example.test/"
CDN = "http://cdn.other.test/"
KINDS = [
    ("style", "text/css"),
    ("script", "text/javascript"),
    ("image", "image/png"),
    ("frame", "text/html"),
    ("font", "font/woff2"),
    ("xhr", "application/json"),
    ("other", "application/x-shockwave-flash"),
    ("other", "video/mp4"),
]


class Maker:
    """Builds a page resource by resource."""

    def __init__(self, mime: str = "text/html", body_bytes: int = 20_000) -> None:
        self.resources: list[Profile] = []
        self.add(ROOT, "document", mime, body_bytes=body_bytes)

    def add(self, url: str, kind: str, mime: str, by: int = 0, via: str = "", **more: Any) -> int:  # noqa: ANN401
        """Adds a resource that resource `by` discovers, and returns its index.

        Keys of `initiator` go there.
        """
        keys = {key: more.pop(key) for key in ("at_byte", "delay_ms") if key in more}
        resource = {
            "url": url, "kind": kind, "mime": mime,
            "request_bytes": 400, "header_bytes": 200, "body_bytes": 1500,
        } | more  # fmt: skip
        if via:
            resource["initiator"] = {"resource": by, "via": via} | keys
        self.resources.append(resource)
        return len(self.resources) - 1

    def page(self) -> Profile:
        return {"format": "firstflight-profile/1", "name": "made", "resources": self.resources}


def everything(mime: str = "text/html") -> Profile:
    """A page with every kind of resource, discovered by parser, style sheet and script, on two origins."""
    made = Maker(mime)
    for origin in (ROOT, CDN):
        for number, (kind, child_mime) in enumerate(KINDS):
            for blocks in (True, False):
                url = f"{origin}parsed/{number}-{blocks}?a=1&copy=2&l%27t(x)"
                made.add(url, kind, child_mime, 0, "parser", at_byte=1000 * number + 900, blocks_load=blocks)
    script = made.add(
        f"{CDN}js/a.js", "script", "text/javascript", 0, "parser", at_byte=9000, body_bytes=6000
    )
    for number, (kind, child_mime) in enumerate(KINDS):
        for blocks in (True, False):
            url = f"{ROOT}scripted/{number}-{blocks}?a=1&copy=2"
            made.add(url, kind, child_mime, script, "script", blocks_load=blocks, delay_ms=10.0 * number)
        made.add(f"{CDN}inline/{number}", kind, child_mime, 0, "script")
    for number in range(18):
        sheet = made.add(f"{CDN}css/{number}.css", "style", "text/css", 0, "parser", at_byte=9500)
        for child, (kind, child_mime) in enumerate(KINDS[:5]):
            made.add(f"{CDN}img/{number}-{child}?x;y&z=1", kind, child_mime, sheet, "style")
    return made.page()


def without_room() -> Profile:
    """A page most of whose bodies are too small to hold the references that they should contain."""
    made = Maker()
    tiny = made.add(
        f"{CDN}tiny.js", "script", "text/javascript", 0, "parser", at_byte=900, body_bytes=12, cpu_ms=5
    )
    for number, (kind, mime) in enumerate(KINDS):
        made.add(f"{CDN}tiny/{number}", kind, mime, tiny, "script", delay_ms=5.0 * (number % 3))
    empty = made.add(f"{CDN}empty.js", "script", "text/javascript", tiny, "script", body_bytes=0)
    data = made.add(f"{ROOT}data.json", "xhr", "application/json", empty, "script")
    made.add(f"{ROOT}from-data.png", "image", "image/png", data, "script")
    gone = made.add(f"{ROOT}gone", "image", "", empty, "script", status=302, body_bytes=0)
    found = made.add(f"{CDN}found.png", "image", "image/png", gone, "redirect")
    made.add(f"{CDN}after-found.js", "script", "text/javascript", found, "script")
    lost = made.add(f"{CDN}lost.js", "script", "text/javascript", 0, "parser", at_byte=5000, status=404)
    made.add(f"{CDN}for-the-lost.png", "image", "image/png", lost, "script")
    sheet = made.add(f"{CDN}tiny.css", "style", "text/css", 0, "parser", at_byte=6000, body_bytes=20)
    made.add(f"{CDN}{'x' * 60}.png", "image", "image/png", sheet, "style")
    made.add(f"{ROOT}hit", "xhr", "", 0, "script", method="POST", status=204, body_bytes=0)
    return made.page()
