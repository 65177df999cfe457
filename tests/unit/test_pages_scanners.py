"""The scanners find references in HTML, style sheets and scripts, and the byte offset of each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight.pages.mentions import is_document, needles
from firstflight.pages.scan import StyleReference, base_url, scan_css, scan_html


@pytest.mark.parametrize(
    ("markup", "reference", "kind"),
    [
        ('<img src="a.png">', "a.png", "image"),
        ("<IMG SRC='a.png'/>", "a.png", "image"),
        ("<img src=a.png alt=x>", "a.png", "image"),
        ('<img srcset="a.png 1x, b.png 2x">', "a.png", "image"),
        ('<script src="a.js"></script>', "a.js", "script"),
        ('<link rel="Stylesheet" href="a.css">', "a.css", "style"),
        ('<link rel=preload as=font href="a.woff">', "a.woff", "font"),
        ('<iframe src="a.html"></iframe>', "a.html", "frame"),
        ('<object data="a.swf"></object>', "a.swf", "other"),
        ('<input type=image src="a.gif">', "a.gif", "image"),
        ('<td background="a.gif">', "a.gif", "image"),
        ('<div style="background: url(a.png)">', "a.png", "image"),
        ("<style>p { background: url('a.png') }</style>", "a.png", "image"),
        ('<img src="a?x=1&amp;y=2">', "a?x=1&y=2", "image"),
    ],
)
def test_markup_that_loads_something_is_found_at_its_end(markup: str, reference: str, kind: str) -> None:
    before = "<!DOCTYPE html>\n<p>ä\r\n".encode()
    (found,) = scan_html(before + markup.encode() + b"\n<p>").references
    assert (found.reference, found.kind) == (reference, kind)
    end = markup.index(">") if not markup.startswith("<style") else len(markup) - 1
    assert found.offset == len(before) + end + 1


@pytest.mark.parametrize(
    "markup",
    [
        '<a href="a.html">',
        '<link rel="shortcut icon" href="a.ico">',
        '<!-- <img src="a.png"> -->',
        '<!--[if IE]><script src="a.js"></script><![endif]-->',
        '<noscript><img src="a.png"></noscript>',
        "<script>document.write('<img src=\"a.png\">')</script>",
        '<textarea title="x"></textarea>',
    ],
)
def test_markup_that_loads_nothing_is_passed_over(markup: str) -> None:
    assert scan_html(markup.encode()).references == ()


def test_conditional_comments_do_not_stop_the_scan() -> None:
    body = b'<![if !IE]><img src="a.png"><![endif]><![CDATA[x]]><!foo><img src="b.png">'
    assert [found.reference for found in scan_html(body).references] == ["a.png", "b.png"]


def test_references_keep_letters_of_any_encoding() -> None:
    assert scan_html('<img src="ä.png">'.encode()).references[0].reference == "ä.png"
    assert scan_html('<img src="ä.png">'.encode("latin-1")).references[0].reference == "ä.png"


def test_inline_scripts_are_kept_with_the_byte_where_they_end() -> None:
    body = b"<p><script>load('x.js')</script><p onclick=\"load('y.js')\">"
    first, second = scan_html(body).scripts
    assert (first.text, first.offset) == ("load('x.js')", body.index(b"</script>") + 9)
    assert (second.text, second.offset) == ("load('y.js')", len(body))


def test_the_base_of_a_document_is_its_first_base_element() -> None:
    scan = scan_html(b'<base href="/b/"><base href="/c/">')
    assert base_url(scan, "http://a.example/x/y") == "http://a.example/b/"


@given(st.binary())
def test_no_bytes_make_the_html_scanner_fail(body: bytes) -> None:
    for found in scan_html(body).references:
        assert 0 <= found.offset <= len(body)


def test_style_sheets_give_images_fonts_and_imports() -> None:
    text = """@import "a.css" screen; @import url(b.css);
    @font-face { src: url("f.woff") format("woff"), url(f.ttf) }
    @media print { p { background: url( 'p.png' ) } } q { cursor: url(c.cur), auto } /* url(no.png) */
    r { background-image: image-set(url(s.png) 1x); content: "url(no.png)" }"""
    assert scan_css(text) == [
        StyleReference("a.css", "style"),
        StyleReference("b.css", "style"),
        StyleReference("f.woff", "font"),
        StyleReference("f.ttf", "font"),
        StyleReference("p.png", "image"),
        StyleReference("c.cur", "image"),
        StyleReference("s.png", "image"),
    ]


@given(st.text())
def test_no_text_makes_the_style_scanner_fail(text: str) -> None:
    scan_css(text)


def test_deep_nesting_does_not_exhaust_the_stack() -> None:
    assert scan_css("a{" * 5_000 + "background:url(x.png)") == [StyleReference("x.png", "image")]


def test_needles_go_from_the_whole_url_to_its_host() -> None:
    found = needles("http://a.example/dir/file.js?v=1")
    assert [(needle.text, needle.sure) for needle in found] == [
        ("a.example/dir/file.js?v=1", True),
        ("a.example/dir/file.js", True),
        ("/dir/file.js?v=1", True),
        ("/dir/file.js", True),
        ("file.js", False),
        ("a.example", False),
    ]


def test_the_root_of_a_host_is_never_a_sure_needle() -> None:
    assert [needle.sure for needle in needles("http://a.example/")] == [False]


def test_a_whole_document_is_told_from_a_piece_of_one() -> None:
    assert is_document(b"<!DOCTYPE html><p>")
    assert not is_document(b"<div>news</div>")
