"""Whatever two or three machines do, in whatever order they synchronise, they end with the same contents."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.upkeep.sync.conflicts import Choice
from tests.upkeep.sync.machines import Machine, bundles, sync_all
from tests.upkeep.sync.operations import ENTRY_OPERATIONS, OPERATIONS, Operation

_CHOICES = ("mine", "theirs", "both")
_SHARED = ("Entry 0.", "Entry 1.", "Entry 2.")


def _steps(operations: Sequence[Operation], longest: int) -> st.SearchStrategy[list[tuple[Operation, int, int]]]:
    step = st.tuples(st.sampled_from(operations), st.integers(0, 2), st.integers(0, 999))
    return st.lists(step, min_size=3, max_size=longest)


@contextmanager
def _homes(count: int, *, one_folder: bool = True) -> Iterator[list[Machine]]:
    root = Path(tempfile.mkdtemp())
    folders = [root / ("shared" if one_folder else f"shared by {number}") for number in range(count)]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    homes = [Machine(root / str(number), folder) for number, folder in enumerate(folders)]
    try:
        yield homes
    finally:
        for home in homes:
            home.close()
        shutil.rmtree(root)


def _decide_all(homes: list[Machine], choices: Sequence[Choice]) -> int:
    """Decide the conflicts of one home after the other, until there are none; returns how many there were."""
    count = 0
    for _ in range(4):
        if not any(home.conflicts() for home in homes):
            break
        for home in homes:
            for conflict in home.conflicts():
                home.resolve(conflict.number, choices[count % len(choices)])
                count += 1
            sync_all(homes, 2)
    return count


def _assert_same(homes: list[Machine]) -> None:
    contents = [home.contents() for home in homes]
    assert all(other == contents[0] for other in contents)
    assert [home.sync().sent for home in homes] == [{}] * len(homes)


@pytest.mark.slow
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(machines=st.integers(2, 3), steps=_steps(OPERATIONS, 30), choice=st.sampled_from(_CHOICES))
def test_machines_end_with_the_same_contents(
    machines: int, steps: list[tuple[Operation, int, int]], choice: Choice
) -> None:
    """After enough rounds, and after a person has decided the conflicts; then nothing is sent any more."""
    with _homes(machines) as homes:
        for operation, number, pick in steps:
            operation(homes[number % machines], pick)
        sync_all(homes, 3)
        _decide_all(homes, [choice])
        _assert_same(homes)


def _deliver(homes: list[Machine], order: Sequence[tuple[int, int]]) -> None:
    """Copy bundles from the folder of one machine to that of another, which reads them."""
    for one, other in order:
        source, target = homes[one % len(homes)], homes[other % len(homes)]
        if source is not target:
            for bundle in bundles(source.folder):
                if bundle.stem != target.machine_id():
                    shutil.copy(bundle, target.folder)
            assert not target.sync().refused, target.report.refused


@pytest.mark.slow
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=_steps(OPERATIONS, 24),
    orders=st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=5), min_size=1, max_size=6),
    last=st.permutations([(one, other) for one in range(3) for other in range(3) if one != other]),
)
def test_bundles_that_arrive_in_any_order_give_the_same_contents(
    steps: list[tuple[Operation, int, int]], orders: list[list[tuple[int, int]]], last: list[tuple[int, int]]
) -> None:
    """Also old ones after newer ones, and by way of a third machine; of what met, each machine has the same."""
    with _homes(3, one_folder=False) as homes:
        for home in homes:
            home.sync()
        for number, (operation, machine, pick) in enumerate(steps):
            operation(homes[machine], pick)
            _deliver(homes, orders[number % len(orders)] if number % 3 == 0 else [])
        for _ in range(4):
            for home in homes:
                home.sync()
            _deliver(homes, last)
        _decide_and_deliver(homes, last)
        contents = [home.contents() for home in homes]
        assert all(other == contents[0] for other in contents)


def _decide_and_deliver(homes: list[Machine], order: Sequence[tuple[int, int]]) -> None:
    """Keep what is here in every conflict; what could not be added for lack of room is added then."""
    for home in homes:
        for conflict in home.conflicts():
            home.resolve(conflict.number, "mine")
        home.sync()
        for _ in range(3):
            _deliver(homes, order)


@pytest.mark.slow
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=_steps(ENTRY_OPERATIONS, 12),
    choices=st.lists(st.sampled_from(_CHOICES), min_size=1, max_size=4),
)
def test_conflicts_of_entries_end_with_the_same_contents(
    steps: list[tuple[Operation, int, int]], choices: list[Choice]
) -> None:
    """Two machines start with the same entries and change, remove and add them without knowing of each other."""
    with _homes(2) as homes:
        for text in _SHARED:
            homes[0].memory.remember(text)
        sync_all(homes, 1)
        for home in homes:
            # At least one conflict in each example.
            home.memory.curated.replace("memory", _SHARED[0], f"Changed on {home.home.name}.")
        for operation, number, pick in steps:
            operation(homes[number % 2], pick)
        sync_all(homes, 3)
        _decide_all(homes, choices)
        _assert_same(homes)
