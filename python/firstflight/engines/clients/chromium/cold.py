"""What servers answer to a browser whose cache is empty.

The one that made a recording may have had copies: it was told 304 (Not Modified), or did not ask at all.
"""

from collections import Counter
from typing import Any

from firstflight.pages import LoadedPage

_HEADER_BYTES = 200
_NOT_MODIFIED, _OK = 304, 200
_TEMPORARY = {301: 302, 308: 307}
_OF_CACHES = ("cache-control", "expires")


def for_cold_cache(job: dict[str, Any], page: LoadedPage) -> dict[str, Any]:
    """The laboratory's job with all that the page's recording holds, and every answer of use.

    A 304 becomes a 200 with the same, empty, body: a browser without a copy may ask again, or not. A redirect
    from a URL that has another answer later, as https has in the clear, must not be kept: it would lead to
    itself for ever.
    """
    times = Counter(resource["url"] for resource in job["page"]["resources"])
    resources = [_fresh(resource, times[resource["url"]]) for resource in job["page"]["resources"]]
    headers = {
        index: _uncached(fields) if times[resources[int(index)]["url"]] > 1 else fields
        for index, fields in job["headers"].items()
    }
    first = len(resources)
    spare = [
        {
            "url": spare.url,
            "kind": "other",
            "mime": spare.mime,
            "request_bytes": _HEADER_BYTES,
            "header_bytes": _HEADER_BYTES,
            "body_bytes": spare.file.stat().st_size,
            "blocks_load": False,
            "initiator": {"resource": 0, "via": "script", "inferred": True},
        }
        for spare in page.spare
    ]
    files = {str(index): str(spare.file) for index, spare in enumerate(page.spare, first)}
    return {
        **job,
        "page": {**job["page"], "resources": resources + spare},
        "bodies": {**job["bodies"], **files},
        "headers": headers,
    }


def _fresh(resource: dict[str, Any], times: int) -> dict[str, Any]:
    status = resource.get("status", _OK)
    if status == _NOT_MODIFIED:
        return {**resource, "status": _OK}
    return {**resource, "status": _TEMPORARY[status]} if times > 1 and status in _TEMPORARY else resource


def _uncached(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in fields if name.lower() not in _OF_CACHES]
