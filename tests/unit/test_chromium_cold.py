"""A browser with an empty cache never gets answers that need a cached copy, such as 304."""

from pathlib import Path
from typing import Any

from firstflight.engines.clients.browser import for_cold_cache
from firstflight.engines.engine import LabJob
from firstflight.model.page import Spare
from firstflight.pages import LoadedPage, Page


def resource(url: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    sizes = {"request_bytes": 300, "header_bytes": 200, "body_bytes": 0}
    return {"url": url, "kind": "document", "mime": "text/html", **sizes, **fields}


def job(*resources: dict[str, Any], headers: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
    return {"page": {"name": "p", "resources": list(resources)}, "bodies": {}, "headers": headers or {}}


def page(*spare: Spare) -> LoadedPage:
    fields = {"name": "p", "resources": [resource("http://a.test/")]}
    return LoadedPage(Page.from_fields(fields), spare=spare)


def statuses(job: LabJob) -> list[int]:
    return [resource.get("status", 200) for resource in for_cold_cache(job, page())["page"]["resources"]]


def test_what_was_not_modified_is_answered_anew() -> None:
    assert statuses(job(resource("http://a.test/"), resource("http://a.test/i.png", status=304))) == [
        200,
        200,
    ]


def test_a_redirect_to_itself_is_for_once() -> None:
    fields = {"0": [("Cache-Control", "max-age=9"), ("Location", "http://a.test/")], "2": [("Expires", "0")]}
    asked = job(
        resource("http://a.test/", status=301),
        resource("http://a.test/"),
        resource("http://a.test/b", status=301),
        headers=fields,
    )
    assert statuses(asked) == [302, 200, 301]
    answered = for_cold_cache(asked, page())["headers"]
    assert answered == {"0": [("Location", "http://a.test/")], "2": [("Expires", "0")]}


def test_spare_answers_are_served_beside_the_page(tmp_path: Path) -> None:
    file = tmp_path / "x.js"
    file.write_text("12345")
    served = for_cold_cache(job(resource("http://a.test/")), page(Spare("http://b.test/x.js", "a/b", file)))
    added = served["page"]["resources"][1]
    assert (added["url"], added["mime"], added["body_bytes"]) == ("http://b.test/x.js", "a/b", 5)
    assert served["bodies"] == {"1": str(file)}
    assert Page.from_fields(served["page"]).resources[1].url == "http://b.test/x.js"
