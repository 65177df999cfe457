"""Real Chromium requests each resource of a page once; its load event waits for those that block it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from synth_chromium import Chromium
from synth_pages import CDN, ROOT, Maker, everything, without_room
from synth_site import PAPER, Profile, Site, embedded

IMAGES = ["image/png", "image/gif", "image/jpeg", "image/webp", "image/svg+xml", "image/x-icon", "image/avif"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@contextmanager
def loaded(browser: Chromium, site: Site) -> Iterator[None]:
    """Opens the page in the browser while the context lasts."""
    with site.served() as port, browser.loaded(site.page["resources"][0]["url"], port):
        yield


def asked_for(page: Profile, browser: Chromium) -> tuple[Site, set[str]]:
    """Loads a page in Chromium.

    Returns:
        The site, after Chromium has requested all of it, and the URLs that Chromium requested more than once.
    """
    site = Site(page)
    with loaded(browser, site):
        site.wait_for(site.expected)
    # A browser without a copy of the resource cannot use a 304 response, so it may request the URL again.
    usable = {resource["url"] for resource in site.page["resources"] if resource.get("status") != 304}
    return site, {url for url, times in site.asked.items() if times > 1 and url in usable}


@pytest.mark.parametrize("mime", ["text/html", "application/xhtml+xml"])
def test_every_way_of_discovery_is_followed_once(mime: str, browser: Chromium) -> None:
    site, twice = asked_for(everything(mime), browser)
    assert site.asked.keys() == site.expected == site.answers.keys()
    assert not twice


def test_bodies_without_room_lose_nothing(browser: Chromium) -> None:
    site, twice = asked_for(without_room(), browser)
    assert site.asked.keys() == site.expected == site.answers.keys()
    assert not twice


@pytest.mark.parametrize("name", PAPER)
def test_the_pages_of_the_paper_are_asked_for_as_recorded(name: str, browser: Chromium) -> None:
    site, twice = asked_for(embedded(name), browser)
    assert site.asked.keys() == site.expected == site.answers.keys()
    assert not twice


TIMING = """(() => {
    const [navigation] = performance.getEntriesByType("navigation");
    const ended = performance.getEntriesByType("resource").filter(entry => entry.name == "%s");
    return {load: navigation.loadEventStart, ended: ended.map(entry => entry.responseEnd)};
})()"""

BLOCKING: list[tuple[str, str, str, dict[str, Any]]] = [
    ("parser", "style", "text/css", {}),
    ("parser", "image", "image/png", {}),
    ("parser", "font", "font/woff2", {}),
    ("parser", "other", "video/mp4", {}),
    ("script", "style", "text/css", {}),
    ("script", "script", "text/javascript", {"delay_ms": 150.0}),
    ("script", "image", "image/png", {"delay_ms": 150.0}),
    ("script", "font", "font/woff2", {}),
    ("script", "other", "application/octet-stream", {}),
    ("style", "image", "image/png", {}),
    ("style", "font", "font/woff2", {}),
]


@pytest.mark.parametrize(("via", "kind", "mime", "keys"), BLOCKING)
def test_the_load_event_waits_for_what_blocks_it(
    via: str, kind: str, mime: str, keys: dict[str, Any], browser: Chromium
) -> None:
    made = Maker()
    by = made.add(f"{ROOT}a.css", "style", "text/css", 0, "parser", at_byte=500) if via == "style" else 0
    made.add(f"{CDN}slow", kind, mime, by, via, server_ms=300.0, **keys)
    with loaded(browser, Site(made.page())):
        timing = browser.evaluate(TIMING % f"{CDN}slow")
    assert timing["ended"] and timing["load"] >= timing["ended"][0] >= 300


@pytest.mark.parametrize("via", ["parser", "script"])
@pytest.mark.parametrize(
    ("kind", "mime"), [("style", "text/css"), ("image", "image/png"), ("xhr", "text/xml")]
)
def test_the_load_event_does_not_wait_for_the_rest(via: str, kind: str, mime: str, browser: Chromium) -> None:
    made = Maker()
    made.add(f"{CDN}slow", kind, mime, 0, via, blocks_load=False)
    site = Site(made.page())
    released = site.hold(f"{CDN}slow")
    with loaded(browser, site):  # which returns after the load event, with the answer still held
        site.wait_for({f"{CDN}slow"})
        released.set()


def test_a_script_works_as_long_as_it_did(browser: Chromium) -> None:
    made = Maker()
    script = made.add(f"{ROOT}a.js", "script", "text/javascript", 0, "parser", at_byte=500, cpu_ms=120.0)
    made.add(f"{ROOT}b.png", "image", "image/png", script, "script")
    starts = """["a.js", "b.png"].map(name => performance.getEntriesByName(location.href + name)[0])
        .map(entry => name => entry[name]).map((of, at) => of(at ? "startTime" : "responseEnd"))"""
    with loaded(browser, Site(made.page())):
        script_ended, image_asked = browser.evaluate(starts)
    assert image_asked - script_ended >= 120


def test_chromium_decodes_every_image(browser: Chromium) -> None:
    made = Maker(body_bytes=60_000)
    urls = []
    for mime in IMAGES:
        for body_bytes in (141, 142, 150, 153, 400, 413, 65_800):
            urls.append(f"{ROOT}{mime}/{body_bytes}")
            made.add(urls[-1], "image", mime, 0, "parser", at_byte=100, body_bytes=body_bytes)
    for mime, body_bytes in [("image/gif", 26), ("image/gif", 43), ("image/png", 67), ("image/png", 43)]:
        urls.append(f"{ROOT}{mime}/{body_bytes}")
        made.add(urls[-1], "image", mime, 0, "parser", at_byte=100, body_bytes=body_bytes)
    broken = "[...document.images].filter(image => !image.naturalWidth).map(image => image.src)"
    with loaded(browser, Site(made.page())):
        assert browser.evaluate("document.images.length") == len(urls)
        assert browser.evaluate(broken) == []
