"""The plan of an experiment: one model for TOML files, command-line flags, `--help` and docs/plan.md."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Annotated, Any, Literal, Self

import tomlkit
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from firstflight.engines.task import Path, Queue
from firstflight.experiment import units
from firstflight.experiment.units import BadValueError

PAPER_PAGES = ("amazon", "nytimes", "wsj", "wikipedia")
"""The embedded profiles: the pages of the paper's Table 1."""

MAX_RTT_MS = 10_000.0


def _each(parse: Callable[[Any], Any]) -> BeforeValidator:
    """A list: from TOML an array or one value, from a flag text with commas."""

    def parse_all(value: object) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")]
        parts = list(value) if isinstance(value, list | tuple) else [value]
        return _distinct(parse(part) for part in parts)

    return BeforeValidator(parse_all)


def _distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    seen = tuple(values)
    if not seen:
        raise BadValueError("is empty", "give at least one value, or leave the key out")
    for position, value in enumerate(seen):
        if value in seen[:position]:
            raise BadValueError(
                f"{units.quoted(value)} stands there twice",
                "give each value once; use repeats for more loads",
            )
    return seen


def _choice(*allowed: str, later: tuple[str, ...] = ()) -> Callable[[object], str]:
    """One word out of `allowed`; a word out of `later` is known, not built yet, and the message says so."""

    def parse(value: object) -> str:
        if value in allowed:
            return str(value)
        hint = f"use {' or '.join(allowed)}"
        if value in later:
            raise BadValueError(f"{units.quoted(value)} is not supported yet", hint)
        raise BadValueError(f"{units.quoted(value)} is not one of {', '.join(allowed)}", hint)

    return parse


