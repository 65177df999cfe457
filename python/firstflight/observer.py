"""How long work reports progress, notes and warnings."""


class Observer:
    """Ignores all reports. Subclasses override the methods that they need. Any thread may call them."""

    def begin(self, what: str, total: int | None = None, done: int = 0) -> None:
        """Starts the progress of another kind of work.

        Args:
            what: What is counted, in a word or two, such as `loads`.
            total: How many there are; `None`: not counted.
            done: How many are done already.
        """

    def advance(self) -> None:
        """Reports that one more is done."""

    def remark(self, text: str) -> None:
        """Shows a remark beside the progress. It replaces the previous remark."""

    def note(self, text: str) -> None:
        """Reports information that may be left out."""

    def warn(self, message: str, hint: str = "") -> None:
        """Reports a reason to doubt the results, and what to do about it."""


class Forwarder(Observer):
    """Shows progress itself and passes notes and warnings on."""

    def __init__(self, talk: Observer) -> None:
        self._talk = talk

    def note(self, text: str) -> None:
        """Passes the note on."""
        self._talk.note(text)

    def warn(self, message: str, hint: str = "") -> None:
        """Passes the warning on."""
        self._talk.warn(message, hint)
