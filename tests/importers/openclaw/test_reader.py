"""The transcripts of OpenClaw: files until the summer of 2026, a database since then, and one session in both."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.importers import zstandard
from memoranda.importers.openclaw.reader import OpenClaw
from memoranda.importers.reader_protocol import ImportedMessage, Problem, Skipped
from memoranda.importers.source_files import read_json_lines
from tests.examples import examples
from tests.importers.import_home import Home
from tests.importers.openclaw.material import EVENTS, KEY, SESSION, contents, write_database, write_transcript

pytestmark = pytest.mark.slow

NAME = f"openclaw-{SESSION}"
_SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is the anchor?", "timestamp": 1777622401.0, "external_id": "u1"},
    {"role": "assistant", "content": "Let me see.", "timestamp": 1777622403.0, "external_id": "a1",
     "reasoning": "I should look it up.", "finish_reason": "toolUse",
     "tool_calls": [{"id": "call_1", "type": "function",
                     "function": {"name": "read", "arguments": '{"path": "stores.md"}'}}]},
    {"role": "tool", "content": "anchor: locker 4\n\n[image: image/png, 6 bytes, not imported]",
     "timestamp": 1777622404.0, "external_id": "t1", "tool_call_id": "call_1", "tool_name": "read"},
    {"role": "assistant", "content": "In locker 4.", "timestamp": 1777622405.0, "external_id": "a2",
     "finish_reason": "stop"},
    {"role": "user", "content": "The anchor is in locker 4.", "timestamp": 1777626000.0, "external_id": "k1",
     "is_summary": 1},
]  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    yield made
    made.store.close()


@pytest.mark.parametrize("write", [write_transcript, write_database])
def test_a_session_is_imported_completely(home: Home, tmp_path: Path, write: Any) -> None:
    """Text, thinking, tool calls, results, summaries, timestamps, model, title and directory, from either era."""
    write(tmp_path / "oc", EVENTS)
    before = contents(tmp_path / "oc")
    summary = home.take(OpenClaw(), tmp_path / "oc")
    row = home.everything()[NAME]
    assert [{**{"is_summary": None}, **each} for each in home.messages(NAME)] == [
        {"is_summary": None, **each} for each in _SAID
    ]
    assert (row["title"], row["model"], row["source"]) == ("The anchor", "claude-opus-4-6", "openclaw")
    assert (row["host_session_id"], row["directory"], row["session_key"]) == (SESSION, "/home/ann/boat", KEY)
    assert row["started_at"] == 1777622400.0
    assert summary.skipped == {"session": 1, "model_change": 1, "custom (model-snapshot)": 1}
    assert not summary.problems
    assert contents(tmp_path / "oc") == before


def test_a_session_that_is_in_both_is_one_session(home: Home, tmp_path: Path) -> None:
    """As it is after OpenClaw moved its files into the database and kept them."""
    write_transcript(tmp_path / "oc", EVENTS[:4])
    write_database(tmp_path / "oc", EVENTS)
    home.take(OpenClaw(), tmp_path / "oc")
    assert [each["external_id"] for each in home.messages(NAME)] == ["u1", "a1", "t1", "a2", "k1"]


def test_a_session_that_grew_is_read_from_where_it_was(home: Home, tmp_path: Path) -> None:
    """Only what is new is added, and what was known of the session stays known."""
    write_transcript(tmp_path / "oc", EVENTS[:4])
    home.take(OpenClaw(), tmp_path / "oc")
    write_transcript(tmp_path / "oc", EVENTS)
    summary = home.take(OpenClaw(), tmp_path / "oc")
    assert (summary.messages, summary.messages_known) == (3, 0)
    assert home.everything()[NAME]["title"] == "The anchor"
    assert home.take(OpenClaw(), tmp_path / "oc").items_unchanged == 1


def test_while_openclaw_writes_everything_committed_is_read(home: Home, tmp_path: Path) -> None:
    """What is only in the log of the database counts as well, and the next import sees what came later."""
    file = write_database(tmp_path / "oc", EVENTS[:4])
    with closing(sqlite3.connect(file)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        for seq, event in enumerate(EVENTS[4:7], start=4):
            writer.execute(
                "INSERT INTO transcript_events VALUES (?, ?, ?, 1, NULL, NULL, NULL)", (SESSION, seq, json.dumps(event))
            )
        writer.commit()
        assert home.take(OpenClaw(), tmp_path / "oc").messages == 4
        writer.execute(
            "INSERT INTO transcript_events VALUES (?, 7, ?, 1, NULL, NULL, NULL)", (SESSION, json.dumps(EVENTS[7]))
        )
        writer.commit()
        assert home.take(OpenClaw(), tmp_path / "oc").messages == 1


def test_a_database_that_a_crash_left_is_read_in_a_copy(home: Home, tmp_path: Path) -> None:
    """SQLite would repair the original; nothing there is changed, and nothing is added beside it."""
    file = write_database(tmp_path / "scratch", EVENTS[:4])
    with closing(sqlite3.connect(file)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute(
            "INSERT INTO transcript_events VALUES (?, 6, ?, 1, NULL, NULL, NULL)", (SESSION, json.dumps(EVENTS[6]))
        )
        writer.commit()
        place = tmp_path / "oc" / "agents" / "main" / "agent"
        place.mkdir(parents=True)
        for name in (file.name, f"{file.name}-wal"):
            (place / name).write_bytes((file.parent / name).read_bytes())
    before = contents(tmp_path / "oc")
    assert home.take(OpenClaw(), tmp_path / "oc").messages == 3
    assert contents(tmp_path / "oc") == before


def test_reset_sessions_are_imported_and_deleted_ones_are_not(home: Home, tmp_path: Path) -> None:
    """Nor do the transcripts of other programs that an agent worked with."""
    root = tmp_path / "oc"
    write_transcript(root, EVENTS, f"{SESSION}.jsonl.reset.2026-05-02T00-00-00.000Z")
    write_transcript(root, EVENTS, "gone.jsonl.deleted.2026-05-02T00-00-00.000Z")
    other = root / "agents" / "main" / "agent" / "codex-home" / "sessions" / "rollout.jsonl"
    other.parent.mkdir(parents=True)
    other.write_text('{"type": "message", "id": "x", "message": {"role": "user", "content": "no"}}\n')
    home.take(OpenClaw(), root)
    assert list(home.everything()) == [NAME]


def test_the_oldest_transcripts_have_no_ids(home: Home, tmp_path: Path) -> None:
    """Equal lines at different places are different messages, and are the same ones the next time."""
    line = {"type": "message", "message": {"role": "user", "content": "again"}, "timestamp": "2026-01-01T00:00:00Z"}
    write_transcript(tmp_path / "oc", [line, line])
    assert home.take(OpenClaw(), tmp_path / "oc").messages == 2
    assert home.take(OpenClaw(), tmp_path / "oc", rescan=True).messages == 0


def test_broken_lines_and_events_are_named_and_skipped(home: Home, tmp_path: Path) -> None:
    """By file and line, or by their number in the database; the last line may be finished later."""
    file = write_transcript(tmp_path / "oc", EVENTS)
    file.write_text(file.read_text() + '{"type": "mess\n[1]\n{"type": "message"')
    write_database(tmp_path / "oc", ["{broken", "[1]", EVENTS[2]])
    summary = home.take(OpenClaw(), tmp_path / "oc")
    assert [problem.line for problem in summary.problems] == [9, 10, None, None]
    assert "event 0 of session" in summary.problems[2].text
    assert summary.messages == 5


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\0" + b"\xff" * 200])
def test_a_file_that_is_not_a_database_is_a_problem(home: Home, tmp_path: Path, content: bytes) -> None:
    """An empty one has no problem."""
    file = tmp_path / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    summary = home.take(OpenClaw(), tmp_path)
    assert (summary.messages, bool(summary.problems)) == (0, bool(content))


def _packed(event: dict[str, Any]) -> bytes:
    """A Zstandard frame of one raw block, put together by hand."""
    raw = json.dumps(event).encode()
    return b"\x28\xb5\x2f\xfd\xa0" + len(raw).to_bytes(4, "little") + (len(raw) << 3 | 1).to_bytes(3, "little") + raw


def test_compressed_events_are_read(home: Home, tmp_path: Path) -> None:
    """If a library can decompress them."""
    pytest.importorskip("zstandard")
    write_database(tmp_path / "oc", [_packed(event) for event in EVENTS])
    assert home.take(OpenClaw(), tmp_path / "oc").messages == 5


def test_compressed_events_wait_for_a_library(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The problem says what to install; the next import then reads them, although no file has changed."""
    monkeypatch.setattr(zstandard, "_load_library", lambda: None)
    write_database(tmp_path / "oc", [*EVENTS[:6], _packed(EVENTS[6]), b"no frame"])
    summary = home.take(OpenClaw(), tmp_path / "oc")
    assert summary.messages == 3
    assert "pip install 'memoranda[zstd]'" in summary.problems[0].text
    monkeypatch.undo()
    assert home.take(OpenClaw(), tmp_path / "oc").messages == 1


