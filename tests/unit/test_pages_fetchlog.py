"""The reader of the course browser's log either reads all of it, or refuses it and names the line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight.errors import PageInputError
from firstflight.pages.readers.fetchlog import (
    Histogram,
    Resolve,
    Response,
    Transaction,
    parse_fetchlog,
    read_fetchlog,
)

MD5 = "0123456789abcdef0123456789abcdef"
LOG = f"""[12:34:WARNING:proxy.cc(1)] something else
*** Renamed /long?a=1&b=2 to /{MD5} ***
<stats>
c:tcp.read_bytes:\t1234
t:tfo.page_load_timer:\t2832
</stats>

<resolves>
strt (ms) | end (ms)  | len (ms)  | err | url:port -> address_list
   94.996 |   754.224 |   659.228 |   0 | a.example:80 ->  192.0.2.1:80
   95.106 |    95.106 |     0.000 |   1 | a.example:80 ->  nil
</resolves>

<transactions>
strt (ms) | end (ms)  | len (ms)  | url
   94.814 |   751.862 |   657.048 | http://a.example/x|y
</transactions>

<responses>
status       | mime_type       | charset | url -> redirect_url
Moved Temporarily |       text/html |   utf-8 | http://a.example/x|y -> http://b.example/
</responses>

<queries>
Histogram: DNS.TotalTime recorded 17 samples, average = 126.5 (flags = 0x1)
0    ---O   (3 = 17.6%)
446   -----[1575:1583:FATAL:context.cc(121)] Check failed: false.
"""


def test_every_section_is_read() -> None:
    log = parse_fetchlog(LOG)
    assert log.renames == {"/long?a=1&b=2": MD5}
    assert log.stats == {"tcp.read_bytes": 1234, "tfo.page_load_timer": 2832}
    assert log.resolves[0] == Resolve(94.996, 754.224, 0, "a.example")
    assert log.transactions == [Transaction(94.814, 751.862, "http://a.example/x|y")]
    assert log.responses == [Response(302, "text/html", "utf-8", "http://a.example/x|y", "http://b.example/")]
    assert log.histograms == {"DNS.TotalTime": Histogram(17, 126.5)}


@pytest.mark.parametrize(
    ("phrase", "redirect", "status"),
    [
        ("OK", "nil", 200),
        ("Not Modified", "nil", 304),
        ("No Content", "nil", 204),
        ("geoiplookup", "nil", 200),
        ("Object moved", "http://b.example/", 302),
        ("Moved Permanently", "http://b.example/", 301),
        ("whatever", "http://b.example/", 302),
    ],
)
def test_a_phrase_is_its_status_and_an_unknown_one_follows_the_redirect(
    phrase: str, redirect: str, status: int
) -> None:
    row = f"<responses>\n{phrase} | a/b | | http://a.example/ -> {redirect}\n</responses>\n"
    assert parse_fetchlog(LOG + "</queries>\n" + row).responses[-1].status == status


def test_a_damaged_row_is_named_with_its_line() -> None:
    with pytest.raises(PageInputError, match=r"mine\.log: line 16: not a row of <transactions>"):
        parse_fetchlog(LOG.replace("751.862 |", "soon |"), place="mine.log")


def test_a_log_that_breaks_off_is_refused() -> None:
    with pytest.raises(PageInputError, match="section <responses> does not end"):
        parse_fetchlog(LOG[: LOG.index("</responses>")])


def test_a_log_without_transactions_is_refused() -> None:
    with pytest.raises(PageInputError, match="no transactions"):
        parse_fetchlog("<stats>\n</stats>\n")


def test_a_log_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\xff\xfe<stats>")
    with pytest.raises(PageInputError, match="byte 0 is not UTF-8"):
        read_fetchlog(path)


LINES = st.sampled_from([*LOG.split("\n"), "</queries>", "nan | inf | 1 | x", "c:x:\tlots", "|||", "<stats>"])


@given(st.one_of(st.text(), st.lists(LINES).map("\n".join)))
def test_no_text_makes_the_parser_fail_otherwise(text: str) -> None:
    try:
        assert parse_fetchlog(text).transactions
    except PageInputError as error:
        assert error.hint
