"""Release tools: the licence notices of compiled crates, the check of a wheel, and the version."""

import os
import shutil
import sys
import zipfile
from pathlib import Path

import build_backend
import dist
import notices
import pytest
import version

ROOT = Path(__file__).parents[2]


def test_the_notices_have_a_licence_text_of_every_crate_that_is_compiled_in() -> None:
    text = notices.collect(ROOT)
    _, *blocks = text.split("=" * 110 + "\n")
    holders = {name for block in blocks for name in block.partition("\n")[0].split(", ")}
    crates = {f"{package['name']} {package['version']}" for package in notices.compiled_in(ROOT)}
    assert holders == crates
    assert {name.split()[0] for name in crates} > {"aws-lc-sys", "pyo3", "quinn-proto", "rustls", "tokio"}
    assert not {name.split()[0] for name in crates} & {"proptest", "serde_derive", "firstflight-lab"}
    assert "Copyright (c) 2015-2020 the fiat-crypto authors" in text


def test_the_metadata_that_pip_asks_for_before_the_wheel_have_the_notices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, metadata = tmp_path / "tree", tmp_path / "metadata"
    metadata.mkdir()
    for name in ("crates", "python/firstflight/report/templates", "wheel"):
        shutil.copytree(ROOT / name, tree / name)
    for name in ("Cargo.lock", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tree)
    monkeypatch.chdir(tree)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    made = build_backend.prepare_metadata_for_build_wheel(str(metadata))
    licences = {file.name for file in (metadata / made / "licenses").rglob("*")}
    assert {"LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-RUST.txt", "vega.LICENSES"} <= licences


def wheel(folder: Path, *, name: str, without: str = "", program: bytes = b"\x7fELF GLIBC_2.17") -> Path:
    file = folder / name
    with zipfile.ZipFile(file, "w") as made:
        for needed in dist.NEEDED:
            if needed != without:
                made.writestr(needed, program if "/_" in needed else b"text")
    return file


GOOD = "firstflight-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl"


def test_a_wheel_with_all_that_it_needs_is_good(tmp_path: Path) -> None:
    assert dist.check(wheel(tmp_path, name=GOOD)) == []


def test_a_wheel_without_a_notice_is_refused(tmp_path: Path) -> None:
    lacks = "licenses/THIRD-PARTY-RUST.txt"
    assert dist.check(wheel(tmp_path, name=GOOD, without=lacks)) == [f"{lacks} is missing"]


def test_a_rust_without_the_licences_of_its_library_is_refused_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rustc = tmp_path / "rustc"
    rustc.write_text(f"#!/bin/sh\necho {tmp_path}\n")
    rustc.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(dist, "_OUT", tmp_path)
    kept = wheel(tmp_path, name=GOOD)
    with pytest.raises(SystemExit, match="licences of Rust's standard library"):
        dist.main([])
    assert kept.is_file()


def test_a_wheel_of_too_new_a_glibc_is_refused_file_by_file(tmp_path: Path) -> None:
    problems = dist.check(wheel(tmp_path, name=GOOD, program=b"\x7fELF GLIBC_2.2.5 GLIBC_2.34 GLIBC_2.9"))
    assert problems == [
        f"{name} needs glibc 2.34"
        for name in (
            "firstflight/_core.abi3.so",
            "firstflight/_bin/firstflight-lab",
            "firstflight/_bin/libfirstflight_preload.so",
        )
    ]


def test_a_wheel_for_one_python_is_refused(tmp_path: Path) -> None:
    name = "firstflight-0.1.0-cp313-cp313-linux_x86_64.whl"
    assert dist.check(wheel(tmp_path, name=name)) == ["its tag is not cp311-abi3-manylinux_2_28"]


def release(
    folder: Path, *, cited: str = "1.2.3", changes: str = "## [1.2.3] - 2026-01-02\n\n- new\n"
) -> Path:
    (folder / "Cargo.toml").write_text('[workspace.package]\nversion = "1.2.3"\n')
    (folder / "CITATION.cff").write_text(f"cff-version: 1.2.0\nversion: {cited}\n")
    (folder / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## [Unreleased]\n\n{changes}\n## [1.2.2] - 2025-01-02\n\n- old\n"
    )
    return folder


def test_a_tag_that_is_the_version_can_be_released_with_the_notes_of_that_version_alone(
    tmp_path: Path,
) -> None:
    assert version.problems("v1.2.3", release(tmp_path)) == []
    assert version.notes(tmp_path) == "- new"


@pytest.mark.parametrize(
    ("tag", "cited", "changes", "problem"),
    [
        (
            "v1.2.4",
            "1.2.3",
            "## [1.2.3] - 2026-01-02\n\n- new\n",
            "the tag is v1.2.4, but Cargo.toml says 1.2.3",
        ),
        ("v1.2.3", "1.2.2", "## [1.2.3] - 2026-01-02\n\n- new\n", "CITATION.cff does not say version: 1.2.3"),
        ("v1.2.3", "1.2.3", "", "CHANGELOG.md has no section ## [1.2.3] with a date"),
        ("v1.2.3", "1.2.3", "## [1.2.3]\n\n- new\n", "CHANGELOG.md has no section ## [1.2.3] with a date"),
    ],
)
def test_what_does_not_agree_with_the_tag_keeps_a_release_back(
    tmp_path: Path, tag: str, cited: str, changes: str, problem: str
) -> None:
    assert version.problems(tag, release(tmp_path, cited=cited, changes=changes)) == [problem]


def test_what_is_cited_is_the_version() -> None:
    assert f"version: {version.version()}\n" in (ROOT / "CITATION.cff").read_text()


def test_an_apparmor_profile_and_the_man_page_lie_where_maturin_puts_them_into_the_wheel() -> None:
    shared = ROOT / "wheel/data/share"
    assert (shared / "firstflight/apparmor-profile").is_file()
    assert (shared / "man/man1/firstflight.1").is_file()
