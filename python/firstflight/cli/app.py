"""The program `firstflight`: its commands, and what becomes of errors."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer
from typer.exceptions import TyperException

from firstflight.cli import audit, check, compare, doctor, pages, profile, record, report, run, stress
from firstflight.cli import exec as exec_command
from firstflight.cli.talk import Talk
from firstflight.errors import FirstflightError, UsageError

_FAILED, _WRONG_CALL = 1, 2

app = typer.Typer(
    name="firstflight",
    help="How much sooner does this page load, on this path, with TCP Fast Open? With proof.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.command)
app.command("pages")(pages.command)
app.command("profile")(profile.command)
app.command("record")(record.command)
app.command("report")(report.command)
app.command("compare")(compare.command)
app.command("audit")(audit.command)
app.command("exec", context_settings={"allow_interspersed_args": False})(exec_command.command)
app.command("check")(check.command)
app.command("stress")(stress.command)
app.command("doctor")(doctor.command)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: What follows the program's name; by default that of this process.

    Returns:
        0 done, 1 the experiment failed, 2 the call was wrong, 128 + n stopped by signal n.
    """
    talk = Talk()
    try:
        code = app(args=arguments, prog_name="firstflight", standalone_mode=False)
    except TyperException as error:
        talk.error(*_explain(error))
        return _WRONG_CALL
    except FirstflightError as error:
        talk.failure(error)
        return _WRONG_CALL if isinstance(error, UsageError) else _FAILED
    return code if isinstance(code, int) else 0


def _explain(error: TyperException) -> tuple[str, str]:
    """What is wrong with the call and which help to read."""
    text = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "firstflight"
    return text[:1].lower() + text[1:], f"see {command} --help"


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"firstflight {version('firstflight')}\n")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Flags of the program itself."""
