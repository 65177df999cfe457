from collections import Counter, defaultdict
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from firstflight.experiment.plan_file import resolve
from firstflight.experiment.schedule import Block, Schedule, load_id
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path, Queue
from firstflight.model.plan import Plan

PAGES = ["amazon", "wikipedia"]


def loads_of(blocks: Iterable[Block]) -> list[PlannedLoad]:
    return [load for block in blocks for load in block.loads]


def test_the_same_plan_gives_the_same_schedule() -> None:
    assert list(Schedule(Plan(), PAGES)) == list(Schedule(Plan(), PAGES))


def test_another_seed_gives_another_order_of_the_same_loads() -> None:
    first, second = (loads_of(Schedule(Plan(seed=seed), PAGES)) for seed in (1, 2))
    assert [load.load_id for load in first] != [load.load_id for load in second]
    assert {load.load_id for load in first} == {load.load_id for load in second}


def test_the_first_load_of_a_known_plan_does_not_change_between_versions() -> None:
    first = loads_of(Schedule(Plan(repeats=5), PAGES))[0]
    assert (first.load_id, first.seed) == ("amazon-r200-d4-u0.256-access-tfo-001", 3837202150)


@given(st.integers(1, 9), st.integers(0, 1000), st.sampled_from(["tcp", "tfo", "tcp,tfo"]))
def test_every_cell_has_as_many_loads_as_repeats(repeats: int, seed: int, mode: str) -> None:
    plan = resolve({"repeats": str(repeats), "seed": str(seed), "mode": mode})
    loads = loads_of(Schedule(plan, PAGES))
    cells = Counter((load.page, load.path, load.mode) for load in loads)
    assert set(cells.values()) == {repeats}
    assert len(cells) == len(PAGES) * len(plan.paths()) * len(plan.mode)
    assert len({load.load_id for load in loads}) == len(loads)


@given(st.integers(0, 1000))
def test_a_block_is_one_repeat_of_all_modes_with_the_same_seeds(seed: int) -> None:
    for block in Schedule(Plan(seed=seed), PAGES):
        assert {load.mode for load in block.loads} == {"tcp", "tfo"}
        assert len({(load.page, load.path, load.repeat, load.seed, load.block) for load in block.loads}) == 1


@given(st.integers(1, 9), st.integers(0, 1000))
def test_no_mode_goes_first_more_often_than_the_other_but_once(repeats: int, seed: int) -> None:
    first: dict[tuple[str, Path], list[str]] = defaultdict(list)
    for block in Schedule(Plan(seed=seed, repeats=repeats), PAGES):
        first[block.loads[0].page, block.loads[0].path].append(block.loads[0].mode)
    for modes in first.values():
        assert abs(modes.count("tcp") - modes.count("tfo")) <= 1


def test_order_counts_the_loads_of_the_run() -> None:
    loads = loads_of(Schedule(Plan(), PAGES))
    assert [load.order for load in loads] == list(range(len(loads)))


def test_one_more_page_leaves_the_seeds_of_the_others_alone() -> None:
    def seeds(pages: list[str]) -> dict[str, int]:
        return {load.load_id: load.seed for load in loads_of(Schedule(Plan(), pages))}

    fewer, more = seeds(["wikipedia"]), seeds(PAGES)
    assert fewer.items() <= more.items()


def test_each_cookie_state_has_blocks_of_its_own_with_the_same_seeds() -> None:
    plan = resolve({"cookies": "warm,pool:3", "repeats": "2", "rtt": "20"})
    loads = loads_of(Schedule(plan, ["wsj"]))
    assert len({load.load_id for load in loads}) == len(loads) == 8
    assert {load.cookies for load in loads if "-pool3-" in load.load_id} == {"pool:3"}
    assert Counter((load.cookies, load.mode) for load in loads) == dict.fromkeys(
        [(cookies, mode) for cookies in plan.cookies for mode in plan.mode], 2
    )
    assert len({(load.repeat, load.seed) for load in loads}) == 2


def test_a_load_id_tells_page_path_mode_and_repeat() -> None:
    path = Path("access", 100.0, 4_000_000, 256_000, Queue(packets=1000), 0.0)
    assert load_id("wikipedia", path, "tfo", 3) == "wikipedia-r100-d4-u0.256-access-tfo-003"
    unlimited = Path("star", 0.5, None, None, Queue(packets=1000), 0.0)
    assert load_id("wsj", unlimited, "tcp", 12) == "wsj-r0.5-dinf-uinf-star-tcp-012"


def test_a_simulated_cell_without_randomness_has_one_block_whatever_the_repeats() -> None:
    exact = Schedule(Plan(engine="simulate", repeats=5), PAGES)
    assert (len(exact), exact.loads) == (exact.pairs, 2 * exact.pairs)
    for drawn in ({"loss": 0.01}, {"cookies": ("pool:3",)}, {"engine": "emulate"}):
        plan = Plan.model_validate({"engine": "simulate", "repeats": 5, **drawn})
        schedule = Schedule(plan, PAGES)
        assert len(schedule) == 5 * schedule.pairs
    mixed = Schedule(Plan(engine="simulate", repeats=5, cookies=("warm", "pool:3")), PAGES)
    assert len(mixed) == mixed.pairs // 2 * 6
