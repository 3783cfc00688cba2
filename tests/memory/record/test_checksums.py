"""Every message has a checksum: damage of stored bytes is reported on read and by a check, and edits keep it right."""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memoranda.api.memory import open_memory
from memoranda.cli.main import command
from memoranda.errors import CorruptStoreError
from memoranda.memory.record import checksums
from memoranda.memory.record.checksums import COVERED, is_damaged, mark_damaged
from memoranda.memory.record.message_rows import DAMAGED
from memoranda.memory.record.rotation import KeptMessage, Summary
from memoranda.memory.record.schema import MESSAGES
from memoranda.memory.record.store import SessionStore, open_store
from tests.memory.record.conftest import ask

pytestmark = pytest.mark.slow

TEXT = "The migration of the billing tables is planned for the second of March."


@pytest.fixture(autouse=True)
def _forget_warnings() -> None:
    checksums._reported.clear()


def flip(path: Path, text: str, new: bytes | None = None) -> None:
    """Change the last byte of a text in the file by one bit, as a disk may do, or to other bytes."""
    content = bytearray(path.read_bytes())
    assert content.count(text.encode()) == 1
    end = content.index(text.encode()) + len(text.encode())
    new = bytes([content[end - 1] ^ 1]) if new is None else new
    content[end - len(new) : end] = new
    path.write_bytes(content)


def write(path: Path, **fields: Any) -> None:
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "Before.")
        store.messages.append_message("s", "assistant", **({"content": TEXT} | fields))
        store.messages.append_message("s", "user", "After.")


def damaged_ids(store: SessionStore) -> list[int]:
    return [message.id for message in store.checksums.damaged_messages()]


def test_a_flipped_bit_is_reported_on_read_and_by_the_check(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The rest of the session stays readable, the message carries a mark, and a warning is logged once."""
    write(path)
    flip(path, TEXT)
    with open_store(path) as store, caplog.at_level(logging.WARNING):
        for _ in range(2):
            messages = store.messages.get_messages("s")
            assert [message["content"] for message in messages] == ["Before.", TEXT[:-1] + "/", "After."]
            assert [DAMAGED in message for message in messages] == [False, True, False]
        assert list(store.messages.iter_messages("s")) == messages
        assert [
            record.message for record in caplog.records if "Message 2 of session s" in record.message
        ].__len__() == 1
        (found,) = store.checksums.damaged_messages()
        assert (found.id, found.session_id, found.role) == (2, "s", "assistant")
        window = store.conversations.window_around(1, 5)
        assert window is not None
        assert [message.damaged for message in window.messages] == [False, True, False]
        # A service would refuse a field that it does not know.
        assert all(DAMAGED not in message for message in store.messages.get_messages_as_conversation("s"))


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_calls": [{"id": "call_1", "function": {"name": "send", "arguments": TEXT}}]},
        {"tool_call_id": TEXT},
        {"tool_name": TEXT},
        {"reasoning": TEXT},
        {"reasoning_content": TEXT},
        {"reasoning_details": [TEXT]},
        {"codex_reasoning_items": [TEXT]},
        {"finish_reason": TEXT},
        {"own_field": TEXT},
        {"external_id": TEXT},
        {"content": [{"type": "text", "text": TEXT}]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_every_column_that_says_what_was_said_is_covered(path: Path, fields: dict[str, Any]) -> None:
    """A change of any of them is reported."""
    write(path, **({"content": None} | fields))
    # An external id is also in an index, whose copy stays as it is.
    if "external_id" in fields:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP INDEX idx_messages_external")
            connection.execute("VACUUM")
    flip(path, TEXT)
    with open_store(path) as store:
        assert damaged_ids(store) == [2]
        assert [DAMAGED in message for message in store.messages.get_messages("s")] == [False, True, False]


def test_role_and_time_are_covered(path: Path) -> None:
    """So is a change of a number, or of a single letter of the role."""
    for column, value in (
        ("role", "'assistent'"),
        ("timestamp", "timestamp + 1"),
        ("copy_of", "1"),
        ("token_count", "7"),
    ):
        with open_store(path) as store:
            store.sessions.create_session(column, "cli")
            number = store.messages.append_message(column, "assistant", TEXT)
        damage_with_sql(path, f"UPDATE messages SET {column} = {value} WHERE id = {number}")
        with open_store(path) as store:
            assert number in damaged_ids(store)


def damage_with_sql(path: Path, statement: str) -> None:
    """Change a row without the trigger that a program's change would fire."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (create,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = 'drop_checksum_of_updated_message'"
        ).fetchone()
        connection.execute("DROP TRIGGER drop_checksum_of_updated_message")
        connection.execute(statement)
        connection.execute(create)


