"""What two machines change differently in curated memory: the later text stays, and a person sees the other one."""

import pytest

from memoranda.errors import SyncError
from memoranda.memory.curated import change_history
from memoranda.memory.curated.operations import Add, AwaitsApproval, MemoryReceipt, MemoryRefusal, Remove
from memoranda.support.origin import PERSON, Origin
from memoranda.upkeep.sync.conflicts import Choice, read_log
from memoranda.upkeep.sync.entries import apply_text
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
        ("mine", {"Likes black tea."}),
        ("theirs", {"Likes green tea."}),
        ("both", {"Likes green tea.", "Likes black tea."}),
    ],
)
def test_the_later_text_stays_and_the_other_one_can_be_taken(
    pair: list[Machine], choice: Choice, expected: set[str]
) -> None:
    """On either machine; a decision on one of them is one on both."""
    _conflicting(pair)
    a, b = pair
    assert a.entries() == b.entries() == {"Likes black tea."}
    (conflict,) = a.conflicts()
    assert (conflict.mine, conflict.theirs) == ("Likes black tea.", "Likes green tea.")
    assert len(b.conflicts()) == 1
    assert a.report.conflicts == 1
    assert [row["lost"]["text"] for row in read_log(a.home)] == ["Likes green tea."]
    a.resolve(conflict.number, choice)
    sync_all(pair, 2)
    assert a.entries() == b.entries() == expected
    assert a.conflicts() == b.conflicts() == []


@pytest.mark.slow
def test_what_replaced_a_text_is_in_the_journal_and_can_be_undone(pair: list[Machine]) -> None:
    """The undo travels like any other change."""
    _conflicting(pair)
    a, b = pair
    assert isinstance(change_history.undo(a.memory.curated, None, PERSON), MemoryReceipt)
    sync_all(pair, 2)
    assert a.entries() == b.entries() == {"Likes green tea."}


@pytest.mark.slow
def test_a_removed_entry_stays_removed_and_its_other_text_can_be_taken(pair: list[Machine]) -> None:
    """A removal wins over a change that was made without knowledge of it."""
    a, b = pair
    a.memory.remember("Likes tea.")
    sync_all(pair, 2)
    a.memory.curated.remove("memory", "Likes tea.", PERSON)
    b.memory.curated.replace("memory", "Likes tea.", "Likes black tea.", PERSON)
    sync_all(pair, 2)
    assert a.entries() == b.entries() == set()
    (conflict,) = b.conflicts()
    assert (conflict.mine, conflict.theirs) == (None, "Likes black tea.")
    b.resolve(conflict.number, "theirs")
    sync_all(pair, 2)
    assert a.entries() == b.entries() == {"Likes black tea."}


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 1])
def test_nothing_untrusted_replaces_what_a_person_said_meanwhile(pair: list[Machine], first: int) -> None:
    """Although it was written later; what replaces a text that its writer knew does so on both machines."""
    a, b = pair
    untrusted = Origin("agent", sources=("web_search",))
    a.memory.remember("Likes tea.")
    sync_all(pair, 2)
    a.memory.curated.replace("memory", "Likes tea.", "Likes green tea.", PERSON)
    a.sync()
    apply_text(b.memory.curated, "memory", ("Likes tea.", "Likes poison."), untrusted, "", {})
    assert b.entries() == {"Likes poison."}
    sync_all([pair[first], pair[1 - first]], 3)
    assert a.entries() == b.entries() == {"Likes green tea."}
    apply_text(b.memory.curated, "memory", ("Likes green tea.", "Likes oolong."), untrusted, "", {})
    sync_all(pair, 2)
    assert a.entries() == b.entries() == {"Likes oolong."}


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


_OWN, _PAGE = Origin("agent", "s"), Origin("agent", "s", sources=("web_fetch",))


@pytest.mark.parametrize("first", [0, 1])
def test_an_entry_that_a_person_said_on_one_machine_is_theirs_on_all(pair: list[Machine], first: int) -> None:
    """A page said the same on another machine, with a last day: it can neither end nor replace it."""
    a, b = pair
    b.memory.curated.add("memory", "The office is in Berlin.", _OWN)
    a.memory.curated.apply("memory", [Add("The office is in Berlin.", until="2020-01-31")], _PAGE)
    sync_all([pair[first], pair[1 - first]], 3)
    for machine in pair:
        assert machine.memory.curated.valid_entries("memory") == ("The office is in Berlin.",)
        assert machine.memory.curated.facts("memory")[0].sources == () and not machine.conflicts()
    outcome = a.memory.curated.replace("memory", "Berlin", "The office is in Madrid.", _PAGE)
    assert isinstance(outcome, AwaitsApproval)
    assert a.sync().parts_written <= 1 and b.sync().parts_written <= 1
    assert a.sync().parts_written == b.sync().parts_written == 0


@pytest.mark.parametrize("operations", [[Add("The office is in Berlin.")], [Remove("Berlin")]])
def test_what_a_person_says_again_is_theirs_on_the_other_machine(
    pair: list[Machine], operations: list[Add | Remove]
) -> None:
    """Whether they remove it first or not; what a page replaced there meanwhile does not stay."""
    a, b = pair
    a.memory.curated.add("memory", "The office is in Berlin.", _PAGE)
    sync_all(pair, 2)
    assert b.memory.curated.facts("memory")[0].sources == ("web_fetch",)
    for operation in (*operations, Add("The office is in Berlin.")):
        a.memory.curated.apply("memory", [operation], _OWN)
    b.memory.curated.replace("memory", "Berlin", "The office is in Madrid.", _PAGE)
    sync_all(pair, 3)
    for machine in pair:
        assert machine.entries() == {"The office is in Berlin."}
        assert machine.memory.curated.facts("memory")[0].sources == ()
