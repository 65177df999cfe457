"""A small archive, and curl in front of its servers."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from small_pages import Fields, document

from firstflight.engines.exec import ExecRecord, Surroundings, run_inside
from firstflight.model.path import Path, Queue
from firstflight.pages import LoadedPage, Page


@dataclass
class Archive:
    """Recorded resources with their bodies and header fields, in the order in which they are added."""

    folder: FilePath
    resources: list[Fields] = field(default_factory=list)
    bodies: dict[int, FilePath] = field(default_factory=dict)
    headers: dict[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def add(
        self,
        url: str,
        body: bytes = b"",
        headers: Sequence[tuple[str, str]] = (),
        **fields: Any,  # noqa: ANN401
    ) -> None:
        """Adds a resource; the first is the document."""
        index = len(self.resources)
        found = {} if index == 0 else {"kind": "xhr", "initiator": {"resource": 0, "via": "script"}}
        self.resources.append(document(url=url, body_bytes=len(body), **{**found, **fields}))
        self.bodies[index] = self.folder / str(index)
        self.bodies[index].write_bytes(body)
        self.headers[index] = tuple(headers)

    def page(self) -> LoadedPage:
        """The page, ready to be served."""
        page = Page.from_fields({"name": "archive", "resources": self.resources})
        return LoadedPage(page, self.bodies, [], self.headers)


@dataclass(frozen=True)
class Answer:
    """What curl got."""

    status: int
    version: str
    headers: dict[str, str]
    body: bytes
    seconds: float


@dataclass
class Curl:
    """Asks the servers of a page in one laboratory, one request after the other."""

    page: LoadedPage
    folder: FilePath
    mode: str = "tcp"
    scheme: str = "recorded"
    rtt_ms: float = 2.0

    def __call__(self, *requests: Sequence[str]) -> tuple[list[Answer], ExecRecord]:
        """The answers to requests (arguments of curl), and the laboratory's record."""
        script = "\n".join(self._line(number, request) for number, request in enumerate(requests))
        path = Path("access", self.rtt_ms, None, None, Queue(packets=1000), 0.0)
        around = Surroundings(path, self.mode, "warm", True, 1, self.scheme, [self.page])
        record = run_inside(around, ["sh", "-c", script])
        return [self._answer(number) for number in range(len(requests))], record

    def _line(self, number: int, request: Sequence[str]) -> str:
        out = self.folder / f"answer{number}"
        options = ["-sg", "--path-as-is", "--cacert", "$CA", "-D", f"{out}.head", "-o", f"{out}.body"]
        said = "%{http_code} %{http_version} %{time_total} %{exitcode}"
        words = [*options, "-w", f"'{said}'", *(f"'{word}'" for word in request)]
        return f'CA="$FIRSTFLIGHT_CA"; curl {" ".join(words)} > {out}.said'.replace("$CA ", '"$CA" ')

    def _answer(self, number: int) -> Answer:
        out = self.folder / f"answer{number}"
        status, version, seconds, _ = FilePath(f"{out}.said").read_text().split()
        head, body = FilePath(f"{out}.head"), FilePath(f"{out}.body")
        lines = head.read_text().splitlines()[1:] if head.exists() else []
        fields = [line.partition(": ") for line in lines if line]
        return Answer(
            int(status),
            version,
            {name.lower(): value for name, _, value in fields},
            body.read_bytes() if body.exists() else b"",
            float(seconds),
        )


def curl_speaks(feature: str) -> bool:
    """Whether this curl was built with a feature, such as `HTTP2`."""
    return feature in subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout
