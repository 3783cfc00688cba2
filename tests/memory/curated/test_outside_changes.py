"""Changes by other programs are noticed, kept and never replaced unseen."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoranda.memory.curated import change_history
from memoranda.memory.curated import memory_file as backups
from memoranda.memory.curated.memory_file import MAX_BACKUPS_PER_FILE
from memoranda.memory.curated.operations import MemoryReceipt, MemoryRefusal
from memoranda.memory.curated.person_changes import edit_file
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import MemoryTool
from memoranda.storage.files.named_texts import NamedFiles
from memoranda.support.origin import PERSON, Origin
from tests.conftest import mode
from tests.memory.curated.storages import Tables, open_store, small_store

Call = Callable[..., dict[str, Any]]


def list_backups(path: Path) -> list[Path]:
    """The backups of a file, oldest first."""
    texts = (
        NamedFiles(path.parent, f"{path.name}.bak.*") if Tables.engine is None else Tables.storage(path.parent).backups
    )
    return [path.with_name(name) for name in backups.list_backups(texts, path.name)]


ACTIONS = [
    {"action": "add", "content": "new"},
    {"action": "replace", "old_text": "one", "content": "new"},
    {"action": "remove", "old_text": "one"},
    {"operations": [{"action": "add", "content": "new"}]},
]


@pytest.mark.parametrize("arguments", ACTIONS)
def test_an_external_append_is_refused_once_with_a_backup(
    call: Call, directory: Path, arguments: dict[str, Any]
) -> None:
    """Every action is refused, the file stays, the copy is byte-exact and private; sent again, it is done."""
    call(action="add", content="one")
    path = directory / "MEMORY.md"
    with path.open("ab") as file:
        file.write(b"\r\nappended by a shell\n")
    found = path.read_bytes()
    refused = call(**arguments)
    assert refused["reason"] == "drift"
    assert "outside" in refused["error"] and "again" in refused["error"]
    assert path.read_bytes() == found
    backup = type(path)(refused["drift_backup"])
    assert backup.read_bytes() == found
    assert Tables.engine is not None or mode(backup) == 0o600
    assert refused["current_entries"] == ["one\nappended by a shell"]
    assert call(**arguments)["success"]


def test_text_glued_to_an_entry_is_refused_even_by_a_store_that_loaded_it(store: MemoryStore, directory: Path) -> None:
    """A shell append merges into the last entry; the next writer is refused once before anything is rewritten."""
    store.add("memory", "one")
    with (directory / "MEMORY.md").open("a") as file:
        file.write(" and more")
    fresh = open_store(directory)
    fresh.load_from_disk()
    outcome = fresh.remove("memory", "one")
    assert isinstance(outcome, MemoryRefusal)
    assert outcome.reason == "drift"
    assert isinstance(fresh.remove("memory", "one"), MemoryReceipt)


def test_a_clean_edit_by_hand_is_taken_over_by_the_next_session(store: MemoryStore, directory: Path) -> None:
    """The file is yours to edit between sessions; the journal records it as an outside change."""
    store.add("memory", "one")
    (directory / "MEMORY.md").write_text("one\n§\nby hand\n")
    fresh = open_store(directory)
    fresh.load_from_disk()
    assert isinstance(fresh.add("memory", "two"), MemoryReceipt)
    assert fresh.entries("memory") == ("one", "by hand", "two")
    assert [(change.action, change.actor) for change in fresh.journal.changes()] == [
        ("add", "agent"),
        ("outside", "outside"),
        ("add", "agent"),
    ]


def test_what_an_editor_removed_can_be_brought_back(store: MemoryStore, directory: Path) -> None:
    """The journal knows the entries as they were before the outside change."""
    store.add("memory", "precious")
    (directory / "MEMORY.md").write_text("")
    store.load_from_disk()
    store.add("memory", "two")
    outside = next(change for change in change_history.log(store) if change.action == "outside")
    assert isinstance(change_history.undo(store, outside.number, PERSON), MemoryReceipt)
    assert "precious" in store.entries("memory")


def test_a_file_deleted_by_somebody_else_is_noticed(store: MemoryStore, directory: Path) -> None:
    """A running store does not quietly begin an empty file."""
    store.add("memory", "one")
    (directory / "MEMORY.md").unlink()
    outcome = store.add("memory", "two")
    assert isinstance(outcome, MemoryRefusal)
    assert outcome.reason == "drift"


def test_another_store_on_the_same_home_is_no_outsider(store: MemoryStore, directory: Path) -> None:
    """Changes that went through the journal are merged without a word."""
    other = open_store(directory)
    other.load_from_disk()
    store.add("memory", "one")
    assert isinstance(other.add("memory", "two"), MemoryReceipt)
    assert isinstance(store.add("memory", "three"), MemoryReceipt)
    assert store.entries("memory") == ("one", "two", "three")


@pytest.mark.parametrize(
    "content", ["a\n§\n b", "a\n\n§\n\nb", "a\n§\n\n§\nb", "a\n§\n§\nb", "a\n§\nb\n§", "§\na\n§\nb\n"]
)
def test_blanks_and_empty_entries_of_a_hand_edit_are_accepted_after_a_backup(
    directory: Path, write: Callable[..., Path], content: str
) -> None:
    """The store has read the file, so the write succeeds at once; the backup has what the person left."""
    path = write(content)
    store = open_store(directory)
    store.load_from_disk()
    assert isinstance(store.add("memory", "c"), MemoryReceipt)
    assert path.read_text() == "a\n§\nb\n§\nc"
    assert [backup.read_text() for backup in list_backups(path)] == [content]


@pytest.mark.parametrize("content", ["x" * 2201, "a\n§\n" + "x" * 2201])
@pytest.mark.parametrize("arguments", ACTIONS)
def test_a_file_that_cannot_be_rewritten_faithfully_waits_for_a_person(
    directory: Path, write: Callable[..., Path], content: str, arguments: dict[str, Any]
) -> None:
    """Oversized entries are refused however often it is tried, with one backup, not many."""
    path = write(content)
    tool = MemoryTool(open_store(directory), Origin())
    for _ in range(3):
        refused = tool.call(arguments)
        assert refused["reason"] == "drift"
        assert "memoranda memory edit memory" in refused["error"]
    assert path.read_bytes() == content.encode()
    assert [backup.read_bytes() for backup in list_backups(path)] == [content.encode()]


def test_a_person_repairs_an_unrewritable_file_by_editing_it(directory: Path, write: Callable[..., Path]) -> None:
    """What the person saw may be written over, and was backed up before."""
    path = write("a\n§\n\n§\n" + "b" * 2201)
    store = open_store(directory)
    view = store.view("memory")
    assert isinstance(edit_file(store, "memory", view.fingerprint, ["a", "b"], PERSON, frozenset()), MemoryReceipt)
    assert path.read_text() == "a\n§\nb"
    assert list_backups(path)[0].read_text() == "a\n§\n\n§\n" + "b" * 2201
    assert isinstance(store.add("memory", "c"), MemoryReceipt)


def test_an_edit_of_a_file_that_changed_meanwhile_is_refused(store: MemoryStore) -> None:
    """What the person did not see is not written over."""
    store.add("memory", "one")
    seen = store.view("memory").fingerprint
    store.add("memory", "two")
    outcome = edit_file(store, "memory", seen, ["mine"], PERSON, frozenset())
    assert isinstance(outcome, MemoryRefusal)
    assert outcome.reason == "conflict"
    assert store.entries("memory") == ("one", "two")


@pytest.mark.parametrize("content", ["a\r\n§\r\nb", "\ufeffa\n§\nb"])
def test_a_rewrite_that_changes_more_than_edges_keeps_a_copy(
    directory: Path, write: Callable[..., Path], content: str
) -> None:
    """Line ends and a byte order mark go, so the original bytes are kept."""
    path = write(content)
    store = open_store(directory)
    outcome = store.add("memory", "c")
    assert isinstance(outcome, MemoryReceipt)
    assert outcome.backup is not None
    assert outcome.backup.read_bytes() == content.encode()
    assert path.read_text() == "a\n§\nb\n§\nc"


def test_a_trailing_newline_needs_no_backup(directory: Path, write: Callable[..., Path]) -> None:
    """Editors add one; nothing is lost with it."""
    path = write("a\n§\nb\n")
    store = open_store(directory)
    assert isinstance(store.add("memory", "c"), MemoryReceipt)
    assert list_backups(path) == []


def test_the_number_of_backups_is_bounded(store: MemoryStore, directory: Path) -> None:
    """The newest ones are kept, also when many are made within a second."""
    store.add("memory", "one")
    path = directory / "MEMORY.md"
    for number in range(MAX_BACKUPS_PER_FILE + 5):
        path.write_text(f"one glued {number}")
        assert isinstance(store.add("memory", "x"), MemoryRefusal)
    kept = list_backups(path)
    assert len(kept) == MAX_BACKUPS_PER_FILE
    assert kept[-1].read_text() == f"one glued {MAX_BACKUPS_PER_FILE + 4}"


def test_entries_over_a_lowered_limit_are_not_drift_when_we_wrote_them(store: MemoryStore, directory: Path) -> None:
    """A smaller limit later makes the store over-full, not foreign."""
    store.add("memory", "x" * 100)
    small = small_store(directory, 50)
    assert isinstance(small.remove("memory", "xxx"), MemoryReceipt)


def test_a_hermes_file_is_taken_over_as_it_is(directory: Path, write: Callable[..., Path]) -> None:
    """Existing entries keep their bytes and order; the journal begins with what was found."""
    path = write("Project uses pytest.\n§\nCI: Debian 12\nsecond line")
    store = open_store(directory)
    store.load_from_disk()
    assert isinstance(store.add("memory", "new"), MemoryReceipt)
    assert path.read_bytes() == "Project uses pytest.\n§\nCI: Debian 12\nsecond line\n§\nnew".encode()
    assert [change.action for change in store.journal.changes()] == ["found", "add"]
