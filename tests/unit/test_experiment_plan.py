import tomllib
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight.errors import UsageError
from firstflight.experiment.plan_file import PlanFile, read_plan_file, resolve
from firstflight.model.path import MIDDLEBOXES, OF_QUIC, OF_TLS, Burst, Middlebox, Queue, parse_queue
from firstflight.model.plan import Plan
from firstflight.model.treatment import COOKIES, OF_TICKETS
from firstflight.model.units import parse_rate, parse_rtt, write_rate

ROOT = Path(__file__).parents[2]

rates = st.none() | st.integers(1000, 100 * 10**9)
queues = (
    st.builds(Queue, packets=st.integers(1, 10**6))
    | st.builds(Queue, bytes=st.integers(1500, 10**9))
    | st.builds(Queue, ms=st.integers(1, 60_000))
    | st.builds(Queue, name=st.sampled_from(["unlimited", "codel", "pie"]))
)
middleboxes = st.none() | st.builds(
    Middlebox, st.sampled_from(MIDDLEBOXES), st.floats(0, 1, exclude_min=True, allow_subnormal=False)
)
states = (
    st.sampled_from(COOKIES)
    | st.floats(0, 1, exclude_min=True, exclude_max=True, allow_subnormal=False).map(lambda n: f"warm:{n!r}")
    | st.integers(2, 16).map(lambda n: f"pool:{n}")
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


def some(values: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(values, min_size=1, max_size=4, unique=True).map(tuple)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    topology: Literal["access", "star"] = draw(st.sampled_from(["access", "star"]))
    down = draw(some(rates))
    client: Literal["loader", "chromium"] = draw(st.sampled_from(["loader", "chromium"]))
    bursts: st.SearchStrategy[Any] = st.just("off") | st.floats(1, 1000)
    jobs: st.SearchStrategy[Any] = st.just("auto") | st.integers(1, 64)
    mode = draw(some(st.sampled_from(["tcp", "tfo"])))
    meets_tcp = middleboxes.filter(
        lambda middlebox: middlebox is None or middlebox.kind not in {*OF_QUIC, *OF_TLS}
    )
    middlebox = draw(meets_tcp) if "tfo" in mode else None
    of_cookies = states.filter(lambda state: state not in OF_TICKETS)
    has_option = of_cookies.filter(lambda state: state != "cookieless")
    staged = has_option if middlebox and middlebox.kind.endswith("-option") else of_cookies
    return Plan(
        pages=draw(some(names)),
        rtt=draw(some(st.floats(0.01, 10_000).map(lambda rtt_ms: round(rtt_ms, 6)))),
        down=down,
        up=down if topology == "star" else draw(some(rates)),
        topology=topology,
        loss=(loss := draw(st.floats(0, 0.5))),
        loss_burst=draw(bursts) if loss else "off",
        jitter=(jitter := draw(st.floats(0, 1000))),
        reorder=draw(st.booleans()) if jitter else False,
        duplicate=draw(st.floats(0, 1)),
        queue=(queue := draw(queues)),
        ecn=draw(st.booleans()) if queue.is_managed else False,
        middlebox=middlebox,
        mode=mode,
        client=client,
        browser=draw(st.sampled_from(["", "/opt/browser"])),
        har=draw(st.booleans()),
        screenshots=draw(st.booleans()),
        determinism=draw(st.booleans()),
        initial_window=draw(st.integers(1, 1000)),
        congestion_control=draw(st.sampled_from(["cubic", "reno"])),
        ip=draw(st.sampled_from(["4", "6"])),
        processing=draw(st.floats(0, 10)) if client == "loader" else 1.0,
        keep_alive=draw(st.booleans()),
        cookies=draw(some(staged if "tfo" in mode else st.sampled_from(["warm", "cold"]))),
        repeats=draw(st.integers(1, 1000)),
        jobs=draw(jobs),
        seed=draw(st.integers(0, 2**53)),
    )


def as_flags(plan: Plan) -> dict[str, object]:
    """What the command line would hold."""
    values = plan.model_dump(mode="json")
    return {
        key: value if key == "pages" or isinstance(value, bool) else _text(value)
        for key, value in values.items()
    }


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


@given(plans())
def test_a_plan_written_as_toml_reads_back_the_same(plan: Plan) -> None:
    written = tomllib.loads(plan.to_toml())
    assert resolve({}, PlanFile(values=written)) == plan.model_copy(update={"browser": "", "program": ""})


@given(plans())
def test_a_plan_given_as_flags_is_the_same_as_in_toml(plan: Plan) -> None:
    assert resolve(as_flags(plan)) == plan


@given(rates)
def test_a_rate_written_is_read_back(rate_bps: int | None) -> None:
    assert parse_rate(write_rate(rate_bps)) == rate_bps


@given(queues)
def test_a_queue_written_is_read_back(queue: Queue) -> None:
    assert parse_queue(str(queue)) == queue


def test_the_defaults_are_the_papers_experiment() -> None:
    plan = resolve({})
    assert plan.pages == ("amazon", "nytimes", "wsj", "wikipedia")
    assert plan.rtt == (20, 100, 200)
    assert (plan.topology, plan.down, plan.up) == ("access", (4_000_000,), (256_000,))
    assert (plan.mode, plan.cookies, plan.keep_alive, plan.repeats) == (("tcp", "tfo"), ("warm",), True, 10)


def test_flags_override_the_keys_of_the_file() -> None:
    plan = resolve({"rtt": "50"}, PlanFile(values={"rtt": [20, 100], "repeats": 3}))
    assert (plan.rtt, plan.repeats) == ((50,), 3)


def test_links_of_a_star_are_symmetric() -> None:
    assert resolve({"topology": "star"}).rates() == [(4_000_000, 4_000_000)]
    assert resolve({"topology": "star", "down": "1mbit,2mbit"}).rates() == [
        (10**6, 10**6),
        (2 * 10**6, 2 * 10**6),
    ]
    with pytest.raises(UsageError, match="up: differs from down in a star"):
        resolve({"topology": "star", "up": "256kbit"})


def test_a_program_takes_its_own_time() -> None:
    with pytest.raises(UsageError, match="processing: the time of chromium is its own"):
        resolve({"client": "chromium", "processing": "2"})


def test_a_middlebox_that_would_meet_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="middlebox: strip-data has no effect where no load uses Fast Open"):
        resolve({"mode": "tcp", "middlebox": "strip-data"})
    assert resolve({"mode": "tcp", "middlebox": "duplicate-syn"}).middlebox == Middlebox("duplicate-syn")


@pytest.mark.parametrize(
    ("beside", "problem"),
    [
        ({"scheme": "http"}, "http: HTTP/2 is spoken over TLS only"),
        ({"scheme": "https", "client": "curl"}, "http: curl negotiates by itself"),
        ({"scheme": "https", "keep_alive": False}, "http: HTTP/2 cannot close after every response"),
    ],
)
def test_http2_is_refused_where_nobody_could_speak_it(beside: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        resolve({"http": "2", **beside})


def test_priorities_are_refused_where_no_responses_share_a_connection() -> None:
    asked = {"scheme": "https", "priorities": "rfc9218"}
    with pytest.raises(UsageError, match="priorities: without HTTP/2 or 3"):
        resolve(asked)
    with pytest.raises(UsageError, match="priorities: chromium says by itself what is urgent"):
        resolve({**asked, "client": "chromium"})
    for shares in ({"http": "2"}, {"http": "recorded"}, {"mode": ["tcp", "quic"]}):
        assert resolve({**asked, **shares}).priorities == "rfc9218"
    compared = resolve({"scheme": "https", "http": "2", "compare": "priorities=none,rfc9218"})
    assert [treatment.name for treatment in compared.treatments] == ["priorities=none", "priorities=rfc9218"]


def test_every_rate_down_meets_every_rate_up_on_an_access_link() -> None:
    plan = resolve({"down": "4mbit,unlimited", "up": "256kbit,1mbit", "rtt": "20,50"})
    assert len(set(plan.paths())) == 8


def test_a_cookie_state_without_fast_open_is_refused() -> None:
    with pytest.raises(UsageError, match="cookies: stale has no effect where no load uses Fast Open"):
        resolve({"cookies": "cold,stale", "mode": "tcp"})


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"require_cookie": True}, "cookies: cookieless cannot be where servers require a cookie"),
        ({"middlebox": "strip-option"}, "middlebox: strip-option has no effect where SYNs have no option"),
    ],
)
def test_cookieless_is_refused_where_it_cannot_be(keys: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as refused:
        resolve({"cookies": "warm,cookieless", **keys})
    assert refused.value.hint
    assert resolve({"cookies": "warm", **keys}).cookies == ("warm",)


def test_cookie_states_are_written_shortest() -> None:
    assert resolve({"cookies": "warm:0.50, pool:03,nat"}).cookies == ("warm:0.5", "pool:3", "nat")


def test_only_queues_that_are_managed_mark() -> None:
    assert resolve({"queue": "pie", "ecn": True}).paths()[0].ecn
    for queue in ["1000p", "unlimited", "50ms"]:
        with pytest.raises(UsageError, match="ecn: "):
            resolve({"queue": queue, "ecn": True})


def test_bursts_need_losses_that_fit_in_them() -> None:
    burst = resolve({"loss": "0.02", "loss_burst": "5", "loss_in_burst": "0.4"}).paths()[0].burst
    assert burst == Burst(packets=5, loss=0.4)
    for loss, packets, share in [("0.4", "5", "0.4"), ("0.5", "1", "0.6")]:
        with pytest.raises(UsageError, match="loss_burst: "):
            resolve({"loss": loss, "loss_burst": packets, "loss_in_burst": share})


BAD: dict[str, list[Any]] = {
    "rtt": ["fast", "-1", "-0.001", "10001", "nan", "inf", "", "20,,30", "20,20", "20;30"],
    "down": ["4", "-4mbit", "4mb/s", "0kbit", "200gbit", "", "4mbit,4000kbit"],
    "up": ["slow", "0.1bit"],
    "topology": ["ring", ""],
    "loss": ["1", "-0.1", "much", "nan"],
    "loss_burst": ["0.5", "1001", "long", "nan", "5"],
    "loss_in_burst": ["0", "1.1", "all", "0.5"],
    "jitter": ["-1", "1001", "some", "nan"],
    "reorder": ["maybe", "true"],
    "ecn": ["maybe", "true", "yes"],
    "duplicate": ["-0.1", "1.1", "twice", "nan"],
    "queue": ["1000", "0p", "1kB", "64kBit", "-5p", "2000000p", "0ms", "61s", "70000ms", "red"],
    "middlebox": [
        "firewall",
        "drop-data:0",
        "drop-data:1.1",
        "drop-data:",
        "drop-data:nan",
        "reset:half",
        "",
    ],
    "initial_window": ["0", "1001", "3.5", "three"],
    "congestion_control": ["vegas", ""],
    "ip": ["5", "v6", "", True, 4.0],
    "processing": ["-1", "11", "nan", "fast"],
    "mode": ["quick", "tcp,tcp", ""],
    "client": ["lynx", ""],
    "engine": ["dream"],
    "cookies": [
        "hot",
        "",
        "warm,warm",
        "warm:0",
        "warm:1",
        "warm:nan",
        "warm:half",
        "pool",
        "pool:1",
        "pool:17",
        "pool:2.5",
        "nat:2",
    ],
    "repeats": ["0", "-1", "many", "1.5", "100001"],
    "jobs": ["0", "all", "257"],
    "seed": ["-1", "x", str(2**53 + 1)],
    "pages": [[""], ["wikipedia", "wikipedia"]],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in BAD.items() for value in values])
