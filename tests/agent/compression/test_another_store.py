"""A compressed conversation that was imported elsewhere names the same messages, by the numbers they have there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.agent.compression.compressor import CompressedContext, Compressor
from memoranda.agent.compression.summary import parse_summaries
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.message_rows import renumber_references
from tests.agent.compression.conftest import calls, result, said
from tests.agent.compression.test_found_again import compress, search
from tests.contracts.store.assertions import contents

pytestmark = pytest.mark.slow

CUT = re.compile("to make room|an image was here")
NUMBER = re.compile(r"(?:messages? |around_message_id |to |or |\[)(\d+)(?=[\]:, .]| to| or)")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    """A conversation that was compressed three times: twice summarised, once only shortened."""
    with SessionDB(tmp_path / "here" / "state.db") as opened:
        opened.create_session("s0", "cli")
        current = "s0"
        for part in range(2):
            talk = [said("user", f"Please move crate {part}-{step} to row {step}.") for step in range(30)]
            done = [said("assistant", f"Crate {part}-{step} stands in row {step}.") for step in range(30)]
            opened.append_messages(current, [each for pair in zip(talk, done, strict=True) for each in pair])
            current = compress(opened, current, None, force=True)
        image = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "x" * 40}}]
        opened.append_messages(current, [said("user", image), calls("c"), result("c", "barge " * 4_000)])
        opened.append_messages(current, [said("assistant", "A barge."), said("user", "Which one?")])
        assert compress(opened, current, None) == "s3"
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[SessionDB]:
    """A store in which the same numbers are other messages."""
    with SessionDB(tmp_path / "there" / "state.db") as opened:
        opened.create_session("own", "cli")
        opened.append_messages("own", [said("user", f"Something else, {number}.") for number in range(77)])
        yield opened


def _named(db: SessionDB, session_id: str) -> list[tuple[str, Any]]:
    """Each number in what compression wrote, as the message that it names."""
    written = [row for row in db.get_messages(session_id) if row["is_summary"] or CUT.search(str(row["content"]))]
    texts = [str(row["content"]) for row in written]
    named = [int(number) for text in texts for number in NUMBER.findall(text)]
    return [
        ((db.get_message(number) or {})["session_id"], (db.get_message(number) or {})["content"]) for number in named
    ]


def test_numbers_are_those_of_the_store(db: SessionDB, other: SessionDB) -> None:
    """This is true in the range and lines of a summary and in shortened output; session_search can read them."""
    assert other.import_sessions(db.export_all()).ok
    for name in ("s1", "s2", "s3"):
        assert _named(other, name) == _named(db, name)
    assert [name for name, _ in _named(db, "s3")][-3:] == ["s2", "s2", "s2"]
    assert contents(other, "s3") != contents(db, "s3")
    (summary,) = [row["content"] for row in other.get_messages("s3") if row["is_summary"]]
    first, last = (parse_summaries([summary]).first_id, parse_summaries([summary]).last_id)
    assert 77 < first < last
    for number in (first, last):
        assert search(other, "s3", session_id="s1", around_message_id=number)["success"]


def test_an_imported_conversation_that_continues_names_one_range(db: SessionDB, other: SessionDB) -> None:
    """The next summary continues the range of the imported one."""
    other.import_sessions(db.export_all())
    other.append_messages("s3", [said("user", f"And crate {step}? " * 30) for step in range(40)])
    live = other.live_context("s3")
    before = parse_summaries([str(each.message["content"]) for each in live if each.is_summary])
    done = Compressor().compress(live, model=None, window=6_000, session_id="s3", force=True)
    assert isinstance(done, CompressedContext)
    assert (done.first_id, done.last_id > before.last_id) == (before.first_id, True)
    named = [other.get_message(number) or {} for number in (done.first_id, done.last_id)]
    assert [message["session_id"] for message in named] == ["s0", "s3"]


@pytest.mark.parametrize("order", [("all", "all", "last"), ("last", "all", "last", "all")])
def test_a_conversation_that_is_imported_twice_is_stored_once(
    db: SessionDB, other: SessionDB, order: tuple[str, ...]
) -> None:
    """Whether all of it or only its last session is imported, no summary is stored twice."""
    exported = db.export_all()
    for which in order:
        assert other.import_sessions(exported if which == "all" else exported[-1:]).ok
    assert {name: len(other.get_messages(name)) for name in ("s0", "s1", "s2", "s3")} == {
        name: len(db.get_messages(name)) for name in ("s0", "s1", "s2", "s3")
    }
    assert other.import_sessions(exported).messages == 0


def test_coming_back_changes_nothing(db: SessionDB) -> None:
    """Where every number is what it was."""
    before = [contents(db, name) for name in ("s1", "s2", "s3")]
    assert db.import_sessions(db.export_all()).messages == 0
    assert [contents(db, name) for name in ("s1", "s2", "s3")] == before


def test_only_what_surely_is_a_number_of_a_message_is_renumber_references() -> None:
    """Not what was said, not other numbers, and nothing whose message did not come along."""
    new = {number: number + 1_000 for number in range(50) if number != 8}
    header = "It stands for messages 3 to 9."
    body = f"[4] user: row[4], port 4, 4 of 5, [40], from 3 to 5, message 7 and message 12, [8](x), [{'9' * 20}]"
    summary = {"role": "user", "content": f"{header} {body}", "is_summary": 1}
    assert renumber_references(summary, new.get)["content"] == (
        "It stands for messages 1003 to 1009. [1004] user: row[4], port 4, 4 of 5, [40], from 3 to 5, message 1007 "
        f"and message 12, [8](x), [{'9' * 20}]"
    )
    for said_so in (
        {"role": "user", "content": f"{header} {body}"},
        {"role": "user", "content": f"{header} {body}", "copy_of": 4},
        {"role": "user", "content": body, "is_summary": 1},
        {"role": "user", "content": None, "is_summary": 1},
        {"role": "user", "content": [1, {"text": None}], "copy_of": 4},
    ):
        assert renumber_references(said_so, new.get) == said_so
