"""What two machines change differently in curated memory is shown to a person, and nothing is lost."""

import pytest

from memoranda.errors import SyncError
from memoranda.memory.curated import change_history
from memoranda.memory.curated.operations import MemoryReceipt, MemoryRefusal
from memoranda.support.origin import PERSON
from memoranda.upkeep.sync.conflicts import Choice
from tests.upkeep.sync.machines import Machine, sync_all


def _conflicting(pair: list[Machine]) -> None:
    a, b = pair
    a.memory.remember("Likes tea.")
    sync_all(pair, 2)
    a.memory.curated.replace("memory", "Likes tea.", "Likes green tea.", PERSON)
    b.memory.curated.replace("memory", "Likes tea.", "Likes black tea.", PERSON)
    sync_all(pair, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("mine", {"Likes green tea."}),
        ("theirs", {"Likes black tea."}),
        ("both", {"Likes green tea.", "Likes black tea."}),
    ],
)
def test_a_conflict_is_shown_and_decided(pair: list[Machine], choice: Choice, expected: set[str]) -> None:
    """On either machine, and then it is gone on both."""
    _conflicting(pair)
    a, b = pair
    assert (a.entries(), b.entries()) == ({"Likes green tea."}, {"Likes black tea."})
    (conflict,) = a.conflicts()
    assert (conflict.mine, conflict.theirs) == ("Likes green tea.", "Likes black tea.")
    assert len(b.conflicts()) == 1
    assert a.report.conflicts == 1
    a.resolve(conflict.number, choice)
    sync_all(pair, 2)
    assert a.entries() == b.entries() == expected
    assert a.conflicts() == b.conflicts() == []


@pytest.mark.slow
def test_a_decision_is_in_the_journal_and_can_be_undone(pair: list[Machine]) -> None:
    """The undo travels like any other change."""
    _conflicting(pair)
    a, b = pair
    outcome = a.resolve(a.conflicts()[0].number, "theirs")
    assert isinstance(outcome, MemoryReceipt)
    sync_all(pair, 1)
    assert isinstance(change_history.undo(a.memory.curated, outcome.change, PERSON), MemoryReceipt)
    sync_all(pair, 2)
    assert a.entries() == b.entries() == {"Likes green tea."}


@pytest.mark.slow
def test_a_changed_entry_that_was_removed_elsewhere_is_a_conflict(pair: list[Machine]) -> None:
    """Removing does not win over a change that the person there has not seen."""
    a, b = pair
    a.memory.remember("Likes tea.")
    sync_all(pair, 2)
    a.memory.curated.remove("memory", "Likes tea.", PERSON)
    b.memory.curated.replace("memory", "Likes tea.", "Likes black tea.", PERSON)
    sync_all(pair, 2)
    (conflict,) = a.conflicts()
    assert (conflict.mine, conflict.theirs) == (None, "Likes black tea.")
    a.resolve(conflict.number, "theirs")
    sync_all(pair, 2)
    assert a.entries() == b.entries() == {"Likes black tea."}


@pytest.mark.slow
def test_an_entry_for_which_there_is_no_room_waits(pair: list[Machine]) -> None:
    """The report says so, and it can be added when there is room."""
    a, b = pair
    for machine, letter in ((a, "a"), (b, "b")):
        assert isinstance(machine.memory.curated.add("memory", letter * 1_500, PERSON), MemoryReceipt)
    a.sync()
    assert b.sync().refused
    (conflict,) = b.conflicts()
    assert isinstance(b.resolve(conflict.number, "theirs"), MemoryRefusal)
    assert len(b.conflicts()) == 1
    b.memory.curated.remove("memory", "b" * 1_500, PERSON)
    b.resolve(conflict.number, "theirs")
    b.sync()
    # It reads the entry of the other machine before it reads that it was removed.
    assert a.sync().refused
    sync_all(pair, 1)
    assert a.entries() == b.entries() == {"a" * 1_500}
    assert a.conflicts() == b.conflicts() == []


def test_changes_to_different_entries_merge(pair: list[Machine]) -> None:
    """Without a question, as changes that say where they come from."""
    a, b = pair
    for text in ("One.", "Two.", "Three."):
        a.memory.remember(text)
    sync_all(pair, 2)
    a.memory.curated.replace("memory", "One.", "First.", PERSON)
    b.memory.curated.replace("memory", "Two.", "Second.", PERSON)
    b.memory.curated.remove("memory", "Three.", PERSON)
    sync_all(pair, 2)
    assert a.entries() == b.entries() == {"First.", "Second."}
    assert a.conflicts() == []
    assert change_history.log(a.memory.curated)[-1].actor.startswith("sync:")


def test_a_conflict_that_does_not_exist_is_an_error(pair: list[Machine]) -> None:
    """It names the command that lists them."""
    with pytest.raises(SyncError, match="sync conflicts"):
        pair[0].resolve(7, "mine")