def test_text_that_is_no_longer_utf8_does_not_hide_the_session(path: Path) -> None:
    """Messages, windows, lists, exports and the feed of the index return everything else."""
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", TEXT)
        store.messages.append_message("s", "assistant", "After.", tool_calls=[{"name": "keep this call"}])
    flip(path, TEXT, b"\xff\xfe")
    flip(path, "keep this call", b"\xff")
    with open_store(path) as store:
        expected = [TEXT[:-2] + "\ufffd\ufffd", "After."]
        assert [message["content"] for message in store.messages.get_messages("s")] == expected
        assert [message["content"] for message in store.messages.iter_messages("s")] == expected
        window = store.conversations.window_around(2, 5)
        assert window is not None
        assert [message.content for message in window.messages] == expected
        assert [message.content for message in store.feed.messages_from("s", 0)] == expected
        assert store.listing.list_sessions_rich()[0]["preview"].startswith("The migration")
        assert damaged_ids(store) == [1, 2]
        store.edits.rewind_to_message("s", 1)
        assert store.messages.get_messages("s") == []


def test_damaged_json_of_extra_fields_is_returned_as_text(path: Path) -> None:
    """A message whose extra fields are no longer JSON does not make its session unreadable."""
    write(path, own_field="zebra")
    flip(path, '"zebra"}')
    with open_store(path) as store:
        messages = store.messages.get_messages("s")
        assert messages[1]["extra"] == '{"own_field":"zebra"|'
        assert messages[1][DAMAGED] is True


def _redact(store: SessionStore) -> None:
    store.edits.redact_message(2)


def _rewind(store: SessionStore) -> None:
    store.edits.rewind_to_message("s", 3)
    store.edits.restore_rewound("s", 3)


def _compact(store: SessionStore) -> None:
    message = store.messages.get_message(2)
    assert message is not None
    kept = {"role": "assistant", "content": message["content"], "copy_of": 2}
    store.edits.archive_and_compact("s", [{"role": "user", "content": "In short.", "is_summary": True}, kept])


def _rotate(store: SessionStore) -> None:
    store.rotation.rotate_session("s", "next", [Summary("In short."), KeptMessage(2), KeptMessage(3)], last_seen=3)
    store.rotation.branch_session("next", "branch")


def _delete_original(store: SessionStore) -> None:
    _rotate(store)
    store.deletion.delete_session("s")


def _import(store: SessionStore) -> None:
    _rotate(store)
    exported = store.transfer.export_all()
    store.deletion.delete_sessions([session["id"] for session in exported])
    for session in exported:
        session["id"] += "-imported"
        if session["parent_session_id"]:
            session["parent_session_id"] += "-imported"
    assert store.transfer.import_sessions(exported[::-1]).ok


def _edit_elsewhere(store: SessionStore) -> None:
    number = store.messages.append_message("s", "user", "First wording.", external_id="one")
    store.edits.rewind_to_message("s", number)
    store.messages.append_message("s", "user", "Second wording.", external_id="one")


def _lose_originals(store: SessionStore) -> None:
    _rotate(store)
    with store.engine.writing() as connection:
        connection.execute("DELETE FROM messages WHERE id = 2")
    store.maintenance.give_up_lost_repetitions()


@pytest.mark.parametrize(
    "edit",
    [_redact, _rewind, _compact, _rotate, _delete_original, _import, _edit_elsewhere, _lose_originals],
)
def test_edits_keep_checksums_right(path: Path, edit: Callable[[SessionStore], None]) -> None:
    """After any change through the store every message has a checksum that it matches."""
    write(path)
    with open_store(path) as store:
        edit(store)
        report = store.checksums.check_messages()
    assert report.messages
    assert (report.without_checksum, report.damaged, report.known_damaged) == (0, [], 0)


@pytest.mark.parametrize("edit", [_compact, _rotate, _delete_original, _import])
def test_edits_do_not_hide_damage(path: Path, edit: Callable[[SessionStore], None]) -> None:
    """What is copied, moved or imported from a damaged message is marked as damaged, too."""
    write(path)
    flip(path, TEXT)
    with open_store(path) as store:
        edit(store)
        sessions = [row["id"] for row in store.listing.list_sessions_rich(include_children=True)]
        found = [message for name in sessions for message in store.messages.get_messages(name, include_inactive=True)]
        copies = [message for message in found if message["content"] == TEXT[:-1] + "/"]
        assert copies
        assert all(message.get(DAMAGED) for message in copies)


def test_a_person_and_a_model_see_that_a_message_is_damaged(tmp_path: Path) -> None:
    """`sessions show` and `session_search` say so beside the message."""
    path = tmp_path / "state.db"
    write(path)
    flip(path, TEXT)
    shown = CliRunner().invoke(command, ["--home", str(tmp_path), "sessions", "show", "s"]).output
    assert shown.count("damaged: it does not match its checksum") == 1
    with open_memory(tmp_path) as memory:
        answer = memory.call("session_search", {"session_id": "s"})
    assert [message.get("damaged") for message in answer["messages"]] == [None, True, None]


