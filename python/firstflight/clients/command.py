"""What the laboratory is told of a client that is a program of its own."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Command:
    """How a program loads one page.

    Attributes:
        argv: The program and its arguments.
        env: What its environment has beyond the caller's.
        input: What it reads from standard input.
        accepts: Exit codes that mean success.
        result: File it leaves a result of its own in, a JSON object, if it does: the laboratory reads
            `started_ns` (navigation start, monotonic clock), `plt_ms`, `first_byte_ms` and `error`, and hands
            on the rest.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    input: str = ""
    accepts: tuple[int, ...] = (0,)
    result: str | None = None

    def to_json(self, preload: str) -> dict[str, Any]:
        """The form in which the laboratory takes it.

        Args:
            preload: The library that gives it TCP Fast Open; the same in every mode.
        """
        return {
            "kind": "command",
            "argv": list(self.argv),
            "env": {**self.env, "LD_PRELOAD": preload},
            "input": self.input,
            "accepts": list(self.accepts),
            "result": self.result,
        }
