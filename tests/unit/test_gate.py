import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

import pytest
from gate_check import HARMFUL, HARMLESS, KEYS, appended, inject, judged, redirected, revisited

from firstflight.analysis.changes import Changes, find_changes, match
from firstflight.cli import main
from firstflight.errors import PageInputError, UsageError
from firstflight.gate.budget import Limit, hold_sizes, hold_timings, not_measured, read_budget
from firstflight.gate.moments import Moments, later, render_page
from firstflight.gate.result import GateResult
from firstflight.gate.trials import Trials, networks
from firstflight.model.page import Host, Initiator, Page, Resource
from firstflight.pages import load_page
from firstflight.report.gate import gate_text

PAGES = Path(__file__).parents[1] / "data" / "pages"
NAMES = ("2013_etsy.com_wprof", "2012_fr.wikipedia.org_chrome")
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def page_of(name: str) -> Page:
    return load_page(str(PAGES / f"{name}.json"))[0].page


def resource(url: str, kind: str = "image", by: int | None = 0, **fields: object) -> Resource:
    initiator = None if by is None else Initiator(by, "parser")
    made = Resource(f"https://shop.example{url}", "image", "image/png", 300, 300, 5_000, initiator=initiator)
    return replace(made, kind=kind, **fields)  # type: ignore[arg-type]


def shop(*more: Resource, **document: object) -> Page:
    resources = (
        resource("/", "document", None, body_bytes=20_000, server_ms=100.0, **document),
        resource("/app.3f9c2ab1.css", "style", server_ms=10.0),
        resource("/app.77aa01ff.js", "script"),
        resource("/pixel.png?t=1700000001"),
        *more,
    )
    return Page("shop", resources).checked()


def with_fields(page: Page, index: int, **fields: object) -> Page:
    new = replace(page.resources[index], **fields)  # type: ignore[arg-type]
    return replace(page, resources=(*page.resources[:index], new, *page.resources[index + 1 :])).checked()


def changes(*pages: Page) -> Changes:
    return find_changes(pages[:1], pages[1:])


def whats(found: Changes) -> list[tuple[str, tuple[str, ...]]]:
    return [(change.url.removeprefix("https://shop.example"), change.what) for change in found.found]


def test_requests_match_under_new_hashes_query_values_and_the_host_of_a_preview() -> None:
    head = shop()
    urls = ("/", "/app.00112233.css", "/app.deadbeef.js", "/pixel.png?t=1800000002")
    renamed = tuple(
        replace(old, url=f"https://preview-17.example{url}")
        for old, url in zip(head.resources, urls, strict=True)
    )
    head = replace(head, resources=renamed)
    assert match(shop(), head) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert not changes(shop(), head).found


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_differs_from_itself_in_nothing_and_its_version_is_itself(name: str) -> None:
    page = page_of(name)
    found = changes(page, page)
    assert not found.found
    assert found.version(found.found).page == page


@pytest.mark.parametrize("name", NAMES)
def test_another_visit_of_an_unchanged_page_has_no_change(name: str) -> None:
    page = page_of(name)
    for seed in range(5):
        found = changes(revisited(page, f"{seed} a", 0.0), revisited(page, f"{seed} b", 0.0))
        assert not found.found


def test_times_and_lengths_count_from_where_two_visits_of_a_page_do_not_differ() -> None:
    base = shop()
    assert not changes(base, with_fields(base, 0, server_ms=150.0, body_bytes=20_100)).found
    assert whats(changes(base, with_fields(base, 0, server_ms=151.0))) == [("/", ("slower",))]
    assert whats(changes(base, with_fields(base, 0, server_ms=49.0))) == [("/", ("faster",))]
    assert whats(changes(base, with_fields(base, 1, body_bytes=7_000))) == [
        ("/app.3f9c2ab1.css", ("larger",))
    ]


