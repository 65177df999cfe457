"""A mirror directory becomes a page, from its files and, if there is one, its log."""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from firstflight.errors import PageInputError
from firstflight.pages import open_pages
from firstflight.pages.readers.mirror import MirrorFiles, log_name, open_mirror
from firstflight.pages.urls import page_name

URL = "http://a.example/"


def mirror(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, body in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body if isinstance(body, bytes) else body.encode())
    return root


def found(page_url: str, root: Path) -> dict[str, tuple[str, int | None, str | None, bool]]:
    page = open_mirror(root, page_url).page
    return {
        r.url: (
            r.kind,
            r.initiator.resource if r.initiator else None,
            r.initiator.via if r.initiator else None,
            bool(r.initiator and r.initiator.inferred),
        )
        for r in page.resources
    }


def test_a_page_without_a_log_is_what_its_files_refer_to(tmp_path: Path) -> None:
    html = '<link rel=stylesheet href=/s.css><script src="//b.example/x.js"></script><a href="/other.html">'
    root = mirror(
        tmp_path,
        {
            "a.example/index.html": html,
            "a.example/s.css": "p { background: url(i.png) } q { background: url(gone.png) }",
            "a.example/i.png": b"\x89PNG",
            "a.example/other.html": "never loaded",
            "b.example/x.js": "load('http:\\/\\/b.example/data/late.json')",
            "b.example/data/late.json": "{}",
        },
    )
    assert found(URL, root) == {
        URL: ("document", None, None, False),
        "http://a.example/s.css": ("style", 0, "parser", False),
        "http://b.example/x.js": ("script", 0, "parser", False),
        "http://a.example/i.png": ("image", 1, "style", False),
        "http://b.example/data/late.json": ("xhr", 2, "script", True),
    }
    loaded = open_mirror(root, URL)
    assert [missing.url for missing in loaded.page.missing] == ["http://a.example/gone.png"]
    assert [resource.body_bytes for resource in loaded.page.resources] == [
        loaded.bodies[index].stat().st_size for index in range(5)
    ]
    assert loaded.page.resources[1].initiator is not None
    assert loaded.page.resources[1].initiator.at_byte == html.index(">") + 1


def test_names_of_other_tools_answer_their_urls(tmp_path: Path) -> None:
    target = "/" + "long" * 20 + "?x=1"
    md5 = hashlib.md5(target.encode()).hexdigest()
    names = {
        f"a.example/{md5}": f"http://a.example{target}",
        "a.example/q.js?v=1": "http://a.example/q.js?v=1",
        "a.example/r.js@v=1": "http://a.example/r.js?v=1",
        "a.example/s.js_v=1": "http://a.example/s.js?v=1",
        "a.example/b c.png": "http://a.example/b%20c.png",
        "a.example/page.html": "http://a.example/page",
        "a.example/dir/index.html": "http://A.example/dir/",
        "b.example+8080/x.png": "http://b.example:8080/x.png",
        "c.example:8080/x.png": "http://c.example:8080/x.png",
    }
    files = MirrorFiles(mirror(tmp_path, dict.fromkeys(names, "x")))
    for name, url in names.items():
        assert files.find(url) == tmp_path / name, url
    assert files.find("http://a.example/nothing") is None
    assert files.find("http://[broken/") is None


def test_a_rename_of_the_log_is_followed(tmp_path: Path) -> None:
    root = mirror(tmp_path, {"a.example/0123": "x"})
    assert MirrorFiles(root, {"/frame.html#part": "0123"}).find("http://a.example/frame.html#part")


def test_references_between_files_are_followed_as_a_browser_would_from_disk(tmp_path: Path) -> None:
    root = mirror(
        tmp_path, {"a.example/dir/p.html": '<img src="../../b.example/i.png">', "b.example/i.png": "x"}
    )
    assert list(found("http://a.example/dir/p.html", root)) == [
        "http://a.example/dir/p.html",
        "http://b.example/i.png",
    ]


