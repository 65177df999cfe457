"""The report in a real browser: tooltips, filters, zoom and print, also for a page with malicious URLs."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, sync_playwright
from program import Program
from synth_site import program as installed

from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.report.write import write_pdf

REQUESTS = 2_000
EVIL = "</script><script>window.hurt=1</script><img/src=''onerror=window.hurt=1>"
REVERSED = "\u202egnp.\u2066\u200f"
RUN = "run wikipedia evil.json --rtt 100 --down 100mbit --up 100mbit --engine simulate --repeats 2 --out out"


def evil() -> str:
    """A page of many requests.

    Their URLs hold markup and characters that reverse the text; some are very long.
    """
    common = {"request_bytes": 300, "header_bytes": 200, "body_bytes": 1_000}
    urls = (
        f"http://h{n % 40}.test/{n}/{EVIL}{REVERSED}{'a' * (0 if n % 40 else 8_000)}" for n in range(REQUESTS)
    )
    resources = [
        {**common, "url": url, "kind": "image", "mime": EVIL, "initiator": {"resource": 0, "via": "parser"}}
        for url in urls
    ]
    del resources[0]["initiator"]
    resources[0] |= {"kind": "document", "mime": "text/html"}
    return json.dumps({"format": "firstflight-profile/1", "name": "evil", "resources": resources})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of a run of two pages: one harmless, one malicious."""
    program = Program(tmp_path_factory.mktemp("report"))
    (program.folder / "evil.json").write_text(evil())
    ended = program(*RUN.split())
    assert ended.code == 0, ended.err
    assert not {"\u202e", "\u2066", "\u200f"} & set(ended.out)
    return program.folder / "out"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_browser(installed("chromium"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, chromium_sandbox=os.geteuid() != 0)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(browser: Browser, folder: Path) -> Iterator[Page]:
    """The opened report; at the end it must have written nothing to the console and requested only itself."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((folder / "report.html").as_uri())
    yield page
    assert said == []
    assert asked == [(folder / "report.html").as_uri()]


def waterfall(report: Page, name: str) -> Locator:
    """The waterfall of a page, opened and drawn."""
    found = report.locator("details.waterfall", has=report.locator("summary", has_text=name))
    if found.get_attribute("open") is None:
        # Opened by keyboard: a figure further up that is drawn in the meantime would move the target of a
        # click.
        found.locator("summary").press("Enter")
    found.scroll_into_view_if_needed()
    return drawn(found)


def drawn(found: Locator) -> Locator:
    """The waterfall, after the script has finished drawing it."""
    found.page.wait_for_selector(f"#{found.get_attribute('id')}[data-drawn=yes]")
    return found


def bars(found: Locator, side: str) -> int:
    return drawn(found).locator(f".panel.{side} .mark-rect path").count()


def ticks(found: Locator) -> list[str]:
    """The labels of the time axis in the panel with TFO."""
    return sorted(drawn(found).locator(".head.treatment text").all_text_contents())


def colours(report: Page) -> list[str]:
    """The background colour of the page, and the colour of a figure's text."""
    label = report.locator("figure text").first.evaluate("text => getComputedStyle(text).fill")
    return [report.evaluate("getComputedStyle(document.body).backgroundColor"), label]


def test_pointing_at_a_row_shows_its_times_in_both_modes(report: Page) -> None:
    found = waterfall(report, "wikipedia")
    found.locator(".row").nth(2).hover()
    tip = report.locator(".tip")
    assert tip.is_visible()
    cells = [row.split("\t") for row in tip.locator("table").inner_text().splitlines()]
    times = {name: (tcp, tfo) for name, tcp, tfo in cells}
    assert times[""] == ("without TFO", "with TFO")
    assert all(re.fullmatch(r"\d\.\d{3} s", time) for name in ("starts", "ends") for time in times[name])
    found.locator("summary").hover()
    assert tip.is_hidden()


def test_filtering_by_origin_leaves_its_requests_alone(report: Page) -> None:
    found = waterfall(report, "wikipedia")
    before, rows = bars(found, "baseline"), found.locator(".row").count()
    origin = found.get_by_role("combobox", name="Origin")
    origin.select_option(index=1)
    name = origin.input_value()
    assert 0 < bars(found, "baseline") < before
    assert 0 < found.locator(".row").count() < rows
    assert all(f". {name}/" in str(row.get_attribute("aria-label")) for row in found.locator(".row").all())
    origin.select_option("")
    assert found.locator(".row").count() == rows


def test_connections_have_colours_and_the_critical_path_is_marked(report: Page) -> None:
    found = waterfall(report, "wikipedia")
    fills = found.locator(".panel.baseline .mark-rect path")
    marked = found.locator(".panel.baseline .mark-rect path[fill='var(--ink)']").count()
    assert marked > 2
    assert found.locator(".row.critical").count() > 1
    found.get_by_role("combobox", name="Colour by").select_option("connection")
    drawn(found)
    seen = set(fills.evaluate_all("paths => paths.map(path => path.getAttribute('fill'))"))
    assert len([colour for colour in seen if colour.startswith("var(--connection-")]) > 3
    found.get_by_role("combobox", name="Colour by").select_option("phase")
    found.get_by_role("combobox", name="Critical path").select_option("no")
    assert found.locator(".row.critical").count() == 0
    found.get_by_role("combobox", name="Critical path").select_option("yes")


def test_dragging_zooms_both_panels_and_a_button_shows_the_whole_again(report: Page) -> None:
    found = waterfall(report, "wikipedia")
    whole = ticks(found)
    box = found.locator(".panel.baseline").bounding_box()
    assert box
    report.mouse.move(box["x"] + 20, box["y"] + 40)
    report.mouse.down()
    report.mouse.move(box["x"] + 90, box["y"] + 60)
    report.mouse.up()
    assert ticks(found) != whole
    found.get_by_role("button", name="show the whole load").click()
    assert ticks(found) == whole


def test_the_keyboard_chooses_rows_and_zooms(report: Page) -> None:
    found = waterfall(report, "wikipedia")
    rows = found.get_by_role("listbox")
    rows.focus()
    report.keyboard.press("ArrowDown")
    report.keyboard.press("ArrowDown")
    chosen = found.locator("[aria-selected=true]")
    assert chosen.get_attribute("id") == rows.get_attribute("aria-activedescendant")
    assert re.match(
        r"2\. http.* without TFO: \d.* s; with TFO: \d.* s", str(chosen.get_attribute("aria-label"))
    )
    assert report.locator(".tip").is_visible()
    whole = ticks(found)
    report.keyboard.press("+")
    assert ticks(found) != whole
    report.keyboard.press("Escape")


def test_a_page_that_means_harm_is_shown_and_does_none(report: Page) -> None:
    found = waterfall(report, "evil")
    assert found.locator(".row").count() == REQUESTS
    assert bars(found, "treatment") >= REQUESTS
    found.locator(".row").nth(1).hover()
    assert "%3Cscript%3Ewindow.hurt" in report.locator(".tip .url").inner_text()
    assert not set(report.evaluate("document.body.innerText")) & {"\u202e", "\u2066", "\u200f"}
    assert report.evaluate("[window.hurt, document.querySelectorAll('img').length]") == [None, 0]


def test_the_page_is_as_wide_as_a_narrow_screen_and_dark_where_that_is_wished(report: Page) -> None:
    light = colours(report)
    report.emulate_media(color_scheme="dark")
    report.set_viewport_size({"width": 420, "height": 900})
    assert not set(light) & set(colours(report))
    assert report.evaluate("document.documentElement.scrollWidth") <= 420
    report.emulate_media(color_scheme="light")
    report.set_viewport_size({"width": 1280, "height": 900})


def test_it_prints_to_pages(folder: Path) -> None:
    chromium = find_browser(installed("chromium"))
    content = write_pdf(folder, chromium, sandbox=True).read_bytes()
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) > 4
