"""Real wget2 requests every resource that the HTML and the style sheets of a page refer to."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

import pytest
from synth_pages import everything
from synth_site import PAPER, Site, embedded, program


def mirror(site: Site, folder: Path) -> None:
    """Runs wget2 on the page with all its requisites; the site is its proxy for every host."""
    with site.served() as port:
        options = ["--page-requisites", "--span-hosts", "--no-config", "--no-robots", "--tries=1", "--quiet"]
        proxy = f"--http-proxy=http://127.0.0.1:{port}"
        url = site.page["resources"][0]["url"]
        subprocess.run([program("wget2"), *options, proxy, "-P", folder, url], check=False, timeout=120)


def plain(urls: Iterable[str]) -> set[str]:
    """The URLs without percent-escapes, since wget2 adds some, such as `%3B` for a `;` in a path."""
    return {unquote(url) for url in urls}


def named(site: Site) -> set[str]:
    """The URLs that HTML and style sheets refer to, so that a client finds them without running scripts."""
    resources = site.page["resources"]
    found: set[int] = set()
    for index, resource in enumerate(resources):
        by = resource.get("initiator")
        if "%%" in resource["url"]:  # wget2 garbles a percent sign that escapes nothing
            continue
        # A script, not the HTML, requests a font for which the load event waits.
        font = (
            bool(by)
            and by["via"] == "parser"
            and resource["kind"] == "font"
            and resource.get("blocks_load", True)
        )
        if not by or (by["resource"] in found and by["via"] != "script" and not font):
            found.add(index)
    return {resources[index]["url"] for index in found}


def test_wget2_finds_what_html_and_style_sheets_name(tmp_path: Path) -> None:
    site = Site(everything())
    mirror(site, tmp_path)
    # The page has no area left in which the last two of 18 style sheets could show images. The document's
    # script requests these images instead.
    late = {url for url in named(site) if "img/16-" in url or "img/17-" in url}
    assert plain(named(site) - late) <= plain(site.asked) <= plain(named(site))
    assert set(site.asked.values()) == {1}


@pytest.mark.parametrize("name", PAPER)
def test_wget2_finds_what_the_pages_of_the_paper_name(name: str, tmp_path: Path) -> None:
    site = Site(embedded(name))
    mirror(site, tmp_path)
    assert plain(site.asked) & plain(site.answers) == plain(named(site))
    assert set(site.asked.values()) == {1}