def test_no_reference_leaves_the_mirror(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_text("x")
    sources = ("../../secret.png", "/link.png", "/folder/index.html", "//c.example/secret.png", "/loop")
    html = "".join(f'<img src="{source}">' for source in sources)
    root = mirror(tmp_path / "m", {"a.example/index.html": html})
    (root / "a.example" / "link.png").symlink_to(secret)
    (root / "a.example" / "folder").symlink_to(root / "a.example", target_is_directory=True)
    (root / "a.example" / "loop").symlink_to("loop")
    (root / "c.example").symlink_to(tmp_path, target_is_directory=True)
    loaded = open_mirror(root, URL)
    assert len(loaded.page.resources) == 1
    assert len(loaded.page.missing) == len(sources)


def test_the_start_page_of_a_bare_directory_is_its_only_index(tmp_path: Path) -> None:
    root = mirror(tmp_path / "m", {"a.example/index.html": "<p>", "b.example/i.png": "x"})
    for spec in (root, f"{root}/", root / "a.example", f"{root}#{URL}"):
        (loaded,) = open_pages([str(spec)])
        assert loaded.page.url == URL


def test_a_mirror_with_several_starts_asks_which(tmp_path: Path) -> None:
    root = mirror(tmp_path / "m", {"a.example/index.html": "<p>", "b.example/index.html": "<p>"})
    with pytest.raises(PageInputError, match="2 could be meant") as caught:
        open_pages([str(root)])
    named = re.findall(r"'([^']*)'", caught.value.hint)
    assert [open_pages([spec])[0].page.url for spec in named] == ["http://a.example/", "http://b.example/"]


@pytest.mark.parametrize(
    ("files", "start"),
    [
        ({"www.m.example/news/index.html": "<p>", "b.example/i.png": "x"}, "http://www.m.example/news/"),
        (
            {"a.example/x/1.html": "<iframe src=//b.example/f.html>", "b.example/f.html": "<p>"},
            "http://a.example/x/1.html",
        ),
        (
            {
                "a.example/x/1.html": "<iframe src='../../b.example/f.html'>",
                "b.example/f.html": "<a href='http://a.example/x/1.html'>",
            },
            "http://a.example/x/1.html",
        ),
        (
            {"a.example/x/1.html": "<a href=2.html>", "a.example/x/2.html": "<p>"},
            "http://a.example/x/1.html",
        ),
        (
            {"a.example/index.html": "<frame src=http://b.example/>", "b.example/index.html": "<p>"},
            "http://a.example/",
        ),
        (
            {"a.example/x.html": "<p>", "b.example/index.html": "Geo = {}", "c.example/x.js.html": "//"},
            "http://a.example/x.html",
        ),
        ({"www.m/x.html": "<p>", "b.example/f.html": "<p>"}, "http://www.m/x.html"),
        (
            {"a.example/wiki/Page": "<!DOCTYPE html><p>", "a.example/wiki/data": "{}"},
            "http://a.example/wiki/Page",
        ),
        ({"a.example/search@q=x.html": "<p>"}, "http://a.example/search@q=x.html"),
    ],
)
def test_a_mirror_whose_start_page_lies_deeper_is_that_page(
    tmp_path: Path, files: Mapping[str, str], start: str
) -> None:
    (page,) = open_pages([str(mirror(tmp_path / "m", files))])
    assert page.page.url == start


def test_start_pages_that_could_be_meant_are_listed_ready_to_be_pasted(tmp_path: Path) -> None:
    root = mirror(tmp_path / "m", {f"a.example/{name} x.html": "<p>" for name in "abcdefg"})
    with pytest.raises(PageInputError, match="7 could be meant") as caught:
        open_pages([str(root)])
    named = re.findall(r"'([^']*)'", caught.value.hint)
    assert len(named) == 5
    assert caught.value.hint.endswith("or one of 2 more")
    assert [open_pages([spec])[0].page.url for spec in named] == [spec.partition("#")[2] for spec in named]


def test_a_mirror_without_its_start_page_says_so(tmp_path: Path) -> None:
    root = mirror(tmp_path / "m", {"a.example/i.png": "x"})
    with pytest.raises(PageInputError, match=r"which page\? no host folder"):
        open_pages([str(root)])
    with pytest.raises(PageInputError, match="no file for the start page"):
        open_pages([f"{root}#{URL}"])


def test_what_is_no_regular_file_is_no_answer(tmp_path: Path) -> None:
    root = mirror(tmp_path / "m", {"a.example/index.html": "<p>"})
    fifo = root / "a.example" / "x.css"
    (root / "a.example" / "index.html").write_text('<link rel=stylesheet href="x.css">')
    os.mkfifo(fifo)
    assert [missing.url for missing in open_mirror(root, URL).page.missing] == ["http://a.example/x.css"]


def test_names_of_logs_and_pages_come_from_the_url() -> None:
    assert log_name("http://en.wikipedia.org/wiki/T_C?x=1") == "httpen.wikipedia.orgwikiT_Cx1"
    assert page_name("http://en.wikipedia.org/wiki/T_C?x=1") == "en.wikipedia.org-wiki-T_C-x-1"
    assert len(page_name("http://a.example/" + "x" * 300)) == 100
    assert page_name("http://ä/") == "page"


def test_paths_between_hosts_name_the_host_again_and_bodies_stay_as_long(tmp_path: Path) -> None:
    html = (
        '<img src="../b.example/i.png"><img src=../b.example/j.png><img src=../c/k.png><i x=a/../b.example/>'
    )
    root = mirror(
        tmp_path,
        {
            "a.example/index.html": html,
            "a.example/c/k.png": "k",
            "b.example/i.png": "i",
            "b.example/j.png": "j",
        },
    )
    served = open_mirror(root, URL).bodies[0].read_text()
    expected = html.replace('"../b.example', '" //b.example').replace("=../b.example", "= //b.example")
    assert served == expected
    assert len(served) == len(html)


def test_what_a_page_does_not_refer_to_is_spare(tmp_path: Path) -> None:
    root = mirror(
        tmp_path, {"a.example/index.html": "<p>", "b.example/x.js": "1", "b.example/frame/index.html": "<p>"}
    )
    assert {(spare.url, spare.mime) for spare in open_mirror(root, URL).spare} == {
        ("http://a.example/index.html", "text/html"),
        ("http://b.example/x.js", "text/javascript"),
        ("http://b.example/frame/", "text/html"),
        ("http://b.example/frame/index.html", "text/html"),
    }