def test_the_command_resumes_the_session() -> None:
    """By its id, quoted; a thread belongs to its session."""
    assert OpenClaw().resume_command(SESSION, "/x") == f"openclaw agent --session-id {SESSION} --message '...'"
    assert "'a b'" in OpenClaw().resume_command("a b-topic-12", None)


_words = st.text(max_size=12)
_leaves = st.none() | st.booleans() | st.integers() | st.floats() | _words
_values = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3), max_leaves=6
)
_kinds = st.sampled_from(
    ["session", "message", "compaction", "custom", "custom_message", "session_info", "model_change"]
)
_roles = st.sampled_from(["user", "assistant", "toolResult", "bashExecution", "compactionSummary", "odd"])
_blocks = st.lists(
    st.dictionaries(
        st.sampled_from(["type", "text", "thinking", "id", "name", "arguments", "data"]),
        _values | st.sampled_from(["text", "thinking", "toolCall", "image"]),
        max_size=4,
    )
    | _values,
    max_size=3,
)
_messages = st.fixed_dictionaries({"role": _roles, "content": _blocks | _words | _values}, optional={"model": _values})
_events = st.fixed_dictionaries(
    {"type": _kinds},
    optional={"id": _words | _values, "message": _messages | _values, "timestamp": _values, "summary": _values,
              "name": _values, "cwd": _values, "content": _values, "parentSession": _values},
)  # fmt: skip
_lines = st.lists(
    (st.sampled_from(EVENTS) | _events | _values).map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=20),
    max_size=12,
)


@settings(max_examples=examples(60))
@given(lines=_lines)
def test_no_line_of_a_transcript_is_lost_silently(lines: list[bytes]) -> None:
    """Each is a message, counted as something else, or a problem; and a second import adds nothing."""
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "oc" / "agents" / "main" / "sessions" / "s.jsonl"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"\n".join(lines))
        item = OpenClaw().scan(Path(scratch) / "oc")[0]
        given_by = [each for each in OpenClaw().read(item) if isinstance(each, ImportedMessage | Skipped | Problem)]
        assert len(given_by) == len(list(read_json_lines(item)))
        home = Home(Path(scratch) / "home")
        planned = home.plan(OpenClaw(), Path(scratch) / "oc")
        done = home.take(OpenClaw(), Path(scratch) / "oc")
        assert (planned.messages, planned.problem_count) == (done.messages, done.problem_count)
        assert home.take(OpenClaw(), Path(scratch) / "oc", rescan=True).messages == 0
        home.store.close()
