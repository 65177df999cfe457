"""The exceptions of firstflight.

FirstflightError
├── UsageError          the call was wrong: nothing was started (exit 2)
│   └── PageInputError  a page cannot be read: names the file and the place
└── ExperimentError     the call was right, the experiment failed (exit 1)
    └── LabError        the laboratory could not be built or died
"""


class FirstflightError(Exception):
    """Base class of all errors that firstflight raises deliberately.

    Args:
        message: One line: what is wrong and where.
        hint: One line: what the user can do about it; may be empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(one_line(message))
        self.message = one_line(message)
        self.hint = one_line(hint)


class UsageError(FirstflightError):
    """The call was wrong; nothing was started."""


class PageInputError(UsageError):
    """A page cannot be read."""


class ExperimentError(FirstflightError):
    """The experiment failed."""


class LabError(ExperimentError):
    """The laboratory could not be built, or died."""


def one_line(text: str) -> str:
    """`text` with all characters escaped that start a line, move the cursor or cannot be encoded.

    Messages quote the contents of archives, which must not control the terminal or add lines.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
