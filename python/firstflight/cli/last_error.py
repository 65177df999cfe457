"""The last error that the program showed, kept for `firstflight doctor --report`.

It is one small file in the user's state folder (`$XDG_STATE_HOME`, XDG Base Directory Specification). If that
folder cannot be written, no error is kept. The file names neither the user nor the machine, no folder but the
system's, and no query of a URL.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict, cast

import firstflight

_FILE = "firstflight/last-error.json"
_LONGEST = 2000
_FRAMES = 12
_PUBLIC_NAMES = {"", "root", "localhost", "localdomain"}
_SYSTEM = "usr|bin|sbin|lib|lib64|opt|proc|sys|dev|etc|run|snap"
_FOLDERS = re.compile(rf"(?<![\w.:/])(?:~|/(?!(?:{_SYSTEM})\b)[^\s/'\"`,;()]+)/(?:[^\s/'\"`,;()]+/)*")
_FILE_URL = re.compile(r"file://[^\s'\"`,;()]*/")
_CREDENTIALS = re.compile(r"(?<=://)[^\s/@]+@")
_QUERY = re.compile(r"(?<=\w)(://[^\s?#'\"`]+)\?[^\s'\"`]*")


class LastError(TypedDict, total=False):
    """An error as it was shown, without personal data."""

    at: str
    firstflight: str
    call: str
    message: str
    hint: str
    where: list[str]


def keep_error(
    arguments: list[str], message: str, hint: str = "", error: BaseException | None = None
) -> None:
    """Writes an error in place of the previous one. It never fails.

    Args:
        arguments: The call. The command and the names of its flags are kept, but not their values.
        message: What the program printed.
        hint: The fix that it suggested.
        error: An unexpected exception; the place where it was raised is kept.
    """
    kept: LastError = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "firstflight": firstflight.__version__,
        "call": _call(arguments),
        "message": without_names(message)[:_LONGEST],
        "hint": without_names(hint)[:_LONGEST],
        "where": _frames(error),
    }
    try:
        file = _place()
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(kept, ensure_ascii=False) + "\n", encoding="utf-8")
        partial.replace(file)
    except (OSError, RuntimeError, ValueError):
        """A home that is read-only, full or nowhere: the error has been shown."""


def last_error() -> LastError | None:
    """The last error that was written; `None` if there is none that can be read."""
    try:
        kept = json.loads(_place().read_text(encoding="utf-8"))
    except (OSError, RuntimeError, ValueError):
        return None
    return cast(LastError, kept) if isinstance(kept, dict) else None


def without_names(text: str) -> str:
    """The text without names of the user and the machine, their folders, and queries of URLs."""
    text = _QUERY.sub(r"\1?…", _CREDENTIALS.sub("", text))
    for home in _homes():
        text = re.sub(rf"{re.escape(home)}(?=/|\b)", "~", text)
    text = _FOLDERS.sub("…/", _FILE_URL.sub("file://…/", text))
    for names, mask in ((_users(), "USER"), (_hosts(), "HOST")):
        for name in sorted(names - _PUBLIC_NAMES, key=len, reverse=True):
            text = re.sub(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", mask, text, flags=re.IGNORECASE)
    return text


def _place() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local/state") / _FILE


def _call(arguments: list[str]) -> str:
    """The command and the names of its flags. Arguments after `--` belong to another program."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    flags = [word.partition("=")[0] for word in own[1:] if re.match("--?[a-z]", word)]
    return " ".join([*own[:1], *flags])[:_LONGEST]


def _frames(error: BaseException | None) -> list[str]:
    """Where an exception was raised: modules and lines, without folders."""
    if error is None:
        return []
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return [f"{_module(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]


def _module(file: str) -> str:
    known = [folder for folder in sys.path if folder and file.startswith(f"{folder}/")]
    return file.removeprefix(f"{max(known, key=len)}/") if known else Path(file).name


def _homes() -> list[str]:
    homes = {os.environ.get("HOME", ""), *(entry.pw_dir for entry in _accounts())}
    return sorted((home.rstrip("/") for home in homes if home.rstrip("/")), key=len, reverse=True)


def _users() -> set[str]:
    variables = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER", "USERNAME")}
    names = {name for entry in _accounts() for name in (entry.pw_name, entry.pw_gecos.partition(",")[0])}
    return {name for name in variables | names if len(name) > 1}


def _hosts() -> set[str]:
    name = os.uname().nodename
    return {host for host in (name, name.partition(".")[0]) if len(host) > 1}


def _accounts() -> list[pwd.struct_passwd]:
    try:
        return [pwd.getpwuid(os.getuid())]
    except KeyError:
        return []
