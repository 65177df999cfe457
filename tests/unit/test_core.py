"""The compiled module `_core`: it takes and returns pages as text, and its errors keep their fields."""

import json
from pathlib import Path
from typing import Any

import pytest

from firstflight import _core

SCHEMA = Path(__file__).parents[2] / "docs" / "profile.schema.json"


def profile() -> dict[str, Any]:
    return {
        "format": "firstflight-profile/1",
        "name": "small",
        "resources": [
            {
                "url": "http://example.org/",
                "kind": "document",
                "mime": "text/html",
                "request_bytes": 400,
                "header_bytes": 200,
                "body_bytes": 3000,
            },
            {
                "url": "http://example.org/a.png",
                "kind": "image",
                "mime": "image/png",
                "request_bytes": 400,
                "header_bytes": 200,
                "body_bytes": 90,
                "initiator": {"resource": 0, "via": "parser", "at_byte": 1000},
            },
        ],
    }


def test_checking_a_page_twice_changes_nothing() -> None:
    once = _core.check_page(json.dumps(profile()))
    assert json.loads(once) == profile()
    assert _core.check_page(once) == once


def test_a_refused_page_says_where_what_and_the_mend() -> None:
    page = profile()
    page["resources"][1]["initiator"]["at_byte"] = 3001
    with pytest.raises(_core.PageError) as refused:
        _core.check_page(json.dumps(page))
    assert refused.value.at == "resources[1].initiator.at_byte"
    assert "3000 body bytes" in refused.value.problem
    assert refused.value.hint
    assert isinstance(refused.value, ValueError)
    assert str(refused.value) == f"{refused.value.at}: {refused.value.problem}"


def test_a_cut_page_is_refused_as_cut() -> None:
    with pytest.raises(_core.PageError, match="ends too early"):
        _core.check_page(json.dumps(profile())[:-1])


def test_the_schema_is_the_published_one() -> None:
    assert _core.page_schema() == SCHEMA.read_text()


def test_the_schema_names_every_key_of_a_page() -> None:
    schema = json.loads(_core.page_schema())
    assert set(profile()) <= set(schema["properties"])
    assert set(profile()["resources"][1]) <= set(schema["$defs"]["Resource"]["properties"])


def test_a_synthesised_body_has_its_size_and_its_reference() -> None:
    text = json.dumps(profile())
    body = _core.synthesize(text, 0)
    assert len(body) == 3000
    assert body[:1000].endswith(b'<img src="a.png">')
    assert _core.synthesize(text, 1).startswith(b"\x89PNG")


def test_a_body_of_no_resource_is_an_index_error() -> None:
    with pytest.raises(IndexError, match="2 resources"):
        _core.synthesize(json.dumps(profile()), 2)


def test_what_no_body_has_room_for_is_unplaced() -> None:
    page = profile()
    page["resources"][0]["body_bytes"] = 5
    page["resources"][1]["initiator"]["at_byte"] = 5
    assert _core.unplaced(json.dumps(page), 0) == [1]
    assert _core.unplaced(json.dumps(profile()), 0) == []
