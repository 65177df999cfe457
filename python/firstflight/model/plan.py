"""The plan of an experiment: one model for TOML files, flags, `--help` and docs/reference/plan.md."""

from itertools import product
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from firstflight.deferred import tomlkit
from firstflight.model.load import Transport
from firstflight.model.path import (
    OF_QUIC,
    OF_TLS,
    Burst,
    Middlebox,
    Path,
    Queue,
    Trace,
    parse_middlebox,
    parse_queue,
    parse_trace,
    write_middlebox,
    write_trace,
)
from firstflight.model.treatment import (
    FAST_OPEN,
    IMPAIRMENTS,
    MODES,
    OF_TICKETS,
    PAGE,
    PLAIN,
    Mode,
    ModeName,
    Treatment,
    compared,
    mode_of,
    pages_named,
    parse_compare,
    parse_cookies,
    parse_treatments,
    version_names,
    write_treatments,
)
from firstflight.model.units import (
    BadValueError,
    each,
    explain,
    number,
    parse_pages,
    parse_rate,
    parse_rtt,
    parse_width,
    whole,
    write_each,
    write_plain,
    write_rate,
    write_width,
)
from firstflight.model.what_if import TODAY, WhatIf, needs_fast_open, parse_what_if

PAPER_PAGES = ("amazon", "nytimes", "wsj", "wikipedia")
"""The embedded profiles: the pages of the paper's Table 1."""

FIRST_LOOK = 10
"""With `until`: repeats of each cell before its interval is first looked at; docs/statistics.md says why."""

_LONG_CERTIFICATES = whole("a number of bytes", 1_000, 16_000)


