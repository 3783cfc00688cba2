"""Properties over generated files and operations."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.memory.curated.memory_file import parse, serialise, size
from memoranda.memory.curated.operations import Add, MemoryReceipt, MemoryRefusal, Operation, Remove, Replace
from memoranda.memory.curated.settings import CuratedSettings, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.origin import Origin
from tests.conftest import tree
from tests.examples import examples
from tests.memory.curated.storages import open_store

pytestmark = pytest.mark.slow

LIMIT = 60
_WORDS = st.sampled_from(
    ["tea", "coffee", "uses pytest", "é", "e\u0301", "字", "§", "a\r\nb", "x" * 30, "\ufeff", "\u2028"]
)
_PIECES = st.lists(_WORDS | st.sampled_from(["\n§\n", "\n", " ", "\n§", "§\n"]), min_size=1, max_size=5)
_TEXT = _PIECES.map("".join)
_OPERATION: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Add, _TEXT), st.builds(Replace, _TEXT, _TEXT), st.builds(Remove, _TEXT)
)
_BATCH = st.lists(_OPERATION, min_size=1, max_size=3)
_TARGET: st.SearchStrategy[Target] = st.sampled_from(["memory", "user"])
_FILE = st.binary(max_size=30) | st.lists(_TEXT, max_size=4).map(lambda pieces: "\n§\n".join(pieces).encode())
_quick = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=examples(60)
)


def _store(tmp_path: Path) -> MemoryStore:
    directory = Path(tempfile.mkdtemp(dir=tmp_path))
    return open_store(directory, CuratedSettings(memory_char_limit=LIMIT, user_char_limit=LIMIT))


@_quick
@given(steps=st.lists(st.tuples(_TARGET, _BATCH), max_size=6))
def test_what_is_acknowledged_is_on_disk_within_the_budget_and_reads_back(
    tmp_path: Path, steps: list[tuple[Target, list[Operation]]]
) -> None:
    """After any sequence of writes: a receipt is true, a refusal changed nothing, the file round-trips and fits."""
    store = _store(tmp_path)
    for target, operations in steps:
        before = tree(store.directory)
        outcome = store.apply(target, operations, Origin())
        if isinstance(outcome, MemoryRefusal) or not outcome_changes(outcome):
            assert tree(store.directory) == before
            continue
        text = store.path(target).read_bytes().decode()
        entries = parse(text)
        assert serialise(entries) == text
        assert size(entries) == len(text) <= LIMIT
        assert tuple(store.journal.entries_after(target) or ()) == tuple(entries)


def outcome_changes(outcome: Any) -> bool:
    return isinstance(outcome, MemoryReceipt) and bool(outcome.edits)


@_quick
@given(content=_FILE, operations=_BATCH)
def test_no_existing_file_is_ever_lost(tmp_path: Path, content: bytes, operations: list[Operation]) -> None:
    """Whatever lies there: it stays byte for byte, or its bytes or its entries can be found again."""
    store = _store(tmp_path)
    path = store.path("memory")
    path.write_bytes(content)
    store.load_from_disk()
    outcome = store.apply("memory", operations, Origin())
    if not outcome_changes(outcome):
        assert path.read_bytes() == content
        return
    assert isinstance(outcome, MemoryReceipt)
    kept = outcome.backup.read_bytes() if outcome.backup else None
    found = next(change for change in store.journal.changes())
    first = [edit.after for edit in found.edits] if found.action == "found" else []
    assert kept == content or first == parse(content.decode())


@_quick
@given(content=_FILE)
def test_the_prompt_block_is_the_same_for_every_load(tmp_path: Path, content: bytes) -> None:
    """Loading is a function of the bytes on disk and never raises."""
    store = _store(tmp_path)
    store.path("memory").write_bytes(content)
    store.load_from_disk()
    first = store.format_for_system_prompt("memory")
    store.load_from_disk()
    assert store.format_for_system_prompt("memory") == first
    assert store.path("memory").read_bytes() == content
