"""Threads and items of LangGraph: MessagePack is read without creating the objects that it describes."""

import json
import pickle
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.importers.memory_programs.langgraph import LangGraph, read_msgpack
from tests.cases import cases
from tests.importers.import_home import Home


@given(st.binary(max_size=300))
def test_bytes_that_are_no_msgpack_raise_only_value_errors(data: bytes) -> None:
    """So that a damaged checkpoint is one problem."""
    with suppress(ValueError):
        read_msgpack(data)


@cases(
    "data",
    [
        pytest.param(b"\x91" * 100_000, id="nested lists"),
        pytest.param(b"\xdd\xff\xff\xff\xff\xc0", id="a list of four thousand million values"),
        pytest.param(b"\xdb\xff\xff\xff\xff", id="a text of four gigabytes"),
        pytest.param(b"\xc1", id="an unknown type"),
    ],
)
def test_hostile_bytes_are_refused(data: bytes) -> None:
    """Depth and length are checked before anything is built."""
    with pytest.raises(ValueError, match="damaged MessagePack"):
        read_msgpack(data)


def test_an_object_is_its_fields() -> None:
    """Module, class and method are names in the data and nothing else."""
    described = b"\x94\xa2os\xa6system\x81\xa1a\x01\xa3run"
    assert read_msgpack(b"\xc7" + bytes([len(described)]) + b"\x05" + described) == {"a": 1}


def test_checkpoints_of_older_and_unsafe_formats(tmp_path: Path) -> None:
    """JSON of older versions is read; a pickle is reported and not loaded."""
    kwargs = {"content": "Hello.", "type": "human", "id": "h1"}
    message = {"lc": 2, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": kwargs}
    checkpoint = {"ts": "2025-01-01T00:00:00+00:00", "channel_values": {"messages": [message]}}
    file = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata)"
        )
        rows = [("1", "json", json.dumps(checkpoint).encode()), ("2", "pickle", pickle.dumps(checkpoint))]
        connection.executemany("INSERT INTO checkpoints VALUES ('t', '', ?, ?, ?, NULL)", rows)
    home = Home(tmp_path / "home")
    summary = home.take(LangGraph(), file)
    assert [message["content"] for message in home.messages("langgraph:t")] == ["Hello."]
    assert ["the format pickle is not supported" in problem.text for problem in summary.problems] == [True]
