"""The program `firstflight`: its commands, each imported when it is called, and how errors end it."""

from __future__ import annotations

import atexit
import gc
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

import firstflight
from firstflight.cli.last_error import keep_error
from firstflight.cli.talk import Talk
from firstflight.errors import FirstflightError, UsageError

if TYPE_CHECKING:
    from typer._click import Command, Context

_FAILED, _WRONG_CALL = 1, 2

COMMANDS = {
    "run": "Load pages with and without TFO, and compare.",
    "pages": "Show what pages consist of.",
    "profile": "Remove a page's content, so that it can be shared.",
    "record": "Record pages with Chromium.",
    "report": "Rewrite table, figures and report of a results folder.",
    "gate": "Check whether a page became slower, and why.",
    "compare": "Compare two results, or a result with a published table.",
    "audit": "Check the arithmetic and the design of a published run.",
    "exec": "Run a program inside the laboratory.",
    "prove": "Prove what a program's first flights carry, or explain why they carry nothing.",
    "check": "Check RFC 7413, rule by rule, on the wire.",
    "stress": "Measure what clients cost a server, with and without TFO.",
    "doctor": "Check this machine.",
}
"""What `firstflight --help` says of each. `firstflight.cli.NAME.command` is the command."""

_HELP = {"help_option_names": ["-h", "--help"]}
_PROGRAM_FOLLOWS = {**_HELP, "allow_interspersed_args": False}
_OWN_SETTINGS = {"exec": _PROGRAM_FOLLOWS, "prove": _PROGRAM_FOLLOWS}


def load_command(name: str) -> Command:
    """Imports one of `COMMANDS`, with all that it takes."""
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    # Modules are never freed. Garbage collection among them would take a twentieth of the time.
    gc.disable()
    try:
        module = import_module(f"firstflight.cli.{name}")
    finally:
        gc.enable()
    alone.command(name, context_settings=_OWN_SETTINGS.get(name, _HELP))(module.command)
    return typer.main.get_command(alone)


class _Commands(TyperGroup):
    """Knows each command's name and summary, and imports the one that is called."""

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name and found else None, rest


def _not_called() -> None:
    """Stands for a command until it is called."""


app = typer.Typer(
    name="firstflight",
    cls=_Commands,
    help="Measure how much sooner a page loads on a path with TCP Fast Open, and prove it.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=_HELP,
)
for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(_not_called)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: What follows the program's name; by default that of this process.

    Returns:
        0 done, 1 the experiment failed, 2 the call was wrong, 128 + n stopped by signal n.
    """
    talk = Talk()
    call = sys.argv[1:] if arguments is None else arguments
    Talk.said = None
    # At exit the interpreter searches all objects for cycles, which takes a tenth of a short call.
    atexit.register(gc.freeze)
    try:
        code = app(args=arguments, prog_name="firstflight", standalone_mode=False)
    except TyperException as error:
        talk.error(*_explain(error))
        return _WRONG_CALL
    except FirstflightError as error:
        talk.failure(error)
        code = _WRONG_CALL if isinstance(error, UsageError) else _FAILED
    except Exception as error:
        keep_error(call, f"{type(error).__name__}: {error}", error=error)
        raise
    # The hints of doctor are in its own report.
    if code in (_FAILED, _WRONG_CALL) and Talk.said and call[:1] != ["doctor"]:
        keep_error(call, *Talk.said)
    return code if isinstance(code, int) else 0


def _explain(error: TyperException) -> tuple[str, str]:
    """The error of the call, and the help to read."""
    text = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "firstflight"
    return text[:1].lower() + text[1:], f"see {command} --help"


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"firstflight {firstflight.__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Flags of the program itself."""
