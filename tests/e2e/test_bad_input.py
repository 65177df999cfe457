"""Bad input is refused before anything starts: exit 2, one clear message, one hint."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from program import Ended, Program
from small_pages import chain, document

from firstflight.cli import main
from firstflight.model.plan import Plan
from firstflight.results import Journal, LoadRecord

SMALL = ("chain.json", "--rtt", "10", "--down", "90kbit", "--up", "90kbit", "--jobs", "4")


@pytest.fixture
def program(program: Program) -> Program:
    (program.folder / "chain.json").write_text(chain(2).page.to_json())
    return program


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Calls `firstflight` within this process, in an empty folder with a page in it and an empty home."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "chain.json").write_text(chain(2).page.to_json())
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))

    def call(*arguments: str) -> Ended:
        code = main(list(arguments))
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return call


def assert_refused(ended: Ended, says: str, folder: Path = Path()) -> None:
    """Exit 2 with one error that names the thing and one hint, and no results."""
    assert ended.code == 2, ended
    error, hint = ended.err.strip().splitlines()
    assert error.startswith("error: ")
    assert says in error
    assert hint.startswith("hint: ")
    assert len(hint) > len("hint: ")
    assert ended.out == ""
    assert not (folder / "out").exists()
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rtt", "-1"), '"-1"'),
        (("--rtt", "fast"), '"fast"'),
        (("--loss", "-0.1"), '"-0.1"'),
        (("--queue", "0"), '"0"'),
        (("--queue", "0p"), '"0p"'),
        (("--mode", "quick"), '"quick"'),
        (("--client", "netscape"), '"netscape"'),
        (("--jobs", "0"), '"0"'),
        (("--plan", "none.toml"), "none.toml"),
        (("--resume",), "resume"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_flag_is_refused(arguments: tuple[str, ...], says: str, call: Callable[..., Ended]) -> None:
    resumes = arguments == ("--resume",)
    out = () if resumes else ("--out", "out")
    assert_refused(call("run", "chain.json", *arguments, *out), says)


def test_nothing_was_started_and_nothing_written_elsewhere(program: Program) -> None:
    assert_refused(program("run", "chain.json", "--rtt", "-1", "--out", "out"), '"-1"', program.folder)
    assert program.processes() == []
    assert program.files_elsewhere() == []


def test_an_unknown_page_is_refused(call: Callable[..., Ended]) -> None:
    ended = call("run", "geocities", "--out", "out")
    assert_refused(ended, "geocities")
    assert "wikipedia" in ended.err, "the pages that there are"


@pytest.mark.parametrize("keep", [0, 1, 100, -3])
def test_a_truncated_profile_is_refused(keep: int, call: Callable[..., Ended]) -> None:
    whole = Path("chain.json").read_text()
    Path("cut.json").write_text(whole[:keep])
    assert_refused(call("run", "cut.json", "--out", "out"), "cut.json")


def test_a_profile_with_an_impossible_host_is_refused(call: Callable[..., Ended]) -> None:
    page = json.loads(Path("chain.json").read_text())
    page["resources"][1]["url"] = f"http://{'a' * 300}.test/"
    Path("long.json").write_text(json.dumps(page))
    ended = call("run", "long.json", "--out", "out")
    assert_refused(ended, "resources[1].url")
    assert "characters" in ended.err


def test_a_profile_with_an_unknown_key_is_refused(call: Callable[..., Ended]) -> None:
    page = {"format": "firstflight-profile/1", "name": "odd", "resources": [document(colour="red")]}
    Path("odd.json").write_text(json.dumps(page))
    assert_refused(call("run", "odd.json", "--out", "out"), "colour")


def test_a_mirror_without_its_start_page_is_refused(call: Callable[..., Ended]) -> None:
    folder = Path("mirror") / "www.example.test"
    folder.mkdir(parents=True)
    (folder / "style.css").write_text("p { color: red }")
    assert_refused(call("run", "mirror#http://www.example.test/", "--out", "out"), "mirror")
    assert_refused(call("run", "mirror", "--out", "out"), "mirror")


def test_a_results_folder_with_another_plan_is_refused_and_left_alone(program: Program) -> None:
    (program.folder / "out").mkdir()
    plan = Plan(pages=("chain.json",), rtt=(10,), down=(90_000,), up=(90_000,), repeats=1)
    (program.folder / "out" / "plan.toml").write_text(plan.to_toml())
    before = contents(program.folder / "out")
    calls = {"another plan (differs in: repeats)": "2", "holds this experiment already": "1"}
    for says, repeats in calls.items():
        ended = program("run", *SMALL, "--repeats", repeats, "--out", "out")
        assert ended.code == 2
        error, hint = ended.err.strip().splitlines()
        assert says in error
        assert hint.startswith("hint: ")
        assert contents(program.folder / "out") == before


def test_a_folder_that_is_no_results_folder_is_refused_and_left_alone(program: Program) -> None:
    (program.folder / "photos").mkdir()
    (program.folder / "photos" / "cat.png").write_bytes(b"meow")
    assert_refused(program("run", *SMALL, "--out", "photos"), "photos", program.folder)
    assert contents(program.folder / "photos") == {"cat.png": b"meow"}


@pytest.mark.ordinary_user
def test_a_read_only_folder_is_refused(program: Program) -> None:
    """Root may write where the mode forbids it, but not where the mount does."""
    readonly = program.folder / "readonly"
    readonly.mkdir()
    mount = f"-o bind,ro {readonly} {readonly}"
    for out in ("readonly", "readonly/deep"):
        ended = program("run", *SMALL, "--out", out, wrap=mounted(mount))
        assert_refused(ended, "readonly", program.folder)
    assert list(readonly.iterdir()) == []


def test_a_disk_that_fills_up_loses_nothing_and_the_run_can_go_on(program: Program, tmp_path: Path) -> None:
    """The disk has 48 kB left. When they are used up, the test deletes a file and resumes the run."""
    small, kept = program.folder / "small", tmp_path / "kept"
    small.mkdir()
    command = f"""
        head -c {(32 << 20) - (48 << 10)} /dev/zero > {small}/films
        "$@" run {" ".join(SMALL)} --repeats 15 --out {small}/out; echo "code $?" >&2
        cp -a {small}/out {kept}
        rm {small}/films
        "$@" run --resume --quiet --out {small}/out; code=$?
        cp -a {small}/out/. {kept}/completed
        exit $code"""
    ended = program(wrap=mounted(f"-t tmpfs -o size=32m none {small}", then=command))
    assert "error: small" in ended.err or f"error: {small}" in ended.err
    assert "No space left on device" in ended.err
    assert "hint: free some space, then go on: firstflight run --resume --out" in ended.err
    assert "code 1" in ended.err
    assert "Traceback" not in ended.err
    assert ended.code == 0, ended.err
    first, completed = (loads(folder / "journal.jsonl") for folder in (kept, kept / "completed"))
    assert 0 < len(first) < 30
    assert len(completed) == 30
    late = {name for name, record in first.items() if record["relay"]["late"]}
    assert all(completed[name] == first[name] for name in first.keys() - late), "measured, then lost"


def loads(journal: Path) -> dict[str, LoadRecord]:
    """The loads in a journal by name; no name is given twice."""
    records = Journal(journal).records()
    by_name = {record["load"]["load_id"]: record for record in records}
    assert len(by_name) == len(records)
    return by_name


def mounted(mount: str, then: str = 'exec "$@"') -> tuple[str, ...]:
    """A `wrap` that mounts something in the program's own mount namespace. Ordinary users can use it too."""
    return (
        "unshare",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        f"set -e; mount {mount}; set +e; {then}",
        "sh",
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