def test_with_several_recordings_a_change_counts_where_all_pairs_show_it() -> None:
    slow, slower, fast = (with_fields(shop(), 0, server_ms=ms) for ms in (200.0, 260.0, 100.0))
    assert whats(find_changes([fast], [slow])) == [("/", ("slower",))]
    assert not find_changes([fast, slow], [slow]).found
    assert whats(find_changes([fast, slow], [slower])) == [("/", ("slower",))]
    [change] = find_changes([fast, with_fields(fast, 0, server_ms=120.0)], [slower, slow]).found
    assert (change.words, change.fields) == ("server time 100 to 180 ms", {"server_ms": 180.0})
    advert = resource("/advert-of-the-day.png")
    assert whats(find_changes([shop()], [shop(advert)])) == [("/advert-of-the-day.png", ("added",))]
    assert not find_changes([shop()], [shop(advert), shop()]).found
    assert not find_changes([shop(), shop(advert)], [shop(advert)]).found
    assert whats(find_changes([shop(advert), shop(advert)], [shop()])) == [
        ("/advert-of-the-day.png", ("removed",))
    ]


def test_a_redirect_before_the_document_is_a_redirect_and_the_document_stays_what_it_is() -> None:
    base = shop()
    found = changes(base, redirected(base, "https://go.example/"))
    assert [(change.url, change.what) for change in found.found] == [
        ("https://go.example/", ("redirect", "added"))
    ]
    page = found.version(found.found).page
    assert [one.url for one in page.resources[:2]] == ["https://go.example/", "https://shop.example/"]
    assert page.resources[1].initiator == Initiator(0, "redirect")
    back = changes(redirected(base, "https://go.example/"), base)
    assert back.version(back.found).page.resources[0].initiator is None
    assert whats(back) == [("https://go.example/", ("removed",))]


def test_what_is_new_comes_with_all_that_it_asks_for_and_what_it_now_asks_for_waits_for_it() -> None:
    loader = resource("/loader.js", "script", 0)
    behind = resource("/late.js", "script", 4)
    base = shop(resource("/photo.png"))
    head = Page("shop", (*shop(loader, behind).resources, resource("/photo.png", by=4))).checked()
    found = changes(base, head)
    assert whats(found) == [("/loader.js", ("added",))]
    assert found.found[0].others == ("https://shop.example/late.js",)
    page = found.version(found.found).page
    by_url = {one.url.removeprefix("https://shop.example"): one for one in page.resources}
    assert page.resources[by_url["/photo.png"].initiator.resource].url.endswith("/loader.js")  # type: ignore[union-attr]
    assert found.version(()).page == base


def test_two_pages_are_not_two_versions_of_one() -> None:
    with pytest.raises(PageInputError, match="are different pages: "):
        changes(page_of(NAMES[0]), page_of(NAMES[1]))


def test_the_page_of_stylesheets_has_the_document_its_stylesheets_and_what_holds_them() -> None:
    script = resource("/holds.js", "script")
    held = replace(
        resource("/held.css", "style"), initiator=Initiator(0, "parser", after=4), body_bytes=9_000
    )
    urls = [one.url.removeprefix("https://shop.example") for one in render_page(shop(script, held)).resources]
    assert urls == ["/", "/app.3f9c2ab1.css", "/holds.js", "/held.css"]


@pytest.mark.parametrize("kind", HARMFUL)
@pytest.mark.parametrize("name", NAMES)
def test_what_delays_a_page_is_found_on_both_networks_and_named(name: str, kind: str) -> None:
    page = page_of(name)
    unchanged = Trials(changes(page, page))
    for network in networks(["cable", "4g"], KEYS):
        made = inject(kind, page, unchanged.simulated(network).pairs[0][0])
        assert made is not None
        verdict = judged([page], [made[0]], network)
        assert (verdict.verdict, verdict.costs[0].change.url) == ("slower", made[1])
        assert verdict.costs[0].ms > 10


def test_an_image_that_nothing_waits_for_is_no_regression() -> None:
    page = page_of(NAMES[0])
    unchanged = Trials(changes(page, page))
    for network in networks(["cable", "4g"], KEYS):
        made = inject(HARMLESS, page, unchanged.simulated(network).pairs[0][0])
        assert made is not None
        assert judged([page], [made[0]], network).verdict != "slower"


def test_a_new_request_that_work_of_others_hides_is_waited_for() -> None:
    first = resource("/first.js", "script", cpu_ms=200.0)
    hides = resource("/hides.js", "script", cpu_ms=200.0, blocks_load=False, server_ms=5.0)
    base = shop(first, hides)
    [network] = networks(["cable"], KEYS)
    verdict = judged([base], [appended(base, 4, "https://shop.example/late.js")], network)
    load = verdict.metrics[-1]
    assert verdict.steps[-1].url == "https://shop.example/hides.js"
    assert (load.name, load.verdict, load.is_on_path) == ("plt", "slower", True)


