"""Made-up pages that differ in one property each from the same page.

    python -m studies.structure.pages DIR

writes them as profiles, for a run on the real kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import firstflight as ff


@dataclass(frozen=True)
class Structure:
    """What a made-up page is like.

    Attributes:
        objects: Images and scripts in addition to the document.
        size: Bytes of each of them.
        padding: Bytes of the document.
        hosts: Hosts that all of them are spread over, the document's among them.
        depth: Objects in a row, each requested by the one before.
        request: Bytes of each request.
    """

    objects: int = 24
    size: int = 8_000
    padding: int = 30_000
    hosts: int = 4
    depth: int = 1
    request: int = 400


BASE = Structure()
FACTORS: Mapping[str, tuple[int, ...]] = {
    "objects": (1, 3, 6, 12, 24, 48, 96, 192),
    "size": (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000),
    "padding": (1_000, 4_000, 8_000, 15_000, 30_000, 60_000, 120_000, 240_000),
    "hosts": (1, 2, 4, 8, 12, 24),
    "depth": (1, 2, 3, 4, 6, 8, 12, 24),
    "request": (200, 400, 800, 1_400, 1_500, 2_000, 4_000),
}
NAMES = {
    "objects": "objects",
    "size": "bytes of an object",
    "padding": "bytes of the document",
    "hosts": "hosts",
    "depth": "objects in a row",
    "request": "bytes of a request",
}


def structures() -> dict[str, Structure]:
    """Every page by its name."""
    return {
        page_name(factor, value): replace(BASE, **{factor: value})
        for factor, values in FACTORS.items()
        for value in values
    }


def page_name(factor: str, value: int) -> str:
    """Sorts by value."""
    return f"{factor}-{value:06d}"


def made(name: str, structure: Structure) -> ff.Page:
    """A page of that structure: the document first, then level by level."""
    return ff.Page.from_fields({"name": name, "resources": _resources(structure)})


def _resources(structure: Structure) -> list[dict[str, Any]]:
    width = -(-structure.objects // structure.depth)
    objects = [_object(structure, number, width) for number in range(structure.objects)]
    document = {**_fields(structure, 0), "kind": "document", "mime": "text/html"}
    return [{**document, "body_bytes": structure.padding}, *objects]


def _object(structure: Structure, number: int, width: int) -> dict[str, Any]:
    """Those of the first level are in the document, evenly; each other one is requested by a script."""
    fields = _fields(structure, number + 1)
    if number + width < structure.objects:
        fields |= {"kind": "script", "mime": "text/javascript"}
    if number >= width:
        return {**fields, "initiator": {"resource": number + 1 - width, "via": "script"}}
    at_byte = structure.padding * (number + 1) // (width + 1)
    return {**fields, "initiator": {"resource": 0, "via": "parser", "at_byte": at_byte}}


def _fields(structure: Structure, index: int) -> dict[str, Any]:
    return {
        "url": f"http://h{index % structure.hosts}.test/{index}",
        "kind": "image",
        "mime": "image/png",
        "request_bytes": structure.request,
        "header_bytes": 250,
        "body_bytes": structure.size,
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, structure in structures().items():
        (folder / f"{name}.json").write_text(made(name, structure).to_json(), encoding="utf-8")