def test_a_bad_value_is_refused_with_its_key_and_a_hint(key: str, value: object) -> None:
    with pytest.raises(UsageError) as refused:
        resolve({key: value})
    assert refused.value.message.startswith(f"{key}: ")
    assert refused.value.hint


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("repeats", 1.5),
        ("repeats", True),
        ("keep_alive", "yes"),
        ("keep_alive", 1),
        ("rtt", []),
        ("rtt", [True]),
        ("down", 4.5),
        ("loss", "0.1.2"),
        ("queue", 1000),
        ("middlebox", 0.3),
        ("pages", [7]),
        ("mode", [["tcp"]]),
        ("seed", {}),
    ],
)
def test_a_toml_value_of_the_wrong_type_is_refused(key: str, value: object) -> None:
    with pytest.raises(UsageError) as refused:
        resolve({}, PlanFile(values={key: value}))
    assert refused.value.message.startswith(f"{key}: ")
    assert refused.value.hint


def test_an_rtt_may_be_zero_and_a_rate_beside_it_unlimited() -> None:
    [path] = resolve({"rtt": "0", "down": "unlimited", "up": "unlimited"}).paths()
    assert (path.rtt_ms, path.down_bps, path.up_bps) == (0.0, None, None)
    assert parse_rtt("0 ms") == parse_rtt(0) == 0.0