def _page(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise BadValueError(
        f"{units.quoted(value)} is not a page", "name an embedded page, an archive, a mirror or a profile"
    )


def _pages(value: object) -> tuple[str, ...]:
    """Not split at commas: file names may hold them."""
    return _distinct(_page(part) for part in (value if isinstance(value, list | tuple) else [value]))


def _rtt(value: object) -> float:
    text = value.strip().removesuffix("ms") if isinstance(value, str) else value
    hint = "write ms above 0 and up to 10000, such as 20,100,200"
    try:
        rtt_ms = units.parse_number(text, "a time in ms", hint)
    except BadValueError:
        raise BadValueError(f"{units.quoted(value)} is not a time in ms", hint) from None
    if not 0.01 <= rtt_ms <= MAX_RTT_MS:
        raise BadValueError(f"{units.quoted(value)} is out of range", hint)
    return rtt_ms


def _loss(value: object) -> float:
    hint = "write the share of packets lost, 0 to 0.5"
    loss = units.parse_number(value, "a share of packets", hint)
    if not 0 <= loss <= 0.5:
        raise BadValueError(f"{units.quoted(value)} is out of range", hint)
    return loss


def _whole(kind: str, low: int, high: int) -> Callable[[object], int]:
    hint = f"write a whole number, {low} to {high}"

    def parse(value: object) -> int:
        number = units.parse_whole(value, kind, hint)
        if not low <= number <= high:
            raise BadValueError(f"{units.quoted(value)} is out of range", hint)
        return number

    return parse


def _jobs(value: object) -> int | str:
    return "auto" if value == "auto" else _whole("a number of loads at a time, nor auto", 1, 256)(value)


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise BadValueError(f"{units.quoted(value)} is neither true nor false", "write true or false")


def _plain(number: float) -> float | int:
    """20 rather than 20.0."""
    return int(number) if number.is_integer() else number


def _all(write: Callable[[Any], Any]) -> PlainSerializer:
    return PlainSerializer(lambda values: [write(value) for value in values])


Rates = Annotated[tuple[int | None, ...], _each(units.parse_rate), _all(units.write_rate)]


class Plan(BaseModel):
    """What is measured. Every field is a TOML key and a flag of `firstflight run`; `docs/plan.md` lists them.

    Args:
        data: Values as flags (text) or TOML (text, numbers, arrays) hold them.

    Raises:
        pydantic.ValidationError: `experiment.sources` turns it into a `UsageError` that names key, file and line.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    pages: Annotated[tuple[str, ...], BeforeValidator(_pages)] = Field(
        PAPER_PAGES,
        description="Pages to load: embedded names, archives, mirrors, profiles, .pages lists.",
    )
    rtt: Annotated[tuple[float, ...], _each(_rtt), _all(_plain)] = Field(
        (20.0, 100.0, 200.0),
        description="Round-trip times between client and origins, ms.",
        json_schema_extra={"metavar": "MS,..."},
    )
    down: Rates = Field(
        (4_000_000,),
        description="Rates towards the client, such as 4mbit, 256kbit, 1gbit or unlimited.",
        json_schema_extra={"metavar": "RATE,..."},
    )
    up: Rates = Field(
        (256_000,),
        description="Rates from the client. With a star: as down, its links are symmetric.",
        json_schema_extra={"metavar": "RATE,..."},
    )
    topology: Annotated[Literal["access", "star"], BeforeValidator(_choice("access", "star"))] = Field(
        "access",
        description="access: one access link for all, as in the paper. star: a link per origin, as in the course.",
        json_schema_extra={"metavar": "access|star"},
    )
    loss: Annotated[float, BeforeValidator(_loss), PlainSerializer(_plain)] = Field(
        0.0,
        description="Share of packets lost in each direction, 0 to 0.5.",
        json_schema_extra={"metavar": "SHARE"},
    )
    queue: Annotated[Queue, BeforeValidator(units.parse_queue), PlainSerializer(units.write_queue)] = Field(
        Queue(packets=1000),
        description="Longest queue in front of each link: packets (1000p) or bytes (64kB).",
        json_schema_extra={"metavar": "LENGTH"},
    )
    mode: Annotated[tuple[str, ...], _each(_choice("tcp", "tfo"))] = Field(
        ("tcp", "tfo"),
        description="Transport treatments to compare: tcp, tfo.",
        json_schema_extra={"metavar": "MODE,..."},
    )
    client: Annotated[
        Literal["loader"], BeforeValidator(_choice("loader", later=("chromium", "wget2", "curl")))
    ] = Field(
        "loader",
        description="What loads the page: loader, the built-in page loader.",
        json_schema_extra={"metavar": "CLIENT"},
    )
    engine: Annotated[Literal["emulate"], BeforeValidator(_choice("emulate", later=("simulate",)))] = Field(
        "emulate",
        description="emulate: the real kernel over an emulated path.",
        json_schema_extra={"metavar": "ENGINE"},
    )
    keep_alive: Annotated[bool, BeforeValidator(_switch)] = Field(
        True,
        description="Whether origins keep a connection open after a response. The course's server did not.",
    )
    cookies: Annotated[
        Literal["warm", "cold"], BeforeValidator(_choice("warm", "cold", later=("stale",)))
    ] = Field(
        "warm",
        description="warm: a TFO cookie is cached for every origin. cold: none is.",
        json_schema_extra={"metavar": "warm|cold"},
    )
    repeats: Annotated[int, BeforeValidator(_whole("a number of repeats", 1, 100_000))] = Field(
        5,
        description="Loads of each page on each path in each mode.",
        json_schema_extra={"metavar": "N"},
    )
    jobs: Annotated[int | Literal["auto"], BeforeValidator(_jobs)] = Field(
        "auto",
        description="Loads at a time. auto: as many as leave the relay on time and the CPU some air.",
        json_schema_extra={"metavar": "auto|N"},
    )
    seed: Annotated[int, BeforeValidator(_whole("a seed", 0, 2**53))] = Field(
        1,
        description="Seed of the order of loads and of packet loss.",
        json_schema_extra={"metavar": "N"},
    )

    @model_validator(mode="before")
    @classmethod
    def _star_links_are_symmetric(cls, data: dict[str, Any]) -> dict[str, Any]:
        if data.get("topology") == "star" and "up" not in data and "down" in data:
            return {**data, "up": data["down"]}
        if data.get("topology") == "star" and "up" not in data:
            return {**data, "up": cls.model_fields["down"].default}
        return data

    @model_validator(mode="after")
    def _star_rates_agree(self) -> Self:
        if self.topology == "star" and self.up != self.down:
            raise BadValueError(
                "up: differs from down in a star", "a star's links are symmetric: leave up out"
            )
        return self

    def rates(self) -> list[tuple[int | None, int | None]]:
        """Every (down, up) to be measured, bit/s; `None` is unlimited."""
        if self.topology == "star":
            return list(zip(self.down, self.up, strict=True))
        return list(product(self.down, self.up))

    def paths(self) -> list[Path]:
        """Every path to be measured."""
        return [
            Path(self.topology, rtt_ms, down_bps, up_bps, self.queue, self.loss)
            for rtt_ms, (down_bps, up_bps) in product(self.rtt, self.rates())
        ]

    def measures_the_same_as(self, other: "Plan") -> bool:
        """Whether both lead to the same loads. How many are made at a time (`jobs`) does not matter."""
        return self.model_copy(update={"jobs": "auto"}) == other.model_copy(update={"jobs": "auto"})

    def to_toml(self) -> str:
        """The plan as a TOML document, each key under its description."""
        document = tomlkit.document()
        for key, value in self.model_dump(mode="json").items():
            document.add(tomlkit.comment(type(self).model_fields[key].description or ""))
            document.add(key, value)
        return tomlkit.dumps(document)