def _version(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _certificate_bytes(value: object) -> int:
    is_zero = not isinstance(value, bool) and str(value) == "0"
    return 0 if is_zero else int(_LONG_CERTIFICATES(value))


Rates = Annotated[
    tuple[int | None, ...],
    each(parse_rate),
    write_each(write_rate),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]

_NUMBER = PlainSerializer(write_plain, return_type=float | int)
_LOSS = number("a share of packets", 0, 0.5, "write the share of packets lost, 0 to 0.5")
_LOSS_IN_BURST = number(
    "a share of packets",
    0,
    1,
    "write the share of packets lost in a burst, above that of loss and up to 1",
    above=True,
)
_BURST = number(
    "a number of packets", 1, 1000, "write a mean number of packets, 1 to 1000, or off", or_word="off"
)
_JITTER = number("a time in ms", 0, 1000, "write ms from 0 to 1000, such as 10")
_DUPLICATE = number("a share of packets", 0, 1, "write a share of packets from 0 to 1, such as 0.01 for 1 %")
_FACTOR = number("a factor", 0, 10, "write a factor, 0 to 10, such as 2 for half as fast")
_REPEATS = whole("a number of repeats", 1, 100_000)
_JOBS = whole("a number of loads at a time, nor auto", 1, 256, or_word="auto")

TRACES = {"down": "down_trace", "up": "up_trace"}
"""The key of the trace that may replace each rate."""

PATH_KEYS = (
    "rtt",
    "down",
    "up",
    "down_trace",
    "up_trace",
    "topology",
    *IMPAIRMENTS,
)
"""The keys of a path, which a path file may set."""

CookieState = Literal["warm", "cold", "stale", "backup", "moved", "nat", "cookieless"] | str
"""Also `warm:SHARE`, `pool:SERVERS`, and the states of TLS tickets."""

_PLAN_DOC = "docs/plan.md"

FLAGS_ONLY = ("browser", "program")
"""Keys that a file may not set: another user's plan could name a program that runs outside the laboratory."""


ALIASES = {"path": "network"}
"""Names that keys once had, as plans and command lines still write them."""


class Plan(BaseModel):
    """A plan: what a run measures. Its fields are the keys of docs/reference/plan.md.

    Args:
        data: Values by key: text as in flags, or text, numbers and arrays as in TOML.

    Raises:
        pydantic.ValidationError: A value is wrong; `experiment.plan_file` makes a `UsageError` of it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    pages: Annotated[tuple[str, ...], BeforeValidator(parse_pages)] = Field(
        default=PAPER_PAGES,
        description="Pages to load: names of embedded pages, archives, mirrors, profiles, .pages lists.",
    )
    network: str = Field(
        default="",
        description="Name or TOML file of a path; other keys override it. Default for archives: cable.",
        json_schema_extra={"metavar": "NAME|FILE.toml"},
    )
    rtt: Annotated[tuple[float, ...], each(parse_rtt), write_each(write_plain)] = Field(
        default=(20.0, 100.0, 200.0),
        description="Round-trip times between client and origins, ms.",
        json_schema_extra={"metavar": "MS,..."},
    )
    down: Rates = Field(
        default=(4_000_000,),
        description="Rates towards the client, such as 4mbit, 256kbit, 1gbit or unlimited.",
        json_schema_extra={"metavar": "RATE,..."},
    )
    up: Rates = Field(
        default=(256_000,),
        description="Rates from the client. With topology star equal to down: its links are symmetric.",
        json_schema_extra={"metavar": "RATE,..."},
    )
    down_trace: Annotated[
        Trace | None, BeforeValidator(parse_trace), PlainSerializer(write_trace("down"), return_type=str)
    ] = Field(
        default=None,
        description="Trace file in Mahimahi's format, used instead of the rate down; or off.",
        json_schema_extra={"metavar": "FILE"},
    )
    up_trace: Annotated[
        Trace | None, BeforeValidator(parse_trace), PlainSerializer(write_trace("up"), return_type=str)
    ] = Field(
        default=None,
        description="Trace file in Mahimahi's format, used instead of the rate up; or off.",
        json_schema_extra={"metavar": "FILE"},
    )
    topology: Literal["access", "star"] = Field(
        default="access",
        description="access: one link for all origins (the paper). star: a link for each (the course).",
        json_schema_extra={"metavar": "access|star"},
    )
    loss: Annotated[float, BeforeValidator(_LOSS), _NUMBER] = Field(
        default=0.0,
        description="Share of packets lost in each direction, 0 to 0.5.",
        json_schema_extra={"metavar": "SHARE"},
    )
    loss_burst: Annotated[float | Literal["off"], BeforeValidator(_BURST), PlainSerializer(write_plain)] = (
        Field(
            default="off",
            description="Mean length of loss bursts, in packets; off: each packet is lost independently.",
            json_schema_extra={"metavar": "PACKETS"},
        )
    )
    loss_in_burst: Annotated[float, BeforeValidator(_LOSS_IN_BURST), _NUMBER] = Field(
        default=1.0,
        description="With loss_burst: share of packets lost within a burst, above loss and up to 1.",
        json_schema_extra={"metavar": "SHARE"},
    )
    jitter: Annotated[float, BeforeValidator(_JITTER), _NUMBER] = Field(
        default=0.0,
        description="Maximum additional delay of a packet in each direction, ms; uniform from 0.",
        json_schema_extra={"metavar": "MS"},
    )
    reorder: bool = Field(
        default=False,
        description="With jitter: whether a packet may overtake packets sent before it.",
    )
    duplicate: Annotated[float, BeforeValidator(_DUPLICATE), _NUMBER] = Field(
        default=0.0,
        description="Share of packets that arrive twice, in each direction, 0 to 1.",
        json_schema_extra={"metavar": "SHARE"},
    )
    queue: Annotated[Queue, BeforeValidator(parse_queue), PlainSerializer(str, return_type=str)] = Field(
        default=Queue(packets=1000),
        description="Queue of each link: a limit such as 1000p, 64kB or 100ms; or unlimited, codel or pie.",
        json_schema_extra={"metavar": "QUEUE"},
    )
    ecn: bool = Field(
        default=False,
        description="Whether TCP and QUIC use ECN (RFC 3168): codel and pie mark instead of dropping.",
    )
    middlebox: Annotated[
        Middlebox | None,
        BeforeValidator(parse_middlebox),
        PlainSerializer(write_middlebox, return_type=str),
    ] = Field(
        default=None,
        description="Type of middlebox, and share of paths that have it, such as drop-data:0.3; or off.",
        json_schema_extra={"metavar": "TYPE[:SHARE]"},
    )
    initial_window: Annotated[int, BeforeValidator(whole("a number of segments", 1, 1_000))] = Field(
        default=10,
        description="Initial congestion window at both ends, segments. Linux had 3 until 2011.",
        json_schema_extra={"metavar": "SEGMENTS"},
    )
    congestion_control: Literal["cubic", "reno", "bbr"] = Field(
        default="cubic",
        description="Congestion control at both ends: cubic or reno; bbr only with QUIC.",
        json_schema_extra={"metavar": "cubic|reno|bbr"},
    )
    ip: Annotated[Literal["4", "6"], BeforeValidator(_version)] = Field(
        default="4",
        description="IP version: 4, or 6, whose headers are 20 bytes longer.",
        json_schema_extra={"metavar": "4|6"},
    )
    mode: Annotated[tuple[ModeName, ...], each()] = Field(
        default=(PLAIN, FAST_OPEN),
        description=f"Transport modes to compare: {', '.join(MODES)}.",
        json_schema_extra={"metavar": "MODE,..."},
    )
    compare: Annotated[str, BeforeValidator(parse_compare)] = Field(
        default="off",
        description="A key and its values to compare: initial_window=10,32 or page=a.har,b.har; or off.",
        json_schema_extra={"metavar": "KEY=A,B,..."},
    )
    client: Literal["loader", "chromium", "firefox", "wget2", "curl"] = Field(
        default="loader",
        description="Client that loads the page: the built-in loader, or the system's chromium, "
        "firefox, wget2, curl.",
        json_schema_extra={"metavar": "loader|chromium|firefox|wget2|curl"},
    )
    browser: str = Field(
        default="",
        description="Path of the browser's program, with chromium or firefox; empty: the system's. Not "
        "in a plan file.",
        json_schema_extra={"metavar": "PATH"},
    )
    program: str = Field(
        default="",
        description="Path of the client's program, with curl or wget2; empty: the one on PATH. Not in "
        "a plan file.",
        json_schema_extra={"metavar": "PATH"},
    )
    har: bool = Field(
        default=False,
        description="Whether each load in a browser writes a HAR into har/ of the results folder.",
    )
    screenshots: bool = Field(
        default=False,
        description="Whether each load in a browser writes an image into screenshots/ of the results folder.",
    )
    determinism: bool = Field(
        default=True,
        description="Whether pages in a browser see the time of the recording and fixed random numbers.",
    )
    engine: Literal["emulate", "simulate"] = Field(
        default="emulate",
        description="emulate: the real kernel, on an emulated path. simulate: simulated, on a virtual clock.",
        json_schema_extra={"metavar": "emulate|simulate"},
    )
    scheme: Literal["recorded", "http", "https"] = Field(
        default="recorded",
        description="recorded: URLs keep their scheme. http: no TLS, as in the paper. https: all TLS.",
        json_schema_extra={"metavar": "recorded|http|https"},
    )
    post_quantum: bool = Field(
        default=True,
        description="Whether clients offer the TLS key share X25519MLKEM768, as browsers do by default.",
    )
    certificate_bytes: Annotated[int, BeforeValidator(_certificate_bytes)] = Field(
        default=0,
        description="Size of each server's certificate, 1000 to 16000 bytes; 0: the smallest, about 450.",
        json_schema_extra={"metavar": "BYTES"},
    )
    http: Literal["1.1", "2", "recorded"] = Field(
        default="1.1",
        description="HTTP version that the loader uses over TLS. Default for archives: recorded.",
        json_schema_extra={"metavar": "1.1|2|recorded"},
    )
    priorities: Literal["none", "rfc9218"] = Field(
        default="none",
        description="Order of responses over HTTP/2 and 3. none: all in turn. rfc9218: urgent ones first.",
        json_schema_extra={"metavar": "none|rfc9218"},
    )
    origin_rtt: Literal["path", "recorded"] = Field(
        default="path",
        description="path: all origins have the path's RTT. recorded: RTTs differ as in the recording.",
        json_schema_extra={"metavar": "path|recorded"},
    )
    lookups: bool = Field(
        default=False,
        description="Whether the loader waits for name lookups, as long as in the recording.",
    )
    server_time: bool = Field(
        default=True,
        description="Whether servers and the main thread take the recorded time; if not, they take none.",
    )
    processing: Annotated[float, BeforeValidator(_FACTOR), _NUMBER] = Field(
        default=1.0,
        description="Factor on the loader's own time: the work of its main thread and the recorded pauses.",
        json_schema_extra={"metavar": "FACTOR"},
    )
    keep_alive: bool = Field(
        default=True,
        description="Whether origins keep a connection open after a response. The course's server did not.",
    )
    cookies: Annotated[tuple[CookieState, ...], each(parse_cookies)] = Field(
        default=("warm",),
        description="Cookie states to measure: warm, warm:SHARE, cold, stale, backup, moved, nat, pool:N, "
        "cookieless; of TLS tickets: expired, no-early-data, too-early.",
        json_schema_extra={"metavar": "STATE,..."},
    )
    require_cookie: bool = Field(
        default=False,
        description="Whether servers accept data only with a cookie; not possible with the state cookieless.",
    )
    what_if: Annotated[WhatIf, BeforeValidator(parse_what_if), PlainSerializer(str, return_type=str)] = Field(
        default=TODAY,
        description="Simulated variants that no kernel implements, such as syn-payload=4,early-data; or off.",
        json_schema_extra={"metavar": "WHAT,..."},
    )
    repeats: Annotated[int, BeforeValidator(_REPEATS)] = Field(
        default=10,
        description="Number of loads of each page on each path under each treatment.",
        json_schema_extra={"metavar": "N"},
    )
    until: Annotated[float | Literal["off"], BeforeValidator(parse_width), PlainSerializer(write_width)] = (
        Field(
            default="off",
            description="Repeat a cell until its improvement's interval is this narrow, such as 2%; or off.",
            json_schema_extra={"metavar": "WIDTH"},
        )
    )
    most_repeats: Annotated[int, BeforeValidator(_REPEATS)] = Field(
        default=100,
        description="With until: maximum number of repeats of a cell; the run makes only whole rounds.",
        json_schema_extra={"metavar": "N"},
    )
    keep: Literal["all", "loads"] = Field(
        default="all",
        description="all: keep each load with its requests and connections. loads: only its row, for sweeps.",
        json_schema_extra={"metavar": "all|loads"},
    )
    jobs: Annotated[int | Literal["auto"], BeforeValidator(_JOBS)] = Field(
        default="auto",
        description="Number of loads at a time. auto: as many as relay and CPU can keep up with.",
        json_schema_extra={"metavar": "auto|N"},
    )
    seed: Annotated[int, BeforeValidator(whole("a seed", 0, 2**53))] = Field(
        default=1,
        description="Seed of the order of loads, packet loss, jitter, middleboxes and random cookie states.",
        json_schema_extra={"metavar": "N"},
    )

    treatment: Annotated[
        tuple[Treatment, ...],
        BeforeValidator(parse_treatments),
        PlainSerializer(write_treatments, return_type=list[dict[str, object]]),
    ] = Field(
        default=(),
        description="Treatments, instead of compare: each has a name and keys with values; the first "
        "is the baseline.",
    )

    @model_validator(mode="before")
    @classmethod
    def _treatments_have_one_mode(cls, data: dict[str, object]) -> dict[str, object]:
        """Treatments that do not name their mode have that of the plan, of which then there is one."""
        compare, tables = data.get("compare", "off"), data.get("treatment")
        if "mode" in data or not (tables or compare not in ("off", None)):
            return data
        try:
            treatments = parse_treatments(tables) or compared(parse_compare(compare))
        except BadValueError:
            return data  # Told with its key when the field is checked.
        return {**data, "mode": mode_of(treatments)} if treatments else data

    @model_validator(mode="before")
    @classmethod
    def _pages_are_named_once(cls, data: dict[str, object]) -> dict[str, object]:
        if not pages_named(data.get("compare", "off"), data.get("treatment")):
            return data
        if data.get("pages"):
            raise BadValueError(
                "pages: the treatments name the pages, each a version of its own",
                "leave PAGE out; or compare another key of these pages",
            )
        return {**data, "pages": []}

    @model_validator(mode="before")
    @classmethod
    def _star_links_are_symmetric(cls, data: dict[str, object]) -> dict[str, object]:
        if data.get("topology") == "star" and "up" not in data and "down" in data:
            return {**data, "up": data["down"]}
        if data.get("topology") == "star" and "up" not in data:
            return {**data, "up": cls.model_fields["down"].default}
        return data

    @model_validator(mode="before")
    @classmethod
    def _a_trace_is_in_place_of_a_rate(cls, data: dict[str, object]) -> dict[str, object]:
        for rate, trace in TRACES.items():
            if rate in data and data.get(trace, "off") not in ("off", None):
                raise BadValueError(f"{trace}: replaces {rate}", f"leave out {trace} or {rate}")
        return data

    @model_validator(mode="after")
    def _there_is_a_page(self) -> Self:
        if not self.pages and not self.versions:
            raise BadValueError("pages: is empty", "give at least one value, or leave the key out")
        return self

    @model_validator(mode="after")
    def _star_rates_agree(self) -> Self:
        if self.topology == "star" and self.up_trace != self.down_trace:
            raise BadValueError(
                "up_trace: differs from down_trace in a star",
                "a star's links are symmetric: give both the same, or --topology access",
            )
        if self.topology == "star" and self.up != self.down:
            raise BadValueError(
                "up: differs from down in a star", "a star's links are symmetric: leave up out"
            )
        return self

    @model_validator(mode="after")
    def _bursts_are_possible(self) -> Self:
        if self.loss_burst == "off":
            if self.loss_in_burst != 1:
                raise BadValueError("loss_in_burst: there are no bursts", "add --loss-burst, or leave it out")
            return self
        if not 0 < self.loss < self.loss_in_burst:
            raise BadValueError(
                f"loss_burst: a loss of {self.loss:g} cannot come in bursts that lose {self.loss_in_burst:g}",
                "give a --loss above 0 and below --loss-in-burst",
            )
        if self.loss / (self.loss_in_burst - self.loss) > self.loss_burst:
            raise BadValueError(
                f"loss_burst: bursts of {self.loss_burst:g} are too short for a loss of {self.loss:g}",
                "give a longer --loss-burst, or a larger --loss-in-burst",
            )
        return self

    @model_validator(mode="after")
    def _only_jitter_reorders(self) -> Self:
        if self.reorder and not self.jitter:
            raise BadValueError("reorder: has no effect without jitter", "add --jitter, or leave it out")
        return self

    @model_validator(mode="after")
    def _only_managed_queues_mark(self) -> Self:
        if self.ecn and not self.queue.is_managed:
            raise BadValueError(
                f"ecn: the queue {self.queue} marks nothing",
                "add --queue codel or --queue pie, or leave ecn out",
            )
        return self

    @model_validator(mode="after")
    def _simulator_can(self) -> Self:
        if self.engine == "simulate" and self.client != "loader":
            raise BadValueError(
                f"client: {self.client} cannot be simulated", "use --client loader, or --engine emulate"
            )
        return self

    @model_validator(mode="after")
    def _middlebox_has_something_to_meet(self, info: ValidationInfo) -> Self:
        if _is_shared(info, "middlebox"):
            return self
        if self.middlebox and self.middlebox.kind in OF_QUIC:
            if self.client == "curl" and self.middlebox.kind == "drop-udp":
                raise BadValueError(
                    "middlebox: drop-udp leaves nothing to a curl that is told to speak HTTP/3 alone",
                    "use --client loader, or leave it out",
                )
            if not any(mode.quic for mode in self.modes):
                raise BadValueError(
                    f"middlebox: {self.middlebox.kind} has no effect where no load uses QUIC",
                    "add --mode tcp,quic",
                )
            return self
        if self.middlebox and self.middlebox.kind in OF_TLS:
            self._check_middlebox_of_tls(self.middlebox.kind)
            return self
        if self.middlebox and not self.uses_fast_open and self.middlebox.kind != "duplicate-syn":
            raise BadValueError(
                f"middlebox: {self.middlebox.kind} has no effect where no load uses Fast Open",
                _with_fast_open(info),
            )
        return self

    def _check_middlebox_of_tls(self, kind: str) -> None:
        if self.scheme == "http":
            raise BadValueError(
                f"middlebox: {kind} meets TLS, and the pages are loaded in the clear", "add --scheme https"
            )
        if kind == "drop-early-data" and not any(mode.early_data and not mode.quic for mode in self.modes):
            raise BadValueError(
                f"middlebox: {kind} has no effect where no load has early data over TCP",
                "add --mode tcp,early-data",
            )
        if kind == "drop-cut-hello" and not self.post_quantum:
            raise BadValueError(
                f"middlebox: {kind} meets a ClientHello of two segments: one with the post-quantum key share",
                "leave --no-post-quantum out, or the middlebox",
            )

    @model_validator(mode="after")
    def _what_if_is_simulated(self) -> Self:
        if self.engine != "simulate" and self.what_if != TODAY:
            raise BadValueError(
                f"what_if: no kernel implements {self.what_if.names[0]}",
                "add --engine simulate, or leave it out",
            )
        return self

    @model_validator(mode="after")
    def _what_if_makes_a_difference(self, info: ValidationInfo) -> Self:
        if self.what_if.early_data is not None and self.scheme == "http":
            raise BadValueError(
                "what_if: early-data goes with TLS's ClientHello",
                "add --scheme recorded or https",
            )
        if _is_shared(info, "what_if"):
            return self
        if not self.uses_fast_open and (unused := needs_fast_open(self.what_if)):
            raise BadValueError(
                f"what_if: {unused[0]} has no effect where no load uses Fast Open", _with_fast_open(info)
            )
        if self.what_if.client_cookies and not {"moved", "nat"} & {*self.cookies}:
            raise BadValueError(
                "what_if: client-cookies has no effect while the client keeps its address",
                "add --cookies moved",
            )
        is_proven = {*self.cookies} <= {"warm", "backup", "cookieless"} and not self.what_if.one_time_cookies
        if is_proven and self.what_if.unproven_bytes is not None:
            raise BadValueError(
                "what_if: unproven has no effect where every SYN has a valid cookie", "add --cookies cold"
            )
        return self

    @model_validator(mode="after")
    def _modes_of_tls_have_it(self) -> Self:
        for mode in (MODES[name] for name in self.mode):
            if mode.secure and self.scheme == "http":
                raise BadValueError(
                    f"mode: {mode.name} needs TLS, and the pages are loaded in the clear",
                    "add --scheme https, or leave it out",
                )
            if mode.secure and self.client not in {"loader", "chromium", "firefox", "curl"}:
                raise BadValueError(
                    f"mode: {self.client} cannot load pages with {mode.name} yet",
                    "use --client loader, or leave it out",
                )
            tickets = f"{self.client if self.client == 'curl' else self.client.title()}'s tickets"
            if mode.sessions and self.client != "loader" and (states := {*self.cookies} - {"warm", "cold"}):
                raise BadValueError(
                    f"cookies: {tickets} cannot be brought into the state {min(states)}",
                    "use warm or cold, or --client loader",
                )
            speaks_1_3 = mode.quic or mode.sessions
            if speaks_1_3 and self.client == "chromium" and not self.post_quantum:
                raise BadValueError(
                    f"mode: Chromium speaks TLS 1.3, so {mode.name} too, with that key share only",
                    "leave --no-post-quantum out, or the mode",
                )
            if mode.sessions and self.client == "firefox" and not self.keep_alive:
                raise BadValueError(
                    f"mode: a visit gives Firefox two tickets of a server, too few for {mode.name}",
                    "leave --no-keep-alive out, or the mode",
                )
            if mode.quic and not self.keep_alive:
                raise BadValueError(
                    f"mode: {mode.name} keeps its connections, as HTTP/3 does",
                    "leave --no-keep-alive out, or the mode",
                )
            if not mode.quic and self.congestion_control == "bbr":
                raise BadValueError(
                    f"congestion_control: bbr is available only with QUIC, not with {mode.name}",
                    "add --mode quic,quic-0rtt, or leave bbr out",
                )
            if mode.quic and self.ecn and self.client != "loader":
                raise BadValueError(
                    f"ecn: firstflight cannot tell whether {self.client} uses it over QUIC",
                    f"use --client loader, or leave --ecn or {mode.name} out",
                )
        return self

    @model_validator(mode="after")
    def _cookies_have_a_use(self, info: ValidationInfo) -> Self:
        for state in OF_TICKETS:
            if state not in self.cookies or _is_shared(info, "cookies"):
                continue
            if not any(mode.early_data or (mode.sessions and state == "expired") for mode in self.modes):
                raise BadValueError(
                    f"cookies: {state} has no effect where no load has early data",
                    "add --mode tcp,early-data",
                )
            if self.client != "loader":
                raise BadValueError(
                    f"cookies: {state} is a state of the built-in client's tickets", "use --client loader"
                )
            if state == "too-early" and not self.keep_alive:
                raise BadValueError(
                    "cookies: too-early has requests asked again on the same connection",
                    "leave --no-keep-alive out, or too-early",
                )
        idle = [state for state in self.cookies if state not in {"warm", "cold"}]
        has_use = self.uses_fast_open or any(mode.sessions for mode in self.modes)
        if idle and not has_use and not _is_shared(info, "cookies"):
            raise BadValueError(
                f"cookies: {idle[0]} has no effect where no load uses Fast Open", _with_fast_open(info)
            )
        return self

    @model_validator(mode="after")
    def _cookieless_is_allowed(self) -> Self:
        if "cookieless" not in self.cookies:
            return self
        if self.require_cookie:
            raise BadValueError(
                "cookies: cookieless cannot be where servers require a cookie",
                "leave out --require-cookie, or cookieless",
            )
        if self.middlebox and self.middlebox.kind in {"drop-option", "strip-option"}:
            raise BadValueError(
                f"middlebox: {self.middlebox.kind} has no effect where SYNs have no option",
                "measure cookieless without it",
            )
        return self

    @model_validator(mode="after")
    def _until_can_be_reached(self, info: ValidationInfo) -> Self:
        if self.until == "off" or info.context is not None:
            return self
        if len(self.treatments) < 2:
            raise BadValueError(
                "until: needs two treatments to compare",
                f"add --mode {PLAIN},{FAST_OPEN}, or leave until out",
            )
        least = max(self.repeats, FIRST_LOOK)
        if self.most_repeats < least:
            raise BadValueError(
                f"most_repeats: {self.most_repeats} is less than the {least} before the first look",
                "give a larger --most-repeats, or use --repeats without --until",
            )
        return self

    @model_validator(mode="after")
    def _http2_can_be_spoken(self) -> Self:
        if self.http == "1.1":
            return self
        if self.client != "loader":
            raise BadValueError(
                f"http: {self.client} negotiates by itself", "use --client loader, or leave it out"
            )
        if self.scheme == "http":
            raise BadValueError("http: HTTP/2 is spoken over TLS only", "add --scheme recorded or https")
        if not self.keep_alive:
            raise BadValueError("http: HTTP/2 cannot close after every response", "add --keep-alive")
        return self

    @model_validator(mode="after")
    def _priorities_can_be_said(self, info: ValidationInfo) -> Self:
        if self.priorities == "none":
            return self
        if self.client != "loader":
            raise BadValueError(
                f"priorities: {self.client} says by itself what is urgent",
                "use --client loader, or leave it out",
            )
        shares = self.http != "1.1" or any(mode.quic for mode in self.modes)
        if not shares and not _is_shared(info, "priorities"):
            raise BadValueError(
                "priorities: without HTTP/2 or 3 no two responses share a connection",
                "add --http 2, --http recorded or --mode quic, or leave it out",
            )
        return self

    @model_validator(mode="after")
    def _browsers_can_keep_it(self) -> Self:
        if self.har and self.client == "firefox":
            raise BadValueError(
                "har: Firefox's driver writes no HAR", "use --client chromium, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _only_the_loader_is_paced(self) -> Self:
        if self.client != "loader" and self.processing != 1:
            raise BadValueError(
                f"processing: the time of {self.client} is its own", "use --client loader, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _treatments_are_possible(self, info: ValidationInfo) -> Self:
        if info.context is not None or not self.names_treatments:
            return self
        key = "treatment" if self.treatment else "compare"
        if self.treatment and self.compare != "off":
            raise BadValueError("compare: the plan has [[treatment]] tables", "leave one of them out")
        if len(self.mode) > 1:
            raise BadValueError(
                f"{key}: several modes are compared already: {', '.join(self.mode)}",
                f"give one --mode; or name each combination as a [[treatment]] with a mode ({_PLAN_DOC})",
            )
        if len(self.treatments) < 2:
            raise BadValueError(f"{key}: there is only one treatment", "give the baseline, then the others")
        for treatment in self.treatments:
            if self.versions and PAGE not in treatment.to_keys():
                raise BadValueError(
                    f"{key}: {treatment.name} names no page, and others do", "give each treatment a page"
                )
            try:
                arm = self._under(treatment)
            except ValidationError as error:
                raise _told(error, key, treatment) from error
            if len(arm.mode) > 1 or (len(arm.cookies) > 1 and "cookies" in treatment.to_keys()):
                raise BadValueError(
                    f"{key}: {treatment.name} has several values of a key", "give a treatment one of each"
                )
            if len(arm.settings()) != len(self.settings()):
                raise BadValueError(
                    f"{key}: the plan has several cookie states, and treatments differ in theirs",
                    "give --cookies one state, or leave cookies out of the treatments",
                )
        return self

    @property
    def names_treatments(self) -> bool:
        """Whether `compare` or `[[treatment]]` define the treatments, not `mode`."""
        return bool(self.treatment) or self.compare != "off"

    @property
    def treatments(self) -> tuple[Treatment, ...]:
        """The treatments that the plan compares."""
        return self.treatment or compared(self.compare) or tuple(_of_mode(mode) for mode in self.mode)

    @property
    def baseline(self) -> str:
        """Name of the treatment with which the others are compared.

        It is the first treatment. Of several modes it is the first in `MODES`, in whatever order they are
        listed. With a single mode it is `tcp`.
        """
        if self.names_treatments:
            return self.treatments[0].name
        return min(self.mode, key=[*MODES].index) if len(self.mode) > 1 else PLAIN

    def arms(self) -> dict[str, "Plan"]:
        """For each treatment, by name, the plan with this treatment alone."""
        return {treatment.name: self._under(treatment) for treatment in self.treatments}

    @property
    def versions(self) -> dict[str, str]:
        """Page versions by name, each with its PAGE; empty if all treatments load the same pages."""
        pages = [
            str(page)
            for one in self.treatment or compared(self.compare)
            for key, page in one.keys
            if key == PAGE
        ]
        return {name: page for page, name in version_names(list(dict.fromkeys(pages))).items()}

    @property
    def clients(self) -> tuple[str, ...]:
        """Clients of the treatments, without duplicates."""
        return tuple(dict.fromkeys(arm.client for arm in self.arms().values()))

    @property
    def schemes(self) -> tuple[str, ...]:
        """Schemes of the treatments, without duplicates."""
        return tuple(dict.fromkeys(arm.scheme for arm in self.arms().values()))

    @property
    def http_of_loader(self) -> str:
        """HTTP version that all loads use; empty if they differ or a browser chooses it."""
        spoken = {arm.http if arm.client == "loader" else "" for arm in self.arms().values()}
        spoken |= {"3" for mode in self.modes if mode.name.startswith("quic")}
        return spoken.pop() if len(spoken) == 1 else ""

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Every mode that the plan names, in `mode` or in a treatment."""
        named = [mode for treatment in self.treatments for key, mode in treatment.keys if key == "mode"]
        return tuple(MODES[mode] for mode in (*self.mode, *named) if mode in MODES)

    @property
    def uses_fast_open(self) -> bool:
        """Whether any load may carry data in its SYN."""
        return any(mode.fast_open for mode in self.modes)

    def _under(self, treatment: Treatment) -> "Plan":
        keys = treatment.to_keys()
        if not self.names_treatments:
            return self.model_copy(update={"mode": (keys["mode"],)})
        pages = {"pages": [page]} if (page := keys.pop(PAGE, None)) else {}
        every = {**self.to_keys(), "compare": "off", "treatment": [], **pages, **keys}
        return Plan.model_validate(every, context={"keys": keys})

    @property
    def transport(self) -> Transport:
        """Initial window and congestion control of every connection."""
        return Transport(self.initial_window, self.congestion_control)

    def rates(self) -> list[tuple[int | None, int | None]]:
        """Every pair (down, up) of rates, bit/s. `None` is unlimited; a trace has its mean rate."""
        down = (self.down_trace.mean_bps,) if self.down_trace else self.down
        up = (self.up_trace.mean_bps,) if self.up_trace else self.up
        return list(zip(down, up, strict=True) if self.topology == "star" else product(down, up))

    def paths(self) -> list[Path]:
        """Every path that the plan measures."""
        burst = None if self.loss_burst == "off" else Burst(self.loss_burst, self.loss_in_burst)
        unsteady = (burst, self.jitter, self.reorder, self.duplicate)
        wire = (self.queue, self.loss, self.middlebox, *unsteady, self.ecn)
        traces = (self.down_trace, self.up_trace)
        return [
            Path(self.topology, rtt_ms, down_bps, up_bps, *wire, *traces)
            for rtt_ms, (down_bps, up_bps) in product(self.rtt, self.rates())
        ]

    def paths_of_all(self) -> list[Path]:
        """Every path that any treatment measures, without duplicates."""
        return list(dict.fromkeys(path for arm in self.arms().values() for path in arm.paths()))

    def settings(self) -> list[tuple[Path, str]]:
        """Every path, combined with every cookie state."""
        return list(product(self.paths(), self.cookies))

    def measures_the_same_as(self, other: "Plan") -> bool:
        """Whether both plans make the same loads, apart from their number with `until`.

        `jobs` and the paths of programs do not matter. With `until`, neither do its width and `most_repeats`.
        """
        free: dict[str, object] = {"jobs": "auto", "browser": "", "program": ""}
        if "off" not in (self.until, other.until):
            free |= {"until": 1.0, "most_repeats": 1}
        return self.model_copy(update=free) == other.model_copy(update=free)

    def to_keys(self) -> dict[str, object]:
        """The plan's keys and values; `experiment.plan_file.resolve` makes a plan of them."""
        traces = {key: trace for key in TRACES.values() if (trace := getattr(self, key))}
        return {**self._plain(), **traces}

    def to_toml(self) -> str:
        """The plan as TOML, each key below its description. `keep_trace` writes the traces that it names."""
        document = tomlkit.document()
        for key, value in self._plain().items():
            if key in FLAGS_ONLY or key == "treatment":
                continue
            document.add(tomlkit.comment(type(self).model_fields[key].description or ""))
            document.add(key, value)
        if self.treatment:
            document.add("treatment", tomlkit.item([one.to_toml() for one in self.treatment]))
        return tomlkit.dumps(document)

    def _plain(self) -> dict[str, object]:
        """Every value in its plain form, without the rates in whose place traces stand."""
        unused = {rate for rate, trace in TRACES.items() if getattr(self, trace)}
        return {key: value for key, value in self.model_dump(mode="json").items() if key not in unused}


def _of_mode(mode: str) -> Treatment:
    return Treatment.of(mode, {"mode": mode})


def _is_shared(info: ValidationInfo, key: str) -> bool:
    """Whether a key of a plan under one treatment is that of all: others may have a use for it."""
    return info.context is not None and key not in info.context["keys"]


def _with_fast_open(info: ValidationInfo) -> str:
    """How loads come to use Fast Open: those of a plan, or of a treatment of it."""
    modes = FAST_OPEN if info.context is not None else f"{PLAIN},{FAST_OPEN}"
    return f"add --mode {modes}, or leave it out"


def _told(error: ValidationError, key: str, treatment: Treatment) -> BadValueError:
    """Why a treatment cannot be, with its name."""
    where, problem, hint = explain(error, Plan.model_fields)
    return BadValueError(f"{key}: {treatment.name}: {f'{where}: ' if where else ''}{problem}", hint)
