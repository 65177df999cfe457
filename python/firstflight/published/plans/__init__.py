"""Plans by name: the paper's experiment and the course's, a TOML file each. What `--plan NAME` stands for.

The folder `plans` of the repository has links to them: an installation has the package alone.
"""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def plan_files() -> dict[str, Path]:
    """The files of all plans by name, in the order of their names."""
    return {file.stem: file for file in sorted(_FOLDER.glob("*.toml"))}
