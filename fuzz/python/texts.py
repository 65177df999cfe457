"""Texts that people write: `.pages` lists, profiles, plans in TOML, values with units."""

from collections.abc import Callable

import atheris

from target import FOLDER, main, opened, refused_or

with atheris.instrument_imports(include=["firstflight"]):
    from firstflight.experiment.plan_file import read_plan_file, resolve
    from firstflight.model.path import parse_queue
    from firstflight.model.plan import Plan
    from firstflight.model.units import BadValueError, parse_rate, write_rate
    from firstflight.pages.profile import read_pages_list


def test(data: bytes) -> None:
    """Reads `data` as the text that its first byte says."""
    kind, data = data[:1], data[1:]
    READERS.get(kind, read_units)(data)


def read_list(data: bytes) -> None:
    """A list names URLs."""
    path = FOLDER / "input.pages"
    path.write_bytes(data)
    urls = refused_or(lambda: read_pages_list(path))
    assert urls is None or all(url.startswith("http") for url in (url.lower() for url in urls))


def read_profile(data: bytes) -> None:
    """A profile is a page."""
    path = FOLDER / "input.json"
    path.write_bytes(data)
    opened(path)


def read_plan(data: bytes) -> None:
    """A plan is the same after it was written and read."""
    path = FOLDER / "input.toml"
    path.write_bytes(data)
    plan = refused_or(lambda: resolve({}, read_plan_file(path)))
    if isinstance(plan, Plan):
        path.write_text(plan.to_toml(), encoding="utf-8")
        assert resolve({}, read_plan_file(path)) == plan
        plan.paths()


def read_units(data: bytes) -> None:
    """A value is the same after it was written and read."""
    text = data.decode("utf-8", errors="replace")
    check(text, parse_rate, write_rate)
    check(text, parse_queue, str)
    refused_or(lambda: resolve({"rtt": text, "loss": text, "seed": text, "jobs": text}))


def check(text: str, parse: Callable, write: Callable) -> None:
    """What is written of a value means that value."""
    try:
        value = parse(text)
    except BadValueError as error:
        assert error.problem
        assert error.hint
        return
    assert parse(write(value)) == value


READERS = {b"l": read_list, b"j": read_profile, b"t": read_plan}

main(test)
