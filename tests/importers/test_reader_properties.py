"""Properties of the readers of Codex, Gemini CLI, OpenCode and Cursor: all that a source holds is accounted for."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.importers.coding_agents.codex import Codex
from memoranda.importers.coding_agents.cursor import Cursor
from memoranda.importers.coding_agents.gemini_cli import GeminiCli
from memoranda.importers.coding_agents.opencode import OpenCode
from memoranda.importers.item_import import read_events
from memoranda.importers.reader_protocol import ConversationReader, ImportedMessage, ImportItem, Problem, Skipped
from tests.examples import examples
from tests.importers import codex_rollouts, cursor_stores, gemini_recordings, opencode_sessions
from tests.importers.import_home import Home

pytestmark = pytest.mark.slow

_words = st.text(max_size=12)
_leaves = st.none() | st.booleans() | st.integers() | st.floats() | _words
_values = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3), max_leaves=6
)
_known = [
    "type", "payload", "timestamp", "id", "role", "content", "text", "call_id", "output", "arguments", "summary",
    "name", "cwd", "message", "record_type", "sessionId", "$set", "$rewindTo", "messages", "toolCalls", "result",
    "thoughts", "model", "parts", "state", "status", "input", "time", "tool", "callID", "bubbleId", "toolFormerData",
    "thinking", "createdAt", "metadata", "functionResponse", "functionCall", "response", "args", "codeBlocks",
    "source", "git",
]  # fmt: skip
_kinds = [
    "session_meta", "response_item", "event_msg", "turn_context", "compacted", "message", "reasoning", "function_call",
    "function_call_output", "custom_tool_call", "user", "gemini", "assistant", "tool", "text", "step-start", "file",
]  # fmt: skip
_named = st.dictionaries(st.sampled_from(_known), _values | st.sampled_from(_kinds), max_size=7)
_objects = _named | st.fixed_dictionaries(
    {"type": st.sampled_from(_kinds), "payload": _named, "timestamp": _values}, optional={"metadata": _named}
)
_real = st.sampled_from(
    [*codex_rollouts.PRESENT, *codex_rollouts.EARLIER, *gemini_recordings.PRESENT, *cursor_stores.TRANSCRIPT]
)


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


_lines = st.lists(_real.map(_written) | _objects.map(_written) | st.binary(max_size=20), max_size=12)

LINES: list[tuple[Callable[[], ConversationReader], str]] = [
    (Codex, "sessions/2026/rollout-2026-03-02-x.jsonl"),
    (GeminiCli, "tmp/shop/chats/session-x.jsonl"),
    (Cursor, "projects/shop/agent-transcripts/x.jsonl"),
]
DOCUMENTS: list[tuple[Callable[[], ConversationReader], str]] = [
    (Codex, "sessions/rollout-2025-04-20-x.json"),
    (GeminiCli, "tmp/shop/chats/session-x.json"),
    (GeminiCli, "tmp/shop/checkpoint-x.json"),
    (OpenCode, "storage/session/global/ses_x.json"),
]


def _lay_out(root: Path, name: str, content: bytes) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return root


def _accounted(reader: ConversationReader, item: ImportItem) -> int:
    return sum(isinstance(each, Skipped | ImportedMessage | Problem) for each in read_events(reader, item))


def _is_same_twice(reader: Callable[[], ConversationReader], where: Path, root: Path) -> None:
    """Import what is there; a plan says what happens, and a second time adds nothing."""
    home = Home(root)
    planned = home.plan(reader(), where)
    taken = home.take(reader(), where)
    assert (planned.messages, planned.problem_count) == (taken.messages, taken.problem_count)
    once = home.everything()
    assert home.take(reader(), where).messages == 0
    assert home.take(reader(), where, rescan=True).messages == 0
    assert home.everything() == once
    home.store.close()


@pytest.mark.parametrize(("reader", "name"), LINES)
@settings(max_examples=examples(20))
@given(lines=_lines)
def test_every_line_is_imported_counted_or_a_problem(
    reader: Callable[[], ConversationReader], name: str, lines: list[bytes]
) -> None:
    """Each line by itself, so that no other can stand in for it."""
    with TemporaryDirectory() as scratch:
        for line in lines:
            content = line.replace(b"\n", b" ") + b"\n"
            (item,) = reader().scan(_lay_out(Path(scratch), name, content))
            assert _accounted(reader(), item) >= bool(content.strip())


@pytest.mark.parametrize(("reader", "name"), LINES)
@settings(max_examples=examples(20))
@given(lines=_lines)
def test_importing_lines_twice_is_importing_them_once(
    reader: Callable[[], ConversationReader], name: str, lines: list[bytes]
) -> None:
    """Whatever the lines hold, and in whatever order."""
    with TemporaryDirectory() as scratch:
        where = _lay_out(Path(scratch) / "source", name, b"\n".join(lines))
        _is_same_twice(reader, where, Path(scratch) / "home")


@pytest.mark.parametrize(("reader", "name"), LINES)
@settings(max_examples=examples(20))
@given(lines=_lines, cut=st.integers(0, 12))
def test_a_file_that_grows_gives_what_it_gives_as_a_whole(
    reader: Callable[[], ConversationReader], name: str, lines: list[bytes], cut: int
) -> None:
    """Where a reading ended makes no difference to what is in the record."""
    with TemporaryDirectory() as scratch:
        whole = [line.replace(b"\n", b" ") + b"\n" for line in lines]
        source, home = Path(scratch) / "source", Home(Path(scratch) / "home")
        home.take(reader(), _lay_out(source, name, b"".join(whole[:cut])))
        home.take(reader(), _lay_out(source, name, b"".join(whole)))
        another = Home(Path(scratch) / "another")
        another.take(reader(), source)
        ours, theirs = ({name: _names(each, name) for name in each.everything()} for each in (home, another))
        assert ours == theirs
        home.store.close()
        another.store.close()


def _names(home: Home, session_id: str) -> list[str]:
    return [each["external_id"] for each in home.messages(session_id)]


@pytest.mark.parametrize(("reader", "name"), DOCUMENTS)
@settings(max_examples=examples(20))
@given(content=st.binary(max_size=40) | _values.map(_written) | _objects.map(_written))
def test_any_document_is_read_or_a_problem(reader: Callable[[], ConversationReader], name: str, content: bytes) -> None:
    """Nothing is raised, whatever the file holds, and importing it twice is importing it once."""
    with TemporaryDirectory() as scratch:
        where = _lay_out(Path(scratch) / "source", name, content)
        (item,) = reader().scan(where)
        given = list(read_events(reader(), item))
        assert given
        _is_same_twice(reader, where, Path(scratch) / "home")


_rows = st.lists(_named | _values, max_size=5).map(lambda values: [json.dumps(value) for value in values])
_texts = _rows | st.lists(st.text(max_size=20), max_size=3)


@settings(max_examples=examples(20))
@given(messages=_texts, parts=_texts)
def test_every_row_of_opencode_is_accounted_for(messages: list[str], parts: list[str]) -> None:
    """Each message and each part is imported, counted or a problem, whatever its JSON is."""
    with TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        with closing(opencode_sessions.begin_database(source)) as connection:
            opencode_sessions.add_session(connection, [])
            for number, message in enumerate(messages):
                row = (f"msg_{number}", opencode_sessions.SESSION, 0, 0, message)
                connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
                for each, part in enumerate(parts):
                    own = (f"prt_{number}_{each}", f"msg_{number}", opencode_sessions.SESSION, 0, 0, part)
                    connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", own)
        (item,) = OpenCode().scan(source)
        readable = sum(isinstance(_loaded(message), dict) for message in messages)
        expected = readable * max(1, len(parts)) + len(messages) - readable
        assert _accounted(OpenCode(), item) >= expected
        _is_same_twice(OpenCode, source, Path(scratch) / "home")


@settings(max_examples=examples(20))
@given(bubbles=_texts, composer=_named)
def test_every_bubble_of_cursor_is_accounted_for(bubbles: list[str], composer: dict[str, Any]) -> None:
    """Each bubble that a conversation lists is imported, counted or a problem."""
    names = [f"b-{number}" for number in range(len(bubbles))]
    headers = [{"bubbleId": name, "type": 2} for name in names]
    with TemporaryDirectory() as scratch:
        source = Path(scratch) / "User"
        values: dict[str, Any] = {f"bubbleId:x:{name}": text for name, text in zip(names, bubbles, strict=True)}
        values["composerData:x"] = {**composer, "fullConversationHeadersOnly": headers}
        cursor_stores.put(cursor_stores.global_database(source), "cursorDiskKV", values)
        items = Cursor().scan(source)
        assert len(items) == bool(bubbles)
        assert sum(_accounted(Cursor(), item) for item in items) >= len(bubbles)
        _is_same_twice(Cursor, source, Path(scratch) / "home")


@settings(max_examples=examples(20))
@given(blobs=st.lists(st.binary(max_size=60) | _named.map(_written), max_size=6), root=st.binary(max_size=120))
def test_every_blob_of_cursors_command_line_is_accounted_for(blobs: list[bytes], root: bytes) -> None:
    """Messages or not, lists or not: nothing is raised, and everything is counted."""
    with TemporaryDirectory() as scratch:
        source = cursor_stores.write_agent(Path(scratch) / "cursor")
        with closing(sqlite3.connect(next(source.rglob("store.db")))) as connection, connection:
            connection.execute("DELETE FROM blobs")
            meta = json.dumps({"latestRootBlobId": "root"}).encode().hex()
            connection.execute("UPDATE meta SET value = ?", (meta,))
            for number, blob in enumerate((*blobs, root)):
                name = "root" if number == len(blobs) else f"{number:064x}"
                connection.execute("INSERT INTO blobs VALUES (?, ?)", (name, blob))
        (item,) = Cursor().scan(source)
        assert _accounted(Cursor(), item) >= len(blobs) + 1
        _is_same_twice(Cursor, source, Path(scratch) / "home")


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
