"""The plan of a measurement of servers: one model for flags, `--help` and the stored plan; cells and jobs."""

import random
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from firstflight.errors import UsageError
from firstflight.model.treatment import FAST_OPEN, PLAIN
from firstflight.model.units import (
    BadValueError,
    each,
    number,
    parse_rtt,
    quoted,
    whole,
    write_each,
    write_plain,
)

BUILT_IN, NGINX = "builtin", "nginx"
AUTO = "auto"
SYN_COOKIES = ("off", "on", "always")
"""In the order of the values of `tcp_syncookies`: 0, 1, 2."""


def _up_to(most: float, kind: str) -> Callable[[object], float]:
    return number(kind, 0, most, f"write {kind}, above 0 and up to {most:g}", above=True)


parse_rate = _up_to(200_000.0, "a number per second")


def parse_servers(value: object) -> tuple[str, ...]:
    """Parses names of known servers, separated by commas; or one command."""
    if isinstance(value, list | tuple):
        return tuple(str(part) for part in value)
    text = str(value).strip()
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if all(name in (BUILT_IN, NGINX) for name in names):
        return names
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadValueError(f"{quoted(value)} is not a command: {error}", "close the quotes") from None
    if not words:
        raise BadValueError("is empty", f"use {BUILT_IN}, {NGINX}, or a command in quotes")
    return (text,)


def parse_rates(value: object) -> tuple[float, ...]:
    """Parses rates separated by commas; empty for `auto`."""
    if value == AUTO:
        return ()
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    return tuple(sorted({parse_rate(part) for part in parts}))


def write_rates(rates: tuple[float, ...]) -> str | list[float]:
    """The inverse of `parse_rates`."""
    return list(rates) or AUTO


Seconds = Annotated[float, BeforeValidator(_up_to(600.0, "a time in s")), PlainSerializer(write_plain)]
Rate = Annotated[float, BeforeValidator(parse_rate), PlainSerializer(write_plain)]


class StressPlan(BaseModel):
    """What is measured. Every field is a flag of `firstflight stress`.

    Args:
        data: Values in the form of flags (text) or of a stored plan (numbers, arrays).

    Raises:
        pydantic.ValidationError: A value is wrong; `experiment.plan_file` makes a `UsageError` of it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    server: Annotated[tuple[str, ...], BeforeValidator(parse_servers)] = Field(
        default=(BUILT_IN,),
        description="Servers: builtin, nginx, or builtin,nginx; or one command in quotes. "
        "The command serves the file `object` of its working directory on port 80.",
        json_schema_extra={"metavar": "SERVER"},
    )
    mode: Annotated[tuple[Literal["tcp", "tfo"], ...], each()] = Field(
        default=(PLAIN, FAST_OPEN),
        description="Transport modes to compare: tcp, tfo.",
        json_schema_extra={"metavar": "MODE,..."},
    )
    rates: Annotated[tuple[float, ...], BeforeValidator(parse_rates), PlainSerializer(write_rates)] = Field(
        default=(),
        description="Clients per second. auto: from 500 upwards, until no mode keeps up.",
        json_schema_extra={"metavar": "RATE,..."},
    )
    seconds: Seconds = Field(
        default=2.0, description="How long each measurement takes, s.", json_schema_extra={"metavar": "S"}
    )
    warm_up: Seconds = Field(
        default=0.5,
        description="How long clients (and a flood) run before each measurement, s.",
        json_schema_extra={"metavar": "S"},
    )
    repeats: Annotated[int, BeforeValidator(whole("a number of repeats", 1, 1_000))] = Field(
        default=3, description="Number of measurements of each cell.", json_schema_extra={"metavar": "N"}
    )
    rtt: Annotated[float, BeforeValidator(parse_rtt), PlainSerializer(write_plain)] = Field(
        default=20.0, description="Round-trip time, ms.", json_schema_extra={"metavar": "MS"}
    )
    size: Annotated[int, BeforeValidator(whole("a number of bytes", 1, 1_000_000))] = Field(
        default=5_000, description="Size of the object, bytes.", json_schema_extra={"metavar": "BYTES"}
    )
    timeout: Seconds = Field(
        default=3.0, description="Time after which a client gives up, s.", json_schema_extra={"metavar": "S"}
    )
    flood: Annotated[
        tuple[Literal["none", "plain", "forged", "valid"], ...],
        each(),
    ] = Field(
        default=("none",),
        description="SYNs from addresses that never answer: none; plain (no data); forged (data and a "
        "forged cookie); valid (data and a valid cookie of the address).",
        json_schema_extra={"metavar": "FLOOD,..."},
    )
    flood_rate: Rate = Field(
        default=5_000.0, description="SYNs of a flood per second.", json_schema_extra={"metavar": "RATE"}
    )
    addresses: Annotated[int, BeforeValidator(whole("a number of addresses", 1, 60_000))] = Field(
        default=1_000,
        description="Number of addresses from which a flood with valid cookies comes.",
        json_schema_extra={"metavar": "N"},
    )
    qlen: Annotated[tuple[int, ...], each(whole("a number of requests", 1, 65_535)), write_each(int)] = Field(
        default=(1_024,),
        description="Maximum number of pending Fast Open requests at the server (TCP_FASTOPEN, "
        "nginx's fastopen=).",
        json_schema_extra={"metavar": "N,..."},
    )
    backlog: Annotated[
        tuple[int, ...], each(whole("a number of connections", 1, 65_535)), write_each(int)
    ] = Field(
        default=(1_024,),
        description="Maximum number of SYNs, and of connections to be accepted, that wait at the server.",
        json_schema_extra={"metavar": "N,..."},
    )
    syn_cookies: Annotated[tuple[Literal["off", "on", "always"], ...], each()] = Field(
        default=("on",),
        description="When the server uses SYN cookies. off; on: when its queue is full; always.",
        json_schema_extra={"metavar": "WHEN,..."},
    )
    seed: Annotated[int, BeforeValidator(whole("a seed", 0, 2**63 - 1))] = Field(
        default=1, description="Seed of the order of modes.", json_schema_extra={"metavar": "N"}
    )

    @model_validator(mode="after")
    def _possible(self) -> "StressPlan":
        own = any(name not in (BUILT_IN, NGINX) for name in self.server)
        for key in ("qlen", "backlog"):
            if own and getattr(self, key) != type(self).model_fields[key].default:
                raise BadValueError(
                    f"{key} cannot be set for a command of yours", f"leave --{key} out, and tell your server"
                )
        if not self.rates and self.flood != ("none",):
            raise BadValueError("rates: auto looks for the rate without a flood", "name rates: --rates 500")
        return self


_OBJECT = "object"
_CONF = "nginx.conf"

_NGINX = """\
user root;
daemon off;
master_process off;
error_log stderr error;
pid nginx.pid;
worker_rlimit_nofile 20000;
events {{ worker_connections 20000; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {{
    listen 80 backlog={backlog} fastopen={qlen};
    root .;
  }}
}}
"""
"""One worker, as a server has one per processor. Without a master process, which would need users that the
laboratory does not have."""


def describe_server(server: str, *, size: int, backlog: int, qlen: int) -> dict[str, object]:
    """A server in the form of the laboratory's job.

    Args:
        server: `builtin`, `nginx`, or a command.
        size: Bytes of the object that it serves.
        backlog: Length of the accept queue, connections.
        qlen: Limit of pending Fast Open requests.
    """
    if server == BUILT_IN:
        return {"kind": "builtin"}
    content = {_OBJECT: "x" * size}
    if server == NGINX:
        conf = _NGINX.format(backlog=backlog, qlen=qlen)
        return {"kind": "program", "argv": [NGINX, "-p", ".", "-c", _CONF], "files": {**content, _CONF: conf}}
    return {"kind": "program", "argv": shlex.split(server), "files": content}


def check_installed(servers: Iterable[str]) -> None:
    """Raises `UsageError` if a server's program is not installed."""
    for server in servers:
        program = "" if server == BUILT_IN else shlex.split(server)[0]
        if program and not shutil.which(program):
            raise UsageError(
                f"server: there is no program {program}",
                "install your system's package" if server == NGINX else "name a program that is installed",
            )


