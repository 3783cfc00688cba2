"""Importing twice adds nothing, a plan is what happens, and no line is lost silently, for any content."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.importers.coding_agents.claude_code import ClaudeCode
from memoranda.importers.exports.jsonl import JsonLines
from memoranda.importers.item_import import read_events
from memoranda.importers.reader_protocol import (
    Checkpoint,
    ConversationReader,
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    Skipped,
)
from memoranda.importers.source_files import read_json_lines
from tests.examples import examples
from tests.importers.claude_code_lines import COMPACTED, EARLIER, PRESENT
from tests.importers.import_home import Home

pytestmark = pytest.mark.slow

READERS: list[Callable[[], ConversationReader]] = [ClaudeCode, JsonLines]

_words = st.text(max_size=20)
_leaves = st.none() | st.booleans() | st.integers() | st.floats() | _words
_values = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3), max_leaves=8
)
_fields = st.sampled_from(
    ["type", "uuid", "message", "content", "role", "timestamp", "sessionId", "cwd", "isSidechain", "agentId", "session",
     "id", "title", "model", "relation", "parent", "attachment", "summary", "leafUuid", "customTitle", "tool_calls"]
)  # fmt: skip
_parts = st.sampled_from(["type", "text", "thinking", "id", "name", "input", "tool_use_id", "content", "source"])
_block = st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image"])
_blocks = st.lists(st.dictionaries(_parts, _values | _block, max_size=5), max_size=3)
_kinds = st.sampled_from(["user", "assistant", "system", "summary", "attachment", "ai-title", "custom-title"])
_objects = st.dictionaries(_fields, _values, max_size=6) | st.fixed_dictionaries(
    {"type": _kinds, "message": st.fixed_dictionaries({"content": _blocks | _words})},
    optional={
        "uuid": _words,
        "timestamp": _values,
        "role": st.sampled_from(["user", "assistant"]),
        "isMeta": st.booleans(),
    },
)
_real = st.sampled_from([*PRESENT, *EARLIER, *COMPACTED])


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


_lines = st.lists(
    _real.map(_written) | _objects.map(_written) | _values.map(_written) | st.binary(max_size=30), max_size=12
)
_files = st.lists(st.tuples(_lines, st.booleans()), min_size=1, max_size=3)


def _lay_out(files: list[tuple[list[bytes], bool]], root: Path) -> Path:
    """Files of lines; the last line of some of them has no end."""
    root.mkdir()
    for number, (lines, is_ended) in enumerate(files):
        (root / f"session-{number}.jsonl").write_bytes(b"\n".join(lines) + (b"\n" if is_ended else b""))
    return root


@pytest.mark.parametrize("make", READERS)
@settings(max_examples=examples(30))
@given(files=_files)
def test_a_second_import_adds_nothing(
    make: Callable[[], ConversationReader], files: list[tuple[list[bytes], bool]]
) -> None:
    """For any files, with or without the state of the first import."""
    with TemporaryDirectory() as scratch:
        home, where = Home(Path(scratch) / "home"), _lay_out(files, Path(scratch) / "source")
        home.take(make(), where)
        once = home.everything()
        assert home.take(make(), where).messages == 0
        assert home.take(make(), where, rescan=True).messages == 0
        assert home.everything() == once
        home.store.close()


@pytest.mark.parametrize("make", READERS)
@settings(max_examples=examples(30))
@given(files=_files)
def test_a_plan_says_exactly_what_happens(
    make: Callable[[], ConversationReader], files: list[tuple[list[bytes], bool]]
) -> None:
    """The figures of the preview are those of the import, problems included."""
    with TemporaryDirectory() as scratch:
        home, where = Home(Path(scratch) / "home"), _lay_out(files, Path(scratch) / "source")
        planned = home.plan(make(), where).as_json()
        done = home.take(make(), where).as_json()
        # Titles that end in a number of their own are only known when they are given.
        assert planned | {"renamed": None} == done | {"renamed": None}
        home.store.close()


@pytest.mark.parametrize("make", READERS)
@settings(max_examples=examples(60))
@given(lines=_lines, is_ended=st.booleans())
def test_every_line_is_imported_skipped_or_a_problem(
    make: Callable[[], ConversationReader], lines: list[bytes], is_ended: bool
) -> None:
    """A reader yields an event for each line, or facts about its conversation."""
    with TemporaryDirectory() as scratch:
        where = _lay_out([(lines, is_ended)], Path(scratch) / "source")
        reader = make()
        for item in reader.scan(where):
            seen = _numbers(reader, item)
            expected = {found.number for found in read_json_lines(item) if not isinstance(found, Problem)}
            assert expected <= seen


@pytest.mark.parametrize("make", READERS)
@settings(max_examples=examples(30))
@given(files=_files)
def test_every_message_that_was_read_is_accounted_for(
    make: Callable[[], ConversationReader], files: list[tuple[list[bytes], bool]]
) -> None:
    """It is new, here already, or a problem; and what is new is in the record."""
    with TemporaryDirectory() as scratch:
        home, where = Home(Path(scratch) / "home"), _lay_out(files, Path(scratch) / "source")
        given = [each for item in make().scan(where) for each in read_events(make(), item)]
        summary = home.take(make(), where)
        refused = summary.problem_count - sum(isinstance(each, Problem) for each in given)
        read = sum(isinstance(each, ImportedMessage) for each in given)
        assert read == summary.messages + summary.messages_known + refused
        assert sum(len(row["messages"]) for row in home.everything().values()) == summary.messages
        home.store.close()


def _numbers(reader: ConversationReader, item: ImportItem) -> set[int]:
    """The lines for which a reader gave something; asides have no number, so each stands for the next line."""
    seen: set[int] = set()
    for found in read_json_lines(item):
        if isinstance(found, Problem):
            continue
        before = b"\n" * (found.number - 1)
        alone = item.file.with_name("alone.jsonl")
        alone.write_bytes(before + found.raw)
        given = list(read_events(reader, ImportItem(alone, alone.stat().st_size, 1.0, item.label)))
        if any(isinstance(each, ImportedMessage | Skipped | Problem | ImportedConversation) for each in given):
            seen.add(found.number)
        alone.unlink()
    return seen


@settings(max_examples=examples(30))
@given(lines=_lines, cut=st.integers(min_value=0, max_value=3000))
def test_a_file_may_be_imported_at_any_byte_of_its_growth(lines: list[bytes], cut: int) -> None:
    """Importing it half written and then complete gives the same as importing it once."""
    with TemporaryDirectory() as scratch:
        whole = b"".join(line.replace(b"\n", b" ") + b"\n" for line in lines)
        root = Path(scratch) / "source"
        root.mkdir()
        file = root / "session.jsonl"
        file.write_bytes(whole[:cut])
        growing, at_once = Home(Path(scratch) / "growing"), Home(Path(scratch) / "at-once")
        growing.take(ClaudeCode(), root)
        file.write_bytes(whole)
        growing.take(ClaudeCode(), root)
        at_once.take(ClaudeCode(), root)
        assert _said(growing) == _said(at_once)
        growing.store.close()
        at_once.store.close()


def _said(home: Home) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: [(each["external_id"], each["role"], each["content"]) for each in row["messages"]]
        for name, row in home.everything().items()
    }


@settings(max_examples=examples(30))
@given(lines=_lines)
def test_checkpoints_are_at_the_ends_of_lines(lines: list[bytes]) -> None:
    """From any checkpoint, a reader yields what it would have yielded anyway."""
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "session.jsonl"
        file.write_bytes(b"\n".join(lines) + b"\n")
        whole = file.read_bytes()
        for mark in ClaudeCode().read(ImportItem(file, len(whole), 1.0, "session")):
            if isinstance(mark, Checkpoint):
                assert whole[: mark.offset].endswith(b"\n")
                assert whole[: mark.offset].count(b"\n") == mark.line
