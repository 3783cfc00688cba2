"""Memories of mem0: pickled points are read and never loaded, pages of the platform, and the history."""

import json
import os
import pickle
import shutil
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.importers.memory_programs.mem0 import Mem0, PickledObject, read_pickled
from tests.importers.import_home import Home
from tests.importers.samples.databases import MEM0

pytestmark = pytest.mark.slow

PAGE: dict[str, Any] = {
    "count": 2,
    "next": None,
    "previous": None,
    "results": [
        {
            "id": "9f4e",
            "memory": "Ann is allergic to peanuts.",
            "user_id": "ann",
            "metadata": {"topic": "food"},
            "categories": ["health"],
            "created_at": "2026-03-01T10:00:00-08:00",
            "updated_at": "2026-03-02T10:00:00-08:00",
        },
        {"id": "9f4f", "memory": "It books trains.", "agent_id": "planner", "created_at": "2026-03-03T10:00:00Z"},
    ],
}  # fmt: skip


class _Executed:
    """An object whose pickle runs a command when it is loaded."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self._file}",)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    ),
    st.integers(2, 5),
)
def test_plain_values_are_read_as_pickle_reads_them(value: Any, protocol: int) -> None:
    """Every protocol since 2 gives the same values."""
    assert read_pickled(pickle.dumps(value, protocol)) == value


@given(st.binary(max_size=300))
def test_bytes_that_are_no_pickle_raise_only_value_errors(data: bytes) -> None:
    """So that a damaged point is one problem."""
    with suppress(ValueError):
        read_pickled(data)


def test_a_pickle_that_runs_a_command_runs_nothing(home: Home, tmp_path: Path) -> None:
    """The point is reported, and the others of the collection are imported."""
    made = tmp_path / "made"
    files = Path(shutil.copytree(MEM0.path, tmp_path / "files"))
    hostile = pickle.dumps(_Executed(made))
    assert read_pickled(hostile) == PickledObject("posix.system")
    with closing(sqlite3.connect(files / "qdrant/collection/mem0/storage.sqlite")) as connection, connection:
        connection.execute("INSERT INTO points VALUES ('x', ?)", (hostile,))
    summary = home.take(Mem0(), files)
    assert summary.messages == MEM0.messages
    assert ["was not loaded" in problem.text for problem in summary.problems] == [True]
    assert not made.exists()


@pytest.mark.parametrize(
    "data",
    [b"\x80\x04r" + struct.pack("<I", 2**31) + b".", b"(" * 100_000, b"]" * 3, b"\x80\x04\x8d" + b"\xff" * 8 + b"N."],
)
def test_pickles_that_would_use_much_memory_are_refused(data: bytes) -> None:
    """A huge memo index, endless marks, several values and an endless text are damage."""
    with pytest.raises(ValueError, match=r".*"):
        read_pickled(data)


def test_pages_of_the_platform_are_notes(home: Home, tmp_path: Path) -> None:
    """Saved pages of its API, with users, agents, times and metadata."""
    (tmp_path / "page.json").write_text(json.dumps(PAGE), "utf-8")
    assert home.take(Mem0(), tmp_path / "page.json").messages == 2
    (note,) = home.messages("mem0:notes-user=ann")
    assert (note["role"], note["content"], note["timestamp"]) == (
        "assistant",
        "Ann is allergic to peanuts.",
        1772474400.0,
    )
    assert note["note"]["categories"] == ["health"]
    assert home.everything()["mem0:notes-agent=planner"]["title"] == "mem0: memories of agent planner"


def test_a_changed_memory_is_a_new_note(home: Home, tmp_path: Path) -> None:
    """The record keeps the text that it has, and the newer one follows with its own time."""
    page = tmp_path / "page.json"
    page.write_text(json.dumps(PAGE), "utf-8")
    home.take(Mem0(), page)
    changed = {**PAGE["results"][0], "memory": "Ann may eat peanuts again.", "updated_at": "2026-05-02T10:00:00Z"}
    page.write_text(json.dumps({"results": [changed, PAGE["results"][1]]}), "utf-8")
    assert home.take(Mem0(), page).messages == 1
    assert [note["content"] for note in home.messages("mem0:notes-user=ann")] == [
        "Ann is allergic to peanuts.",
        "Ann may eat peanuts again.",
    ]