def versions(servers: Iterable[str]) -> dict[str, str]:
    """The version of each server that reports one."""
    if NGINX not in servers:
        return {}
    said = subprocess.run([NGINX, "-v"], capture_output=True, text=True, check=False).stderr
    return {NGINX: said.strip().rpartition("/")[2]}


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    server: str
    flood: str
    qlen: int
    backlog: int
    syn_cookies: str
    rate: float
    repeat: int
    mode: str

    @property
    def name(self) -> str:
        """The name of the cell, unique in its plan."""
        return "/".join(
            (
                self.server,
                self.flood,
                f"qlen{self.qlen}",
                f"backlog{self.backlog}",
                self.syn_cookies,
                f"{self.rate:g}",
                str(self.repeat),
                self.mode,
            )
        )


def cells(plan: StressPlan, rates: Sequence[float]) -> Iterator[Cell]:
    """Every cell at these rates. The modes of a repeat are consecutive, in random order."""
    for same in product(
        plan.server, plan.flood, plan.qlen, plan.backlog, plan.syn_cookies, rates, range(plan.repeats)
    ):
        modes = list(plan.mode)
        random.Random(f"{plan.seed}/{same}").shuffle(modes)
        yield from (Cell(*same, mode) for mode in modes)


def job(plan: StressPlan, cell: Cell) -> dict[str, object]:
    """The laboratory's job of a cell."""
    flood = {"kind": cell.flood, "rate": plan.flood_rate, "addresses": plan.addresses}
    return {
        "server": describe_server(cell.server, size=plan.size, backlog=cell.backlog, qlen=cell.qlen),
        "mode": cell.mode,
        "rate": cell.rate,
        "seconds": plan.seconds,
        "warm_up": plan.warm_up,
        "timeout_ms": 1000 * plan.timeout,
        "rtt_ms": plan.rtt,
        "body_bytes": plan.size,
        "backlog": cell.backlog,
        "qlen": cell.qlen,
        "syn_cookies": SYN_COOKIES.index(cell.syn_cookies),
        "flood": None if cell.flood == "none" else flood,
    }
