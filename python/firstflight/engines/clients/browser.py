"""A browser as a client in the laboratory: builds its driver's job and merges the driver's result.

Servers must answer a browser whose cache is empty. The browser that made a recording may have had cached
copies: then servers answered 304 (Not Modified), or it did not send the request at all.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from firstflight.engines.clients.command import Command, visits
from firstflight.engines.clients.determinism import recorded_ms
from firstflight.engines.clients.job import Drive, DriveJob
from firstflight.engines.clients.join import in_the_clear, join
from firstflight.engines.engine import Answer, LabJob, ResourceJob
from firstflight.engines.lab import preload_library
from firstflight.model.load import PlannedLoad
from firstflight.model.treatment import MODES
from firstflight.pages import LoadedPage, Page

_SCRATCH = "/dev/shm"
"""A file system of the laboratory's own: what the browser writes there is deleted with the laboratory."""

_REST_MS = 30_000
"""How long a browser may take to become idle and to end, in addition to starting and loading."""
_QUIET_MS, _QUIET_RTTS, _LONGEST_DELAY_MS = 1_000, 4, 10_000


@dataclass(frozen=True)
class Artifacts:
    """Folders for files that are kept of each load in addition to its record; `None`: none are kept."""

    har: Path | None = None
    screenshots: Path | None = None


@dataclass(frozen=True)
class TimeLimits:
    """Time limits of a browser, ms.

    Attributes:
        start_ms: Limit for its start.
        load_ms: Limit for loading the page; `None`: the time limit that applies to every load.
    """

    start_ms: int = 60_000
    load_ms: int | None = None


class Browser:
    """Loads pages in a browser; implements `engines.clients.command.ForeignClient`.

    Attributes:
        driver: The module that runs in the laboratory and controls the browser.
        libraries: The packages that `driver` imports besides the standard library and firstflight.

    Args:
        browser: The browser's program.
        artifacts: What is kept of each load.
        limits: How long a browser may take.
        sandbox: Whether the browser must have its sandbox. If it must and cannot, loads fail.
        partitions: Whether the browser keeps connections and TLS tickets of different sites apart, as it does
            by default. Visits before the load are made on pages of one site, so frames of other sites would
            have no tickets.
    """

    driver: ClassVar[str]
    libraries: ClassVar[Sequence[str]] = ()

    def __init__(
        self,
        browser: Path,
        artifacts: Artifacts | None = None,
        limits: TimeLimits | None = None,
        *,
        sandbox: bool = True,
        partitions: bool = True,
    ) -> None:
        self._browser = browser
        self._partitions = partitions
        self._limits = limits or TimeLimits()
        self._artifacts = artifacts or Artifacts()
        self._preload = preload_library()
        self._sandbox = sandbox

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        """The laboratory's job with the driver as its client."""
        result = f"{_SCRATCH}/firstflight-result.json"
        drive = self._drive(job, planned, page)
        kept = {
            drive.har: _artifact(self._artifacts.har, f"{planned.load_id}.har"),
            drive.screenshot: _artifact(self._artifacts.screenshots, f"{planned.load_id}.png"),
        }
        client = Command(
            (sys.executable, "-P", "-m", self.driver, result),
            env={"TMPDIR": _SCRATCH, **_python_settings()},
            input=json.dumps(drive.to_json()),
            result=result,
            reads=[*_python_folders(self.libraries), str(self._browser), str(self._browser.resolve().parent)],
            keeps={left: file for left, file in kept.items() if left and file},
        ).to_json(self._preload)
        # The driver has no connections to servers. It passes the library on to the browser.
        del client["env"]["LD_PRELOAD"]
        timeout_ms = drive.start_ms + drive.timeout_ms + _REST_MS
        job = for_cold_cache(job, page)
        return {**job, "timeout_ms": timeout_ms, "ca_file": drive.authority, "client": client}

    def complete(self, answer: Answer, page: LoadedPage) -> Answer:
        """The laboratory's answer, with the browser's times added."""
        if answer.get("result") is None:
            return {**answer, "broken": True}
        try:
            drive = Drive.from_json(answer["result"])
        except ValueError:
            return {
                **answer,
                "status": "failed",
                "error": "the browser's driver left no result that can be read",
                "broken": True,
            }
        return join(answer, drive, page.page)

    def _drive(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> DriveJob:
        urls = [resource.url for resource in page.page.resources]
        if job.get("scheme", "http") == "http":
            urls = [in_the_clear(url) for url in urls]
        parts = [urlsplit(url) for url in urls]
        spare = [urlsplit(spare.url) for spare in page.spare]
        secure = any(part.scheme == "https" for part in parts)
        mode = MODES[planned.mode]
        return DriveJob(
            url=urls[0],
            browser=str(self._browser),
            preload=self._preload,
            hosts=hosts_of(page),
            clear_hosts=_distinct(part.hostname for part in parts + spare if part.scheme == "http"),
            favicon=any(part.path.endswith("/favicon.ico") for part in parts),
            # Synthesised bodies request the resources, as far as they fit. In recorded bodies scripts decide.
            expected=[] if page.bodies else urls,
            start_ms=self._limits.start_ms,
            timeout_ms=self._limits.load_ms or job["timeout_ms"],
            quiet_ms=_quiet_ms(planned.path.rtt_ms, page.page),
            authority=f"{_SCRATCH}/firstflight-ca.pem" if secure else None,
            post_quantum=planned.post_quantum,
            quic=mode.quic,
            early_data=mode.early_data,
            tls12=mode.name == "tls12",
            partitions=self._partitions,
            rtt_ms=planned.path.rtt_ms,
            visits=visits(urls) if mode.sessions and planned.cookies == "warm" else [],
            clock_ms=recorded_ms(page) if planned.determinism else None,
            sandbox=self._sandbox,
            har=f"{_SCRATCH}/firstflight.har" if self._artifacts.har else None,
            screenshot=f"{_SCRATCH}/firstflight.png" if self._artifacts.screenshots else None,
        )


def _python_folders(libraries: Sequence[str]) -> list[str]:
    """The folders that this Python and the driver's modules are read from."""
    found = [spec.submodule_search_locations or [] for spec in map(find_spec, libraries) if spec]
    packages = [Path(__file__).parents[2], *chain.from_iterable(found)]
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    named = [os.environ.get("PYTHONPYCACHEPREFIX", ""), *paths]
    return [sys.prefix, sys.base_prefix, *map(str, packages), *filter(os.path.isabs, named)]


def _python_settings() -> dict[str, str]:
    """Where this Python finds its modules. It writes no bytecode there: it may only read its folders."""
    names = ("PYTHONPATH", "PYTHONHOME", "PYTHONPYCACHEPREFIX")
    settings = {name: os.environ[name] for name in names if os.environ.get(name)}
    return {**settings, "PYTHONDONTWRITEBYTECODE": "1"}


def hosts_of(page: LoadedPage) -> list[str]:
    """The hosts that the browser may send requests to, each once."""
    urls = [resource.url for resource in page.page.resources] + [spare.url for spare in page.spare]
    return _distinct(urlsplit(url).hostname for url in urls)


def _artifact(folder: Path | None, name: str) -> str | None:
    if folder is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder.resolve() / name)


