"""What long work tells its observer: how far it is, and what is worth a line."""


class Observer:
    """Ignores all of it; override what is of interest. Any thread may call it."""

    def begin(self, what: str, total: int | None = None, done: int = 0) -> None:
        """Something else is done from now on.

        Args:
            what: In a word or two, such as `loads`.
            total: How many there are to do; `None`: not counted.
            done: How many are done already.
        """

    def advance(self) -> None:
        """One more is done."""

    def remark(self, text: str) -> None:
        """What else to show of what is being done; replaces what was remarked before."""

    def note(self, text: str) -> None:
        """Something that may be left out."""

    def warn(self, message: str, hint: str = "") -> None:
        """Something makes the results doubtful; what to do about it."""


class Forwarder(Observer):
    """Shows progress; passes notes and warnings on."""

    def __init__(self, talk: Observer) -> None:
        self._talk = talk

    def note(self, text: str) -> None:
        """Something that may be left out."""
        self._talk.note(text)

    def warn(self, message: str, hint: str = "") -> None:
        """Something makes the results doubtful; what to do about it."""
        self._talk.warn(message, hint)