def test_accepted_damage_stays_marked(path: Path) -> None:
    """The check no longer reports it, and every read still says so."""
    write(path)
    flip(path, TEXT)
    with open_store(path) as store:
        store.checksums.accept_damage(damaged_ids(store))
        report = store.checksums.check_messages()
        assert (report.damaged, report.known_damaged) == ([], 1)
        assert [DAMAGED in message for message in store.messages.get_messages("s")] == [False, True, False]
        window = store.conversations.window_around(1, 5)
        assert window is not None
        assert [message.damaged for message in window.messages] == [False, True, False]


def test_another_programs_change_is_no_damage(path: Path) -> None:
    """A change with SQL removes the checksum; so does a message without one count as unchecked until it is filled."""
    write(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE messages SET content = 'Another wording.' WHERE id = 2")
        connection.execute("UPDATE messages SET active = 0 WHERE id = 3")
        connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'New.', 5)"
        )
        connection.commit()
    with open_store(path) as store:
        report = store.checksums.check_messages()
        assert (report.messages, report.without_checksum, report.damaged) == (4, 2, [])
        assert store.checksums.fill_checksums() == 2
        assert store.checksums.check_messages().without_checksum == 0
    flip(path, "Another wording.")
    with open_store(path) as store:
        assert damaged_ids(store) == [2]


def test_a_salvage_can_judge_rows(path: Path) -> None:
    """`is_damaged` takes rows as they are stored, and a row that is cut can be marked."""
    write(path)
    rows = ask(path, "SELECT * FROM messages ORDER BY id")
    assert [is_damaged(row) for row in rows] == [False, False, False]
    assert is_damaged(rows[1] | {"content": TEXT[:20]}) is True
    assert is_damaged(rows[1] | {"checksum": None}) is None
    marked = rows[1] | {"id": 9, "content": TEXT[:20], "checksum": None, "extra": mark_damaged('{"own":1}')}
    with open_store(path) as store:
        store.maintenance.take_rows({"messages": [rows[0] | {"id": 8, "content": "cut"}, marked]})
        assert damaged_ids(store) == [8]
        found = {message["id"]: message for message in store.messages.get_messages("s")}
        assert found[8][DAMAGED] is True
        assert found[9][DAMAGED] is True
        assert found[9]["own"] == 1


def test_the_trigger_names_the_covered_columns(path: Path) -> None:
    """A column that is added later is either covered, or a flag of the row."""
    write(path)
    assert {column.name for column in MESSAGES.columns} - set(COVERED) == {
        "id", "active", "compacted", "rewound", "checksum"
    }  # fmt: skip
    (row,) = ask(path, "SELECT sql FROM sqlite_master WHERE name = 'drop_checksum_of_updated_message'")
    assert all(f"OLD.{name} IS NOT NEW.{name}" in row["sql"] for name in COVERED)


def test_values_that_a_database_stores_in_another_form_match(store: SessionStore) -> None:
    """A negative zero, a text that is a subclass of str, NULs, and text outside the basic plane are no damage."""

    class Role(str):
        def __str__(self) -> str:
            return "something else"

    store.sessions.create_session("s", "cli")
    for content in ("a\x00b", "", "😀 ü", "\ud83d", ["\ud83d\ude00"], 1.0, -0.0, 10**30, None):
        store.messages.append_message("s", Role("user"), content, timestamp=-0.0, token_count=True, own=content)
        store.messages.append_messages("s", [{"role": Role("user"), "content": content, "timestamp": 5}] * 2)
    assert damaged_ids(store) == []


def test_the_checksums_of_stored_messages_never_change(store: SessionStore, path: Path) -> None:
    """What a version has stored, every later one must compute again: the order of columns and the form of values."""
    store.sessions.create_session("s", "cli")
    store.messages.append_message("s", "user", "Grüße\x00!", timestamp=1763300000.25)
    store.messages.append_message(
        "s", "assistant", [{"type": "text", "text": "yes"}], timestamp=5, token_count=7, reasoning="because",
        tool_calls=[{"name": "x"}], external_id="e", own="field", is_summary=True,
    )  # fmt: skip
    rows = ask(path, "SELECT checksum FROM messages ORDER BY id")
    assert [row["checksum"] for row in rows] == [-527597540, 1752859663]


def test_a_schema_that_is_no_text_is_damage(path: Path) -> None:
    """Python cannot read SQLite's message about it, which quotes the bytes."""
    open_store(path).close()
    content = bytearray(path.read_bytes())
    place = content.index(b"tablemessages") + len(b"table")
    content[place] = 0x86
    content[content.index(b"CREATE TABLE", place)] = 0x00
    path.write_bytes(content)
    with pytest.raises(CorruptStoreError, match="damaged"):
        open_store(path)