def _distinct(hosts: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(host for host in hosts if host))


def _quiet_ms(rtt_ms: float, page: Page) -> int:
    """A time without requests that is longer than any pause of the page: a timer, or a new connection."""
    delays = [resource.initiator.delay_ms for resource in page.resources if resource.initiator]
    return round(_QUIET_MS + _QUIET_RTTS * rtt_ms + min(max(delays, default=0.0), _LONGEST_DELAY_MS))


_HEADER_BYTES = 200
_NOT_MODIFIED, _OK = 304, 200
_TEMPORARY = {301: 302, 308: 307}
_OF_CACHES = ("cache-control", "expires")


def for_cold_cache(job: LabJob, page: LoadedPage) -> LabJob:
    """Changes the laboratory's job for a browser without a cache.

    The servers get all responses of the recording. A 304 becomes a 200 with the same, empty, body: after a
    304 a browser without a copy may or may not repeat the request. Where a URL has several responses, a
    redirect must not be cached, because it would lead to itself for ever. This happens when https is served
    without TLS.
    """
    times = Counter(resource["url"] for resource in job["page"]["resources"])
    resources = [_fresh(resource, times[resource["url"]]) for resource in job["page"]["resources"]]
    headers = {
        index: _uncached(fields) if times[resources[int(index)]["url"]] > 1 else fields
        for index, fields in job["headers"].items()
    }
    first = len(resources)
    spare: list[ResourceJob] = [
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


def _fresh(resource: ResourceJob, times: int) -> ResourceJob:
    status = resource.get("status", _OK)
    if status == _NOT_MODIFIED:
        return {**resource, "status": _OK}
    return {**resource, "status": _TEMPORARY[status]} if times > 1 and status in _TEMPORARY else resource


def _uncached(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in fields if name.lower() not in _OF_CACHES]
