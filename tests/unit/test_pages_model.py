"""The Python model of a page: it accepts only pages that the Rust model accepts."""

import json
from dataclasses import FrozenInstanceError, asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight import _core, pages
from firstflight.errors import PageInputError
from firstflight.pages import Initiator, Page, strip

MS = st.floats(0, 600_000).map(lambda ms: round(ms, 1))
NAMES = st.from_regex(r"[a-z]{1,10}", fullmatch=True)


def resource(index: int, **changes: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "url": f"http://www.example.org/{index}",
        "kind": "image",
        "mime": "image/png",
        "request_bytes": 300,
        "header_bytes": 200,
        "body_bytes": 1_000,
        "initiator": {"resource": 0, "via": "parser"} if index else None,
    }
    return fields | changes


def profile(*resources: dict[str, object]) -> str:
    return json.dumps({"format": pages.FORMAT, "name": "page", "resources": list(resources)})


@st.composite
def page_fields(draw: st.DrawFn) -> dict[str, object]:
    count = draw(st.integers(1, 6))
    resources = [resource(0, kind="document", status=302, body_bytes=draw(st.integers(0, 10**6)))]
    for index in range(1, count):
        parent = draw(st.integers(0, index - 1))
        via = draw(st.sampled_from(["parser", "style", "script"]))
        most = int(str(resources[parent]["body_bytes"])) if via == "parser" else 0
        initiator = {"resource": parent, "via": via, "at_byte": draw(st.integers(0, most))}
        initiator |= {"delay_ms": draw(MS), "inferred": draw(st.booleans())}
        changes: dict[str, object] = {"url": f"https://{draw(NAMES)}.example:8443/{draw(NAMES)}"}
        changes |= {"initiator": initiator, "server_ms": draw(MS), "cpu_ms": draw(MS)}
        resources.append(resource(index, blocks_load=draw(st.booleans()), **changes))
    missing = [{"url": draw(st.text()), "reason": draw(st.text())}]
    return {"name": draw(NAMES), "source": draw(st.text()), "resources": resources, "missing": missing}


@given(page_fields())
def test_writing_a_page_and_reading_it_gives_the_page_back(fields: dict[str, object]) -> None:
    page = Page.from_fields(fields)
    assert Page.from_json(page.to_json()) == page
    assert Page.from_json(page.to_json()).to_json() == page.to_json()


@given(st.text())
def test_text_that_is_no_profile_is_refused_as_a_page_input(text: str) -> None:
    with pytest.raises(PageInputError):
        Page.from_json(text)


def test_a_truncated_profile_names_the_file_and_the_mend() -> None:
    whole = profile(resource(0))
    with pytest.raises(PageInputError, match=r"short\.json") as caught:
        Page.from_json(whole[: len(whole) // 2], place="short.json")
    assert caught.value.hint


def test_a_wrong_key_is_named() -> None:
    with pytest.raises(PageInputError, match=r"resources\[1\]\.url"):
        Page.from_json(profile(resource(0), resource(1, url="ftp://example.org/")))


def test_a_host_of_300_characters_is_refused() -> None:
    with pytest.raises(PageInputError, match="300"):
        Page.from_json(profile(resource(0, url=f"http://{'a' * 300}/")))


def test_a_page_cannot_be_changed_and_a_wrong_copy_cannot_be_written() -> None:
    page = Page.from_json(profile(resource(0)))
    with pytest.raises(FrozenInstanceError):
        page.name = "other"  # type: ignore[misc]
    broken = replace(page, resources=(replace(page.resources[0], initiator=Initiator(0, "parser")),))
    with pytest.raises(PageInputError, match="initiator"):
        broken.to_json()


def test_origins_come_in_order_of_first_use_and_name_only_unusual_ports() -> None:
    urls = ["http://a.example:80/", "https://b.example/", "http://a.example/x", "http://[::1]:8080/"]
    page = Page.from_json(profile(*(resource(i, url=url) for i, url in enumerate(urls))))
    assert page.origins == ("http://a.example", "https://b.example", "http://[::1]:8080")
    assert page.url == "http://a.example/", "as browsers request it"


def test_a_description_counts_chains_and_shares() -> None:
    script = {"resource": 1, "via": "script"}
    page = Page.from_json(
        profile(
            resource(0, kind="document", body_bytes=20_000),
            resource(1, kind="script"),
            resource(2, initiator=script | {"inferred": True}, blocks_load=False),
            resource(3, body_bytes=50_000),
        )
    )
    found = page.describe()
    assert (found.requests, found.hosts, found.origins, found.depth) == (4, 1, 1, 3)
    assert found.wire_bytes == 72_000 + 4 * 200
    assert found.request_bytes == 1_200
    assert found.chain == (page.url, "http://www.example.org/3")
    assert found.chain_bytes == 70_400
    assert found.kinds == {"image": 2, "document": 1, "script": 1}
    assert (found.blocking, found.inferred) == (3, 1)
    assert (found.one_segment_share, found.initial_window_share) == (0.5, 0.5)


def test_the_profile_of_a_page_is_the_page_without_files() -> None:
    page = Page.from_json(profile(resource(0)))
    assert strip(page) == page


def test_fields_are_those_of_the_schema() -> None:
    page = Page.from_json(profile(resource(0), resource(1)))
    schema = json.loads(_core.page_schema())
    assert set(asdict(page)) == set(schema["properties"])
    assert set(asdict(page.resources[1])) == set(schema["$defs"]["Resource"]["properties"])


def test_the_public_names_are_these() -> None:
    assert {"Page", "Resource", "Initiator", "Missing", "LoadedPage", "open_pages", "strip"} <= set(
        pages.__all__
    )
