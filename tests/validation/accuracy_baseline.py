"""The baseline: what the real kernel measured.

It is a text file with a row per condition, so that diffs show changes.
"""

import csv
from dataclasses import asdict, dataclass, fields
from pathlib import Path

BASELINE = Path(__file__).with_name("accuracy.tsv")


@dataclass(frozen=True)
class Measured:
    """One condition on the real kernel.

    Attributes:
        number: The number of the condition in the grid.
        n: Pairs of loads.
        tcp_ms: Median PLT without TFO.
        tfo_ms: Median PLT with it.
        improvement: The improvement from the medians, signed.
        low: Lower end of its 95 % interval over pairs.
        high: Upper end.
        late_ms: The largest delay of the relay in any of these loads.
    """

    number: int
    page: str
    topology: str
    rtt_ms: float
    down_bps: int
    loss: float
    keep_alive: bool
    n: int
    tcp_ms: float
    tfo_ms: float
    improvement: float
    low: float
    high: float
    late_ms: float


def write(file: Path, rows: list[Measured]) -> None:
    """Writes the baseline."""
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out, delimiter="\t", lineterminator="\n")
        table.writerow(field.name for field in fields(Measured))
        table.writerows([_text(value) for value in asdict(row).values()] for row in rows)


def read(file: Path = BASELINE) -> list[Measured]:
    """Reads it back."""
    with file.open(newline="", encoding="utf-8") as lines:
        return [_row(line) for line in csv.DictReader(lines, delimiter="\t")]


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _row(line: dict[str, str]) -> Measured:
    return Measured(
        number=int(line["number"]),
        page=line["page"],
        topology=line["topology"],
        rtt_ms=float(line["rtt_ms"]),
        down_bps=int(line["down_bps"]),
        loss=float(line["loss"]),
        keep_alive=line["keep_alive"] == "True",
        n=int(line["n"]),
        tcp_ms=float(line["tcp_ms"]),
        tfo_ms=float(line["tfo_ms"]),
        improvement=float(line["improvement"]),
        low=float(line["low"]),
        high=float(line["high"]),
        late_ms=float(line["late_ms"]),
    )
