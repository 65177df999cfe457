"""Prints the rows of `check` on several kernels as a table for docs/compatibility.md: table.py CHECK.json ...

Each file is the output of `firstflight check --json` on one kernel. Verdicts that differ from those of the
first kernel are bold. Below the table, for each row with such a difference, is what was seen on each kernel.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(files: Sequence[Path]) -> int:
    """Prints the table."""
    checks = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    rows = [{row["id"]: row for row in check["rows"]} for check in checks]
    if any(list(one) != list(rows[0]) for one in rows):
        sys.exit("error: the files have not the same rows. hint: make all with one version of firstflight")
    lines = ["| row | level |" + "".join(f" {check['kernel']} |" for check in checks)]
    lines += ["|" + "---|" * (len(checks) + 2)]
    lines += [_line(name, [one[name] for one in rows]) for name in rows[0]]
    lines += [""]
    lines += [
        f"- `{name}` on {check['kernel']}: {one[name]['seen']}"
        for name in rows[0]
        for check, one in zip(checks, rows, strict=True)
        if len({other[name]["verdict"] for other in rows}) > 1
    ]
    sys.stdout.write("\n".join(lines).rstrip() + "\n")
    return 0


def _line(name: str, rows: Sequence[dict[str, Any]]) -> str:
    first = rows[0]["verdict"]
    verdicts = [row["verdict"] if row["verdict"] == first else f"**{row['verdict']}**" for row in rows]
    return f"| `{name}` | {rows[0]['level']} | {' | '.join(verdicts)} |"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: table.py CHECK.json ...")
    sys.exit(main([Path(file) for file in sys.argv[1:]]))
