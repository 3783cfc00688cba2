"""Undoing an import: what it added goes, what the user changed since stays, and a killed import can be undone too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.importers.importer import Importer, state_of_store
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ReadEvent
from memoranda.importers.undo import ImportHistory, UndoReport
from memoranda.support.text_matcher import MARK
from tests.importers.import_home import Home, ListReader

NAME = "recited-a"


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """A home with its record in a file, and one with its record on a server."""
    home = Home(tmp_path / "home", "" if request.param == "file" else request.getfixturevalue("postgres_url"))
    yield home
    home.store.close()


def _said(number: int, text: str = "") -> ImportedMessage:
    content = text or f"words {number}"
    return ImportedMessage({"role": "user", "content": content, "external_id": f"m{number}", "timestamp": 100 + number})


def _import(home: Home, import_id: str | None, *events: ReadEvent) -> None:
    importer = Importer(home.root, home.store, import_id=import_id, rescan=True)
    reader = ListReader(*events)
    importer.apply(reader, reader.scan(None))
    importer.close()


def _undo(home: Home, import_id: str) -> UndoReport:
    history = ImportHistory(home.root, home.store)
    planned, done = history.preview(import_id), history.undo(import_id)
    history.close()
    assert planned == done
    return done


def test_only_the_newest_part_of_a_session_is_removed(home: Home) -> None:
    """A session that was there before keeps its older messages, its title and its times."""
    _import(home, "one", ImportedConversation("a", "Locks"), _said(1))
    before = home.everything()
    _import(home, "two", ImportedConversation("a", "Locks and keys", model="m"), _said(1), _said(2), _said(3))
    assert home.everything()[NAME]["message_count"] == 3
    report = _undo(home, "two")
    assert (report.messages, len(report.shortened), report.removed, report.kept) == (2, 1, [], [])
    assert home.everything() == before


def test_the_file_is_as_small_as_before_the_import(tmp_path: Path) -> None:
    """The space of what was removed returns to the file system, without a command of its own."""
    home = Home(tmp_path / "home")
    _import(home, "one", ImportedConversation("a"), _said(1))
    before = _size(home)
    _import(home, "two", ImportedConversation("b"), *[_said(number, "words " * 1000) for number in range(2, 100)])
    assert _size(home) > before + 400_000
    _undo(home, "two")
    assert (home.root / "state.db").stat().st_size < before + 50_000
    home.store.close()


def _size(home: Home) -> int:
    """The size of the record, with what is in its log."""
    home.store.deletion.release_space()
    return (home.root / "state.db").stat().st_size


def test_an_id_of_a_removed_message_is_never_used_again(home: Home) -> None:
    """A follower that read the message must not take another one for it."""
    _import(home, "one", ImportedConversation("a"), _said(1))
    _import(home, "two", ImportedConversation("a"), _said(2))
    highest = home.store.messages.last_message_id()
    _undo(home, "two")
    _import(home, "three", ImportedConversation("a"), _said(3))
    assert home.store.messages.last_message_id() > highest


def _continue(home: Home) -> None:
    home.store.messages.append_messages(NAME, [{"role": "user", "content": "and now?"}])


def _rename(home: Home) -> None:
    home.store.titles.set_session_title(NAME, "Mine")


def _reopen(home: Home) -> None:
    home.store.sessions.reopen_session(NAME)


def _redact(home: Home) -> None:
    home.store.edits.redact_message(home.store.messages.get_messages(NAME)[0]["id"])


def _rewind(home: Home) -> None:
    home.store.edits.rewind_to_message(NAME, home.store.messages.get_messages(NAME)[1]["id"])


def _branch(home: Home) -> None:
    home.store.sessions.create_session("b", "cli", parent_session_id=NAME, relation="branch")


def _import_more(home: Home) -> None:
    _import(home, "later", ImportedConversation("a", "Locks"), _said(9))


def _capture_more(home: Home) -> None:
    _import(home, None, ImportedConversation("a", "Locks"), _said(9))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_continue, "continued"),
        (_capture_more, "continued"),
        (_rename, "renamed"),
        (_reopen, "reopened"),
        (_redact, "edited"),
        (_rewind, "edited"),
        (_branch, "branched"),
        (_import_more, "later_import"),
    ],
)
def test_what_the_user_changed_stays(home: Home, change: object, reason: str) -> None:
    """The session stays as it is, the report says why, and the other session of the import is removed."""
    _import(home, "one", ImportedConversation("a", "Locks"), _said(1), _said(2), ImportedConversation("b"), _said(3))
    change(home)  # type: ignore[operator]
    before = home.everything()[NAME]
    report = _undo(home, "one")
    assert [(kept.session_id, kept.reason) for kept in report.kept] == [(NAME, reason)]
    assert [removed.session_id for removed in report.removed] == ["recited-b"]
    assert home.everything()[NAME] == before


def test_a_forgotten_text_does_not_return_by_undoing(home: Home) -> None:
    """The session from which something was forgotten stays: the next import would bring the text again."""
    _import(home, "one", ImportedConversation("a"), _said(1, f"my address is {MARK}"))
    assert [kept.reason for kept in _undo(home, "one").kept] == ["edited"]


def test_what_was_kept_is_undone_when_nothing_keeps_it_any_more(home: Home) -> None:
    """The later import is undone first, then the earlier one."""
    _import(home, "one", ImportedConversation("a"), _said(1))
    _import(home, "two", ImportedConversation("a"), _said(2))
    assert [kept.reason for kept in _undo(home, "one").kept] == ["later_import"]
    _undo(home, "two")
    assert _undo(home, "one").kept == []
    assert home.everything() == {}


def test_a_branch_of_the_same_import_is_removed_with_its_parent(home: Home) -> None:
    """Branches go first, and do not keep the session that they came from."""
    events = (ImportedConversation("a"), _said(1), ImportedConversation("b", parent_host_id="a"), _said(2))
    _import(home, "one", *events)
    assert home.everything()["recited-b"]["parent_session_id"] == NAME
    assert len(_undo(home, "one").removed) == 2
    assert home.everything() == {}


def test_a_session_that_the_user_deleted_stays_deleted(home: Home) -> None:
    """Undo does not forget that the user deleted it, so the next import does not restore it."""
    _import(home, "one", ImportedConversation("a"), _said(1))
    home.store.deletion.delete_session(NAME)
    report = _undo(home, "one")
    assert (report.messages, report.kept) == (0, [])
    assert home.store.deletion.deleted_sessions([NAME]) == {NAME}


def test_an_import_that_was_killed_can_be_undone(home: Home) -> None:
    """Messages that were written after the last checkpoint belong to it, although the next import finds them there."""
    _import(home, "one", ImportedConversation("a"), _said(1))
    state = state_of_store(home.root, home.store)
    state.log.start("killed", "recited", home.store.messages.last_message_id())
    state.close()
    home.store.messages.append_messages(NAME, [_said(2).message, _said(3).message])
    home.store.messages.append_messages(NAME, [{"role": "user", "content": "own words"}])
    _import(home, "three", ImportedConversation("a"), _said(1), _said(2), _said(3), _said(4))
    history = ImportHistory(home.root, home.store)
    assert [(logged.id, logged.sessions) for logged in history.imports()] == [("three", 1), ("killed", 1), ("one", 1)]
    assert [kept.reason for kept in history.preview("killed").kept] == ["continued"]
    history.close()


def test_an_import_that_added_nothing_is_not_listed(home: Home) -> None:
    """A second import of the same files leaves no trace that must be undone."""
    _import(home, "one", ImportedConversation("a"), _said(1))
    _import(home, "two", ImportedConversation("a"), _said(1))
    history = ImportHistory(home.root, home.store)
    assert [logged.id for logged in history.imports()] == ["one"]
    history.close()
