"""Plans by name, for `--plan NAME`: the experiments of the paper and the course, a TOML file each.

The folder `plans` of the repository links to these files: an installation has only the package.
"""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def plan_files() -> dict[str, Path]:
    """The files of all plans by name, in the order of their names."""
    return {file.stem: file for file in sorted(_FOLDER.glob("*.toml"))}