def test_the_message_for_a_bad_rtt_says_what_it_should_be() -> None:
    with pytest.raises(UsageError) as refused:
        resolve({"rtt": "fast"})
    assert refused.value.message == 'rtt: "fast" is not a time in ms'


def test_a_bad_key_of_a_file_is_named_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('pages = ["wikipedia"]\n\nrepeat = 3\n')
    with pytest.raises(UsageError) as refused:
        resolve({}, read_plan_file(file))
    assert refused.value.message == f"{file}, line 3, repeat: unknown key"
    assert refused.value.hint == "did you mean repeats?"


def test_a_bad_value_of_a_file_is_named_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('# loss = 1\n"rtt" = [20,\n -1]\n')
    with pytest.raises(UsageError, match=r"mine\.toml, line 2, rtt: \"-1\" is out of range"):
        resolve({}, read_plan_file(file))


@pytest.mark.parametrize("content", [b"rtt = ", b"\xff\xfe", b"[" * 5000, b"rtt = 1\nrtt = 2"])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"plan: .*mine\.toml is not") as refused:
        read_plan_file(file)
    assert refused.value.hint


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*none\.toml"):
        read_plan_file(tmp_path / "none.toml")


@given(
    st.dictionaries(
        st.sampled_from([*Plan.model_fields, "x"]), st.text() | st.integers() | st.lists(st.text())
    )
)
def test_any_values_make_a_plan_or_a_usage_error(values: dict[str, object]) -> None:
    try:
        resolve(values)
    except UsageError as error:
        assert error.hint


@pytest.mark.parametrize("file", sorted((ROOT / "plans").glob("*.toml")), ids=lambda file: file.name)
def test_the_plans_we_ship_are_sound(file: Path) -> None:
    plan = resolve({}, read_plan_file(file))
    assert plan.mode == ("tcp", "tfo") or len(plan.treatments) > 1
