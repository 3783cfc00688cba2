"""A very long message takes little memory in an import, and is imported like any other, whatever happens."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import StorageError
from memoranda.importers import item_import, session_writer, source_files
from memoranda.importers.coding_agents.claude_code import ClaudeCode
from memoranda.importers.importer import Importer
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage
from memoranda.memory.record.store import open_store
from memoranda.storage.sqlite.engine import SqliteEngine
from tests.examples import examples
from tests.forked import Forked, Say, forking
from tests.importers.claude_code_lines import COMPACTED, PRESENT, assistant, result, text, user
from tests.importers.import_home import Home, ListReader, write_lines
from tests.memory.peak import PEAK

pytestmark = pytest.mark.slow

# Imports a folder in a process, and prints by how much its memory grew.
_RUN = (
    PEAK
    + """
import sys
from pathlib import Path
from memoranda.importers.importer import Importer
from memoranda.importers.sources import SOURCES
from memoranda.home.session_db import SessionDB
from memoranda.safety.redaction import Redactor

source, root = SOURCES[sys.argv[1]].load(), Path(sys.argv[3])
db = SessionDB(root / "state.db", redactor=Redactor())
before = peak()
print(Importer(root, db).apply(source, source.scan(Path(sys.argv[2]))).messages)
db.index.catch_up()
print(peak() - before)
"""
)
_PAYLOAD: dict[str, object] = {"type": "function_call_output", "call_id": "c1"}
_SIZE = 40_000_000


def _lines(source: str, long: str) -> list[dict[str, object]]:
    if source == "codex":
        return [
            {"type": "session_meta", "payload": {"id": "0199"}},
            {"type": "response_item", "payload": _PAYLOAD | {"output": long}},
        ]
    if source == "jsonl":
        return [{"role": "user", "content": "hello"}, {"role": "user", "content": long}]
    return [user("u1", "hello"), user("u2", [result("t1", long)] if source == "a tool" else long)]


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("source", ["claude-code", "a tool", "codex", "jsonl"])
def test_a_very_long_text_is_in_memory_twice(tmp_path: Path, source: str) -> None:
    """As text and JSON, as text and what its checksum covers, or as SQLite's value and its row."""
    name = f"rollout-2026-01-01T10-00-00-{0:08}-0000-0000-0000-{0:012}.jsonl" if source == "codex" else "s.jsonl"
    words = "the quick brown fox jumps over the lazy dog "
    write_lines(tmp_path / "source" / name, _lines(source, words * (_SIZE // len(words))))
    (tmp_path / "home").mkdir()
    reader = "claude-code" if source == "a tool" else source
    done = subprocess.run(
        [sys.executable, "-c", _RUN, reader, str(tmp_path / "source"), str(tmp_path / "home")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    messages, grown = map(int, done.stdout.split())
    assert messages == (1 if source == "codex" else 2)
    assert grown < 2.6 * _SIZE


@pytest.fixture
def every_message_is_long() -> Iterator[None]:
    """Each message is written alone, as only very long ones are otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        _make_every_message_long(patch)
        yield


def _make_every_message_long(patch: pytest.MonkeyPatch) -> None:
    for module in (item_import, session_writer):
        patch.setattr(module, "MAX_BATCH_CHARS", 1)
    patch.setattr(source_files, "_LONG_LINE_BYTES", 1)


_long_lines = st.lists(st.sampled_from([*PRESENT, *COMPACTED]), max_size=12) | st.lists(
    st.builds(user, st.sampled_from("abcdef"), st.text(max_size=12)), max_size=12
)


@settings(max_examples=examples(40))
@given(lines=_long_lines)
def test_the_record_is_the_same_however_long_a_message_must_be(lines: list[dict[str, object]]) -> None:
    """One by one or together, and again: the same messages, with the same checksums."""
    with TemporaryDirectory() as scratch:
        source, found = Path(scratch) / "source", []
        write_lines(source / "s.jsonl", lines)
        for number, is_long in enumerate((False, True)):
            with pytest.MonkeyPatch.context() as patch:
                if is_long:
                    _make_every_message_long(patch)
                home = Home(Path(scratch) / str(number))
                home.take(ClaudeCode(), source)
                assert home.take(ClaudeCode(), source, rescan=True).messages == 0
                assert list(home.store.checksums.damaged_messages()) == []
                found.append(home.everything())
                home.store.close()
        assert found[0] == found[1]


@pytest.mark.usefixtures("every_message_is_long")
def test_a_message_that_a_reader_uses_again_keeps_its_text(tmp_path: Path) -> None:
    """Only what is made of one line is given away: a tree of messages yields its beginning for every branch."""
    home = Home(tmp_path / "home")
    first = ImportedMessage({"role": "user", "content": "a long text", "external_id": "1"})
    summary = home.take(
        ListReader(ImportedConversation("a"), first, ImportedConversation("b", parent_host_id="a"), first)
    )
    assert (summary.messages, summary.messages_known, summary.problem_count) == (1, 1, 0)
    assert first.message["content"] == "a long text"


@pytest.mark.usefixtures("every_message_is_long")
def test_a_long_message_that_could_not_be_written_is_imported_next_time(tmp_path: Path) -> None:
    """The disk is full: the import fails, what was written before stays, and the line is not noted as read."""
    home, long = Home(tmp_path / "home"), "a long text " * 20_000
    write_lines(tmp_path / "s" / "s.jsonl", [user("u1", "short"), user("u2", long), assistant("a1", text("fine"))])
    assert isinstance(home.store.engine, SqliteEngine)
    writer = home.store.engine._writer
    assert writer is not None
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count={pages + 8}")
    with pytest.raises(StorageError, match="full"):
        home.take(ClaudeCode(), tmp_path / "s")
    writer.execute("PRAGMA max_page_count=1000000")
    (session,) = home.everything().values()
    assert [message["content"] for message in session["messages"]] == ["short"]
    assert home.take(ClaudeCode(), tmp_path / "s").messages == 2
    (session,) = home.everything().values()
    assert [message["content"] for message in session["messages"]] == ["short", long, "fine"]


def _import(root: Path, source: Path, say: Say) -> None:
    with pytest.MonkeyPatch.context() as patch:
        _make_every_message_long(patch)
        say(b"begun\n")
        Importer(root, open_store(root / "state.db")).apply(ClaudeCode(), ClaudeCode().scan(source))
        say(b"done\n")


@forking
def test_no_long_message_is_lost_or_empty_after_kills(tmp_path: Path) -> None:
    """Every message that a killed import left is whole, and the next imports bring the others."""
    source, root, dice = tmp_path / "source", tmp_path / "home", random.Random(5)
    said = [f"{number} " + "many words " * 2_000 for number in range(120)]
    write_lines(source / "s.jsonl", [user(f"u{number}", each) for number, each in enumerate(said)])
    root.mkdir()
    kills = 0
    for _ in range(40):
        process = Forked(lambda say: _import(root, source, say))
        heard = process.heard()
        time.sleep(dice.uniform(0, 0.1))
        if heard + process.kill() == b"begun\ndone\n":
            break
        kills += 1
        with open_store(root / "state.db") as store:
            stored = [message["content"] for session in store.transfer.iter_export() for message in session["messages"]]
        assert stored == said[: len(stored)]
    home = Home(root)
    home.take(ClaudeCode(), source)
    (session,) = home.everything().values()
    assert kills > 1
    assert [message["content"] for message in session["messages"]] == said