def test_of_several_stylesheets_one_is_later_in_all_pairs_not_the_worst_of_each() -> None:
    def at(a: float, b: float) -> Moments:
        return Moments({"stylesheets": 900.0}, {"a": a, "b": b, "last": 900.0})

    by_chance = [(at(100, 100), at(130, 70)), (at(100, 100), at(70, 130)), (at(100, 100), at(99, 101))]
    found = later("stylesheets", by_chance)
    assert found is not None
    assert (median(found.each_ms), found.of) == (1.0, 3)
    found = later("stylesheets", [(at(100, 100), at(150, ms)) for ms in (60, 100, 140)])
    assert found is not None
    assert found.each_ms == [50.0, 50.0, 50.0]


def test_undoing_the_change_makes_the_head_faster_again() -> None:
    base = shop()
    [network] = networks(["cable"], KEYS)
    slower = with_fields(base, 0, server_ms=300.0)
    there, back = judged([base], [slower], network), judged([slower], [base], network)
    assert (there.verdict, back.verdict) == ("slower", "faster")
    assert [m.difference_ms for m in there.metrics] == [-m.difference_ms for m in back.metrics]


def test_a_network_that_draws_lots_gets_more_pairs_and_the_same_verdict() -> None:
    base = shop()
    Path("wifi.toml").write_text('rtt = 20\ndown = "20mbit"\nup = "5mbit"\nloss = 0.02\njitter = 10\n')
    [network] = networks(["wifi.toml"], KEYS)
    verdict = judged([base], [with_fields(base, 0, server_ms=200.0)], network)
    assert (verdict.verdict, verdict.pairs) == ("slower", 21)
    assert judged([base], [base], network).verdict == "same"


@pytest.fixture
def files() -> Sequence[str]:
    base = shop()
    Path("base.json").write_text(base.to_json())
    Path("head.json").write_text(appended(base, 2, "https://tags.example/tag.js").to_json())
    return ("base.json", "head.json")


def gate(*arguments: str) -> int:
    return main(["gate", "--quiet", *arguments])


def test_hosts_speak_what_they_spoke_in_the_recording_and_http_2_where_it_does_not_tell(
    files: Sequence[str], capsys: Shown
) -> None:
    assert gate("--base", files[0], "--head", files[1], "--network", "cable") == 1
    said = capsys.readouterr()
    assert "does not say which version of HTTP its hosts spoke; gate uses HTTP/2 for all" in said.err
    assert "A first visit with HTTP/2 over TLS" in said.out
    for file in files:
        page = load_page(file)[0].page
        Path(file).write_text(replace(page, hosts=(Host("shop.example", http="1.1"),)).to_json())
    assert gate("--base", files[0], "--head", files[1], "--network", "cable") == 1
    said = capsys.readouterr()
    assert "HTTP/2" not in said.err
    assert "A first visit with the HTTP version of each host as recorded" in said.out


def test_the_exit_code_is_1_for_a_slower_head_and_0_for_the_other_way(
    files: Sequence[str], capsys: Shown
) -> None:
    assert gate("--base", files[0], "--head", files[1]) == 1
    shown = capsys.readouterr().out
    assert "cable: slower" in shown
    assert "tags.example/tag.js" in shown
    assert "Not seen: Work of the main thread" in shown
    assert gate("--base", files[1], "--head", files[0]) == 0
    assert gate("--base", files[0], "--head", files[0]) == 0


def test_nothing_is_said_to_be_measured_where_no_change_counts(files: Sequence[str], capsys: Shown) -> None:
    assert gate("--base", files[0], "--head", files[0], "--engine", "both", "--json") == 0
    said = capsys.readouterr()
    assert f"{files[0]} is both base and head" in said.err
    assert {verdict["engine"] for verdict in json.loads(said.out)["verdicts"]} == {"simulate"}


def test_where_the_clocks_disagree_it_is_said_and_the_gate_fails() -> None:
    base = shop()
    head = with_fields(base, 0, server_ms=300.0)
    found = changes(base, head)
    [network] = networks(["cable"], KEYS)
    simulated = judged([base], [head], network)
    unmoved = tuple(replace(one, verdict="same", difference_ms=1.0) for one in simulated.metrics)
    measured = replace(simulated, engine="emulate", verdict="same", metrics=unmoved)
    result = GateResult("a", "b", found, (simulated, measured), (), 10.0, 50.0, "", ())
    assert result.exit_code == 1
    assert result.disagreements == [
        "cable: the page load is slower (+200 ms) on the virtual clock and same (+1 ms) on the real kernel. "
        "The gate fails where either is slower."
    ]
    assert "The clocks disagree on cable" in gate_text(result)
    assert not replace(result, verdicts=(simulated, replace(simulated, engine="emulate"))).disagreements


