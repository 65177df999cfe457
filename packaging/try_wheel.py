"""Installs and tests a wheel or source archive in an empty environment: `python packaging/try_wheel.py FILE`.

It runs `doctor`, the paper's experiment with two repeats, a simulated sweep and the report. The conditions
are difficult on purpose. The environment's path has spaces and non-ASCII letters, the home is read-only, the
first cargo on the PATH is broken, and the working directory is not the source tree. If root calls it, the
commands run as an ordinary user. It prints the seconds of each step and the size of the installation.

It needs the package index, user namespaces, and a /dev/net/tun that all users may open. For a wheel it
installs only wheels, so that no compiler is needed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ORDINARY_USER = 65_534
"""The user that runs the commands if root calls this: an id that has no rights on any Linux."""
LARGEST_MB = 250.0
EXTRAS = {"scipy", "playwright", "distributed"}
"""Packages that only extras need; the wheel alone must not install them."""


class Trial:
    """One installation in its own folder.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.environment = folder / "environment"
        self.results = folder / "results"
        home, broken = folder / "home", folder / "broken"
        for made in (self.results, home, broken):
            made.mkdir()
        cargo = broken / "cargo"
        cargo.write_text("#!/bin/sh\necho 'error: this cargo is broken' >&2\nexit 1\n")
        cargo.chmod(0o755)
        self.user: int | None = None
        if os.geteuid() == 0:
            os.chown(self.results, ORDINARY_USER, ORDINARY_USER)
            self.user = ORDINARY_USER
        home.chmod(0o555)
        self.names = {
            "HOME": str(home),
            "PATH": f"{self.environment / 'bin'}:{broken}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }

    def install(self, file: Path, *, from_source: bool) -> None:
        """Installs a wheel, or builds a source archive with the tools of the calling environment."""
        venv.create(self.environment, with_pip=True)
        options = ["--only-binary=:all:"] if not from_source else []
        names = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        pip = [
            str(self.environment / "bin/python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-cache-dir",
            *options,
        ]
        subprocess.run([*pip, str(file.resolve())], check=True, env=names, cwd=self.results)

    def run(self, *words: str) -> str:
        """Runs a command of firstflight and returns its output; ends the program if the command fails."""
        began = time.monotonic()
        program = str(self.environment / "bin/firstflight")
        ended = subprocess.run(
            [program, *words],
            cwd=self.results,
            env=self.names,
            capture_output=True,
            text=True,
            check=False,
            user=self.user,
            group=self.user,
        )
        print(f"  {time.monotonic() - began:5.1f} s  firstflight {' '.join(words)}", flush=True)
        if ended.returncode != 0:
            sys.exit(f"error: it ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def size_mb(self) -> float:
        """The size of the environment without pip, MB."""
        files = (path for path in self.environment.rglob("*") if path.is_file() and not path.is_symlink())
        kept = (path for path in files if not {"pip", "setuptools"} & set(path.parts))
        return sum(path.stat().st_size for path in kept) / 1e6


def main() -> int:
    """Tests the file; the exit code is 0 if all steps worked."""
    parser = argparse.ArgumentParser(description="Install a wheel or source archive and use it.")
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="firstflight of Zoë ", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        trial = Trial(Path(name))
        print(f"Python {sys.version.split()[0]}, {arguments.file.name}")
        began = time.monotonic()
        trial.install(arguments.file, from_source=arguments.file.suffix == ".gz")
        print(f"  {time.monotonic() - began:5.1f} s  pip install; {trial.size_mb():.0f} MB without pip")
        use(trial)
        report_sizes(trial)
    return 0


def use(trial: Trial) -> None:
    """Runs the commands that a new user would run first, and checks their results."""
    health = json.loads(trial.run("doctor", "--json"))
    expect(health["ok"], f"doctor reports a problem: {health}")
    trial.run("run", "--plan", "paper", "--repeats", "2", "--out", "the paper", "--quiet")
    summary = json.loads((trial.results / "the paper/summary.json").read_text())
    expect(len(summary["cells"]) == 12, "the paper's table has twelve cells")
    accepted = [cell["proof"]["treatment"]["accepted"] for cell in summary["cells"]]
    expect(all(accepted), f"a cell without proof: {accepted}")
    trial.run(
        *("run", "wikipedia", "wsj", "--engine", "simulate", "--rtt", "10,50,200", "--down", "4mbit,50mbit"),
        *("--out", "sweep", "--quiet"),
    )
    trial.run("report", "the paper", "--quiet")
    expect(any((trial.results / "the paper/figures").glob("*.svg")), "no figure was drawn")
    report = (trial.results / "the paper/report.html").read_text()
    expect("University of Washington Interactive Data Lab" in report, "the report has no licence of Vega")
    licences = {path.name for path in trial.environment.rglob("firstflight-*.dist-info/licenses/**/*")}
    wanted = {"LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-RUST.txt", "vega.LICENSES"}
    expect(wanted <= licences, f"missing: {wanted - licences}")


def report_sizes(trial: Trial) -> None:
    """Prints the sizes of the largest packages; fails if a package of an extra was installed."""
    [packages] = trial.environment.glob("lib/python*/site-packages")
    folders = {path.name: path for path in packages.iterdir() if path.is_dir()}
    expect(not EXTRAS & set(folders), f"an extra came along: {EXTRAS & set(folders)}")
    sizes = {
        name: sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6
        for name, path in folders.items()
    }
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:8]
    print("  largest, MB: " + ", ".join(f"{name} {size:.0f}" for name, size in largest if name != "pip"))
    if (total := trial.size_mb()) > LARGEST_MB:
        print(f"  note: {total:.0f} MB is more than the goal of {LARGEST_MB:.0f} MB")


def expect(holds: object, otherwise: str) -> None:
    """Ends the program with the error `otherwise` unless `holds` is true."""
    if not holds:
        sys.exit(f"error: {otherwise}")


if __name__ == "__main__":
    sys.exit(main())
