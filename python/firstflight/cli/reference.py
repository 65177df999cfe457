"""Documents every command from its definition: as docs/reference/cli.md, and as the man page.

`python -m firstflight.cli.reference` writes the page to stdout; with `--man`, the man page as roff, with the
macros of man(7). Why not click-man: Typer contains its own click, whose commands click-man does not know.
Also, one page is easier to read than one per command.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from firstflight.cli.app import COMMANDS, app, load_command

EXIT_CODES = (
    ("0", "done"),
    (
        "1",
        "the experiment failed: no laboratory, a full disk, a load without proof, a cell without an ok load",
    ),
    ("2", "the call was wrong; nothing was started"),
    ("128 + n", "stopped by signal n, as shells count it: 130 after Ctrl-C, 143 after SIGTERM"),
)
"""The program's exit codes and their reasons."""

_HEAD = """\
# Commands and flags

<!-- Made by `make reference`; a test checks that it is current. -->

The text of `firstflight COMMAND --help` for every command. See also [how commands behave](../cli.md) and [the
keys of a plan](plan.md): most flags of `run` are such keys.

| exit code | meaning |
|---|---|
"""


@dataclass(frozen=True)
class Taken:
    """An argument or option: its names, its value (empty: none), and its meaning."""

    names: tuple[str, ...]
    value: str
    meaning: str


@dataclass(frozen=True)
class Described:
    """A command: its name, its usage, its description (paragraphs), and its arguments and options."""

    name: str
    usage: str
    paragraphs: tuple[str, ...]
    arguments: tuple[Taken, ...]
    options: tuple[Taken, ...]


def program() -> Described:
    """The program itself, with the options before a command."""
    group, context = _group()
    options = tuple(_option(option, context) for option in group.params if isinstance(option, TyperOption))
    usage = "firstflight [OPTIONS] COMMAND [ARGUMENTS]"
    return Described("firstflight", usage, _paragraphs(group.help), (), options)


def commands() -> tuple[Described, ...]:
    """Every command, in the order of `firstflight --help`."""
    _, context = _group()
    loaded = ((name, load_command(name)) for name in COMMANDS)
    return tuple(
        _describe(command, typer.Context(command, parent=context, info_name=name))
        for name, command in loaded
        if isinstance(command, TyperCommand)
    )


def render_reference() -> str:
    """The page, as Markdown."""
    lines = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES]
    for command in (program(), *commands()):
        lines += _section(command)
    return _HEAD + "\n".join(lines) + "\n"


def _group() -> tuple[TyperGroup, typer.Context]:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group, typer.Context(group, info_name="firstflight")


def _describe(command: TyperCommand, context: typer.Context) -> Described:
    arguments = [parameter for parameter in command.params if isinstance(parameter, TyperArgument)]
    options = [parameter for parameter in command.params if isinstance(parameter, TyperOption)]
    usage = " ".join([context.command_path, "[OPTIONS]", *map(_placeholder, arguments)])
    return Described(
        str(context.info_name),
        usage,
        _paragraphs(command.help),
        tuple(Taken((_name(argument),), "", _meaning(argument, context)) for argument in arguments),
        tuple(_option(option, context) for option in options),
    )


def _placeholder(argument: TyperArgument) -> str:
    several = argument.nargs != 1 and "..." not in _name(argument)
    name = _name(argument) + (" ..." if several else "")
    return name if argument.required else f"[{name}]"


def _name(argument: TyperArgument) -> str:
    return argument.display_name_raw


def _option(option: TyperOption, context: typer.Context) -> Taken:
    value = "" if option.is_flag else option.metavar or option.display_type(context)
    return Taken((*option.opts, *option.secondary_opts), value, _meaning(option, context))


def _meaning(parameter: TyperArgument | TyperOption, context: typer.Context) -> str:
    record = parameter.get_help_record(context)
    return " ".join(record[1].split()) if record else ""


def _paragraphs(text: str | None) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in (text or "").split("\n\n"))


def _section(command: Described) -> Iterator[str]:
    yield from ("", f"## {command.usage.split(' [')[0]}", "")
    yield from ("```", command.usage, "```", "")
    for paragraph in command.paragraphs:
        yield from (paragraph, "")
    if command.arguments:
        yield from ("| argument | meaning |", "|---|---|")
        yield from (f"| `{taken.names[0]}` | {_text(taken)} |" for taken in command.arguments)
        yield ""
    yield from ("| flag | value | meaning |", "|---|---|---|")
    yield from (f"| {_code(taken.names)} | {_values(taken)} | {_text(taken)} |" for taken in command.options)


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _values(taken: Taken) -> str:
    """The choices, separated without a bar, which would end the table's column."""
    return " or ".join(f"`{value}`" for value in taken.value.split("|")) if taken.value else ""


def _text(taken: Taken) -> str:
    return taken.meaning.replace("<", "&lt;").replace("|", "&#124;")


_MAN_HEAD = """\
.TH FIRSTFLIGHT 1 "" firstflight "User Commands"
.nh
.ad l
.SH NAME
firstflight \\- a page-load laboratory for TCP Fast Open
.SH SYNOPSIS
"""

_MAN_TAIL = """\
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
    lines = [f".B {_roff(whole.usage)}", ".SH DESCRIPTION", *_man_paragraphs(whole), ".SH OPTIONS"]
    lines += [line for option in whole.options for line in _taken(option)]
    lines.append(".SH COMMANDS")
    lines += [line for command in parts for line in _command(command)]
    lines.append(".SH EXIT STATUS")
    lines += [line for code, meaning in EXIT_CODES for line in (".TP", f".B {code}", _roff(meaning))]
    return _MAN_HEAD + "\n".join(lines) + "\n" + _MAN_TAIL


def _command(command: Described) -> Iterator[str]:
    yield f".SS {_roff(command.usage)}"
    yield from _man_paragraphs(command)
    for taken in (*command.arguments, *command.options):
        yield from _taken(taken)


def _man_paragraphs(command: Described) -> Iterator[str]:
    for paragraph in command.paragraphs:
        yield from (".PP", _roff(paragraph))


def _taken(taken: Taken) -> tuple[str, str, str]:
    names = ", ".join(rf"\fB{_roff(name)}\fR" for name in taken.names)
    value = rf" \fI{_roff(taken.value)}\fR" if taken.value else ""
    return ".TP", names + value, _roff(taken.meaning)


def _roff(text: str) -> str:
    """Escapes text: no hyphen in place of a minus, no roff request at the start of a line."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.stdout.write(render_man() if sys.argv[1:] == ["--man"] else render_reference())