def test_json_junit_and_markdown_say_the_same(files: Sequence[str], capsys: Shown) -> None:
    budget = [{"resourceCounts": [{"resourceType": "third-party", "budget": 0}]}]
    Path("budget.json").write_text(json.dumps(budget))
    assert (
        gate(
            *("--base", files[0], "--head", files[1], "--network", "cable", "--budget", "budget.json"),
            *("--json", "--junit", "f.xml", "--markdown", "f.md"),
        )
        == 1
    )
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["holds"]) == ("firstflight-gate/1", False)
    [verdict] = found["verdicts"]
    assert (verdict["network"], verdict["verdict"], verdict["same_within_ms"]) == ("cable", "slower", None)
    assert verdict["costs"][0]["url"] == "https://tags.example/tag.js"
    assert verdict["head"]["connections"] == verdict["base"]["connections"] + 1
    assert [step["url"] for step in verdict["critical_path"] if step["is_changed"]] == [
        "https://tags.example/tag.js"
    ]
    assert [(held["name"], held["value"], held["over"]) for held in found["budgets"]] == [
        ("third-party", 1, True)
    ]
    suite = ElementTree.parse("f.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    markdown = Path("f.md").read_text()
    assert "| cable | **slower** |" in markdown
    assert "`tags.example/tag.js`" in markdown
    assert "<svg" not in markdown


def test_markdown_takes_no_markup_from_a_page(files: Sequence[str]) -> None:
    base = load_page(files[0])[0].page
    hostile = "https://x.example/<img%20src=x>|`@everyone`%0A"
    Path("hostile.json").write_text(appended(base, 2, hostile).to_json())
    assert gate("--base", files[0], "--head", "hostile.json", "--markdown", "f.md") == 1
    written = Path("f.md").read_text()
    for line in "".join(written.split("\n```")[::2]).splitlines():
        outside = "".join(line.split("`")[::2])
        assert "<img" not in outside
        assert "@everyone" not in outside.replace("\\@", "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--base", "base.json"], "missing option '--head'"),
        (["--base", "none.har", "--head", "base.json"], "none.har: no such file or directory"),
        (["--base", "base.json", "--head", str(PAGES / f"{NAMES[0]}.json")], "are different pages"),
        (
            ["--base", "base.json", "--head", "untimed.json"],
            "untimed.json: the recording tells no times of servers",
        ),
        (["--base", "base.json", "--head", "head.json", "--network", "5g"], 'no preset "5g"'),
        (["--base", "base.json", "--head", "head.json", "--network", "paper"], "paper is 3 paths"),
        (
            ["--base", "base.json", "--head", "head.json", "--engine", "guess"],
            "engine: guess is not an engine",
        ),
        (["--base", "base.json", "--head", "head.json", "--tolerance", "x"], "is not a time in ms"),
        (
            ["--base", "base.json", "--head", "head.json", "--engine", "emulate", "--repeats", "2"],
            "2 load pairs",
        ),
        (
            ["--base", "base.json", "--head", "head.json", "--junit", "no/f.xml"],
            "no/f.xml: cannot be written",
        ),
        (["--base", "base.json", "--head", "head.json", "--budget", "none.json"], "cannot read none.json"),
    ],
)
def test_a_wrong_call_ends_with_2_and_says_what_is_wrong(
    files: Sequence[str], arguments: list[str], problem: str, capsys: Shown
) -> None:
    page = load_page(files[0])[0].page
    untimed = tuple(replace(one, server_ms=0.0) for one in page.resources)
    Path("untimed.json").write_text(replace(page, resources=untimed).to_json())
    assert gate(*arguments) == 2
    said = capsys.readouterr()
    assert problem in said.err
    assert "hint:" in said.err
    assert not said.out


def budget_of(*tables: object) -> Path:
    Path("budget.json").write_text(json.dumps(tables))
    return Path("budget.json")


