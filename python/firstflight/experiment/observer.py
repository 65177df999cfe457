"""Observes a run: a progress bar, a test."""

from firstflight.engines.engine import Record


class Observer:
    """Does nothing; override what is of interest. `made` and `warn` may be called from any thread."""

    def calibrating(self, paths: int) -> None:
        """Calibration of so many paths begins."""

    def starting(self, planned: int, made: int, wide: int) -> None:
        """Loads begin: so many are planned up to here, so many of them are made.

        With `until` once for each round: so many cell pairs were still too wide before it.
        """

    def made(self, record: Record, *, settled: bool) -> None:
        """A load was made; one that is not `settled` is made again.

        Its relay was late, its client broke, or its laboratory failed.
        """

    def warn(self, message: str, hint: str = "") -> None:
        """Something makes the results doubtful."""
