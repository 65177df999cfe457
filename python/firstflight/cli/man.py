"""The man page: every command with all it takes, from `firstflight.cli.reference`.

Typer carries a click of its own, whose commands click-man does not know; and one page is easier to read than
one per command. `python -m firstflight.cli.man` writes it to stdout as roff, with the macros of man(7).
"""

import sys
from collections.abc import Iterator

from firstflight.cli.reference import EXIT_CODES, Described, Taken, commands, program

_HEAD = """\
.TH FIRSTFLIGHT 1 "" firstflight "User Commands"
.nh
.ad l
.SH NAME
firstflight \\- a page-load laboratory for TCP Fast Open
.SH SYNOPSIS
"""

_TAIL = """\
.SH ENVIRONMENT
.TP
.B NO_COLOR
No colour, wherever the output goes.
.SH FILES
.TP
.I results/
Results folders, each named after the local time its run began, unless \\-\\-out names another.
.SH EXAMPLES
.TP
.B firstflight run
The paper's experiment: four pages, three round\\-trip times, without and with TCP Fast Open.
.TP
.B firstflight run wikipedia \\-\\-rtt 50 \\-\\-down 10mbit \\-\\-up 1mbit
One page, one path.
.TP
.B firstflight exec \\-\\-pages wikipedia \\-\\- bash
A shell inside the laboratory.
"""


def render_man() -> str:
    """The page, as roff."""
    whole, parts = program(), commands()
    lines = [f".B {_roff(whole.usage)}", ".SH DESCRIPTION", *_paragraphs(whole), ".SH OPTIONS"]
    lines += [line for option in whole.options for line in _taken(option)]
    lines.append(".SH COMMANDS")
    lines += [line for command in parts for line in _command(command)]
    lines.append(".SH EXIT STATUS")
    lines += [line for code, meaning in EXIT_CODES for line in (".TP", f".B {code}", _roff(meaning))]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _command(command: Described) -> Iterator[str]:
    yield f".SS {_roff(command.usage)}"
    yield from _paragraphs(command)
    for taken in (*command.arguments, *command.options):
        yield from _taken(taken)


def _paragraphs(command: Described) -> Iterator[str]:
    for paragraph in command.paragraphs:
        yield from (".PP", _roff(paragraph))


def _taken(taken: Taken) -> tuple[str, str, str]:
    names = ", ".join(rf"\fB{_roff(name)}\fR" for name in taken.names)
    value = rf" \fI{_roff(taken.value)}\fR" if taken.value else ""
    return ".TP", names + value, _roff(taken.meaning)


def _roff(text: str) -> str:
    """Text as it stands: no hyphen for a minus, no request at the start of a line."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.stdout.write(render_man())