def test_a_budget_of_lighthouse_is_held_and_its_paints_are_said_to_be_not_measured() -> None:
    file = budget_of(
        {"path": "/*", "resourceCounts": [{"resourceType": "total", "budget": 1}]},
        {
            "path": "/*",
            "options": {"firstPartyHostnames": ["*.shop.example"]},
            "timings": [
                {"metric": "plt", "budget": 1000},
                {"metric": "largest-contentful-paint", "budget": 2500},
            ],
            "resourceSizes": [{"resourceType": "stylesheet", "budget": 4}],
            "resourceCounts": [
                {"resourceType": "image", "budget": 1},
                {"resourceType": "third-party", "budget": 0},
            ],
        },
        {"path": "/checkout", "resourceCounts": [{"resourceType": "total", "budget": 0}]},
    )
    page = appended(shop(), 2, "https://tags.example/tag.js")
    budget = read_budget(file, page.url)
    sizes = {held.limit.name: (held.value, held.is_over) for held in hold_sizes(budget, page)}
    assert sizes == {
        "stylesheet": (pytest.approx(5_300 / 1024), True),
        "image": (1, False),
        "third-party": (1, True),
    }
    assert [held.is_over for held in hold_timings(budget, "4g", {"plt": 1001.0})] == [True]
    assert [held.value for held in hold_timings(budget, "4g (measured)", {})] == [None]
    assert [held.limit for held in not_measured(budget)] == [Limit("largest-contentful-paint", 2500.0, "ms")]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (
            {"timings": [{"metric": "time-to-joy", "budget": 1}]},
            r"\[0\].timings\[0\].metric: 'time-to-joy' is not known",
        ),
        (
            {"resourceSizes": [{"resourceType": "wasm", "budget": 1}]},
            r"\[0\].resourceSizes\[0\].resourceType: 'wasm'",
        ),
        (
            {"resourceCounts": [{"resourceType": "total", "budget": "9"}]},
            r"\[0\].resourceCounts\[0\].budget: '9'",
        ),
        ({"resourceCounts": [{"resourceType": "total", "budget": -1}]}, r"budget: '-1' is no number"),
        ({"timing": []}, r"\[0\]: unknown key 'timing'"),
        ({"path": "shop"}, r"\[0\].path: is no path"),
        ({"options": {"firstParty": []}}, r"\[0\].options: unknown key 'firstParty'"),
        ({"path": "/other"}, r"no path of it matches"),
        ("x", r"\[0\]: is no object"),
    ],
)
def test_a_budget_that_is_wrong_is_refused_with_its_place(table: object, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        read_budget(budget_of(table), "https://shop.example/")


@pytest.mark.parametrize(
    ("pattern", "path", "is_meant"),
    [
        ("/", "/a", True),
        ("/a", "/b", False),
        ("/*.html", "/a/b.html?", True),
        ("/*.html$", "/a/b.htmlx", False),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
    ],
)
def test_the_path_of_a_budget_is_a_pattern_as_of_robots_txt(pattern: str, path: str, is_meant: bool) -> None:
    file = budget_of({"path": pattern, "timings": []})
    try:
        read_budget(file, f"https://shop.example{path}")
    except UsageError:
        assert not is_meant
    else:
        assert is_meant


def test_a_server_is_not_slower_where_a_recording_only_takes_it_to_be_nearer() -> None:
    base = replace(with_fields(shop(), 0, server_ms=8.0), hosts=(Host("shop.example", 107.0),))
    head = replace(with_fields(shop(), 0, server_ms=113.0), hosts=(Host("shop.example", 1.9),))
    assert not changes(base, head).found
    assert not changes(base, replace(head, hosts=())).found
    assert whats(changes(base, replace(head, hosts=base.hosts))) == [("/", ("slower",))]


def test_a_new_request_to_such_a_host_does_not_get_its_round_trip_twice() -> None:
    base = replace(with_fields(shop(), 0, server_ms=8.0), hosts=(Host("shop.example", 107.0),))
    slow = [replace(one, server_ms=one.server_ms + 105.0) for one in base.resources]
    new = resource("/new.css", "style", server_ms=115.0)
    head = Page("shop", (*slow, new), hosts=(Host("shop.example", 2.0),)).checked()
    found = changes(base, head)
    assert whats(found) == [("/new.css", ("added",))]
    assert found.version(found.found).page.resources[-1].server_ms == 10.0
