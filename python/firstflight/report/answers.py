"""``analysis.md``: the answers to the course's questions, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from firstflight.analysis.questions import PageAnswers
from firstflight.visible import visible

_TITLE = "What {treatment} does to these pages"
_MARKUP = re.compile(r"([\\`*_\[\]<>#|])")


def render_answers(answers: Sequence[PageAnswers], treatment: str = "TCP Fast Open") -> str:
    """The whole file: a heading per page, below it one per question, a paragraph per answer.

    Args:
        answers: As `firstflight.analysis.questions.answers` gives them.
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
    """A line; of a stranger's text in it nothing becomes markup, our own code spans stay."""
    parts = re.split(r"(`--[a-z0-9, -]+`)", text)
    return "".join(part if number % 2 else _plain(part) for number, part in enumerate(parts))


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", visible(text))
