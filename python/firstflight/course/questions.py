"""The course's questions, answered for each page from what was measured.

Every sentence has a number of this run in it; where a question cannot be answered, the sentence says what is
missing. Causes are named only where the ledger or a critical path shows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from firstflight.analysis.summary import Evidence
from firstflight.analysis.words import is_of_modes
from firstflight.course.answers import best_and_worst, by_rtt, content, effect, in_short
from firstflight.course.cases import Case, cases
from firstflight.course.surprises import surprises
from firstflight.visible import visible

ALL_PAGES = "All pages"
"""Stands for a page in the last answers of a run with several."""

_QUESTIONS: dict[str, Callable[[Sequence[Case]], Iterator[str]]] = {
    "What {treatment} does to the load time": effect,
    "How the RTT changes it": by_rtt,
    "Does the content lend itself to it?": content,
    "What is surprising": surprises,
    "Summary": in_short,
    "Best and worst case": best_and_worst,
}


@dataclass(frozen=True)
class PageAnswers:
    """The answers for one page.

    Attributes:
        page: Its name, or `ALL_PAGES`.
        sections: A question's heading and the sentences of its answer, in order.
        url: Its URL; empty where no load got so far, and for all pages.
    """

    page: str
    sections: list[tuple[str, list[str]]]
    url: str = ""


def answers(results: Evidence) -> list[PageAnswers]:
    """The answers for every page, and of a run with several pages those for all of them at the end.

    Args:
        results: What was measured.
    """
    by_page = cases(results.pairs, results.summary["cells"], results.explanations)
    found = [_answers(page, of_page) for page, of_page in by_page.items()]
    if len(found) < 2:
        return found
    everything = [case for of_page in by_page.values() for case in of_page]
    overall = {name: _QUESTIONS[name] for name in ("Summary", "Best and worst case")}
    return [*found, PageAnswers(ALL_PAGES, _sections(everything, overall))]


def _answers(page: str, of_page: Sequence[Case]) -> PageAnswers:
    url = next((case.cell["url"] for case in of_page if case.cell["url"]), "")
    return PageAnswers(page, _sections(of_page, _QUESTIONS), url)


def _sections(
    of_page: Sequence[Case], questions: Mapping[str, Callable[[Sequence[Case]], Iterator[str]]]
) -> list[tuple[str, list[str]]]:
    name = "TFO" if all(is_of_modes(case.cell) for case in of_page) else "the treatment"
    return [(heading.format(treatment=name), list(answer(of_page))) for heading, answer in questions.items()]


_TITLE = "What {treatment} does to these pages"
_MARKUP = re.compile(r"([\\`*_\[\]<>#|])")


def render_answers(answers: Sequence[PageAnswers], treatment: str = "TCP Fast Open") -> str:
    """The whole file: a heading per page, below it one per question, a paragraph per answer.

    Args:
        answers: As `firstflight.course.questions.answers` gives them.
        treatment: What the loads were compared for.
    """
    return (
        "\n\n".join(
            [
                "# " + _plain(_TITLE.format(treatment=treatment)),
                *(part for page in answers for part in _page(page)),
            ]
        )
        + "\n"
    )


def _page(answers: PageAnswers) -> Iterator[str]:
    yield f"## {_plain(answers.page)}"
    if answers.url:
        yield _plain(answers.url)
    for heading, sentences in answers.sections:
        yield f"### {heading}"
        yield "\n".join(map(_sentence, sentences))


def _sentence(text: str) -> str:
    """A line: text of a page never becomes markup, our own code spans stay."""
    parts = re.split(r"(`--[a-z0-9, -]+`)", text)
    return "".join(part if number % 2 else _plain(part) for number, part in enumerate(parts))


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", visible(text))
