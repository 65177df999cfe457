"""What servers answer to a browser whose cache is empty.

The one that made a recording may have had copies: it was told 304 (Not Modified), or did not ask at all.
"""

from typing import Any

from firstflight.pages import LoadedPage

_HEADER_BYTES = 200
_NOT_MODIFIED, _OK = 304, 200


def for_cold_cache(job: dict[str, Any], page: LoadedPage) -> dict[str, Any]:
    """The laboratory's job with all that the page's recording holds, and every answer of use.

    A 304 becomes a 200 with the same, empty, body: a browser without a copy may ask again, or not.
    """
    resources = [_fresh(resource) for resource in job["page"]["resources"]]
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
    }


def _fresh(resource: dict[str, Any]) -> dict[str, Any]:
    return {**resource, "status": _OK} if resource.get("status") == _NOT_MODIFIED else resource
