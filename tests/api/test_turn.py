"""Turns reach an external memory once they are done: after a crash, past a locked file, and never when interrupted."""

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest

import memoranda
from memoranda.errors import SessionError
from memoranda.home import config
from memoranda.support.home import Home
from tests.conftest import Strikes
from tests.external.diary import DIARY, diary_home, told, told_in_time
from tests.external.plugins import add_plugin
from tests.forked import Forked, Say, forking

# Whatever writes the outbox waits ten seconds for its lock.
_LOCK_WAIT = 9.0


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Somebody else is writing the outbox, and does not come to an end."""
    with closing(sqlite3.connect(home / "home.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def _turn(session: memoranda.Session, question: str, answer: str) -> float:
    """One turn; how long the end of it took."""
    with session.turn(question) as turn:
        began = time.monotonic()
        turn.done(answer)
        return time.monotonic() - began


def _lines(home: Path, kind: str) -> list[list[object]]:
    return [line for line in told(home) if line[0] == kind]


@pytest.mark.slow
def test_a_locked_outbox_holds_up_no_reply_and_loses_no_turn(tmp_path: Path) -> None:
    """The turn is delivered as soon as the file is free, by the same session."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory, memory.session() as session:
        _turn(session, "before", "0")
        told_in_time(home, ["turn", "before", "0"])
        with _locked(home):
            assert _turn(session, "first", "one") < _LOCK_WAIT
            began = time.monotonic()
            assert session.remember("Likes tea.")["success"]
            assert time.monotonic() - began < _LOCK_WAIT
        assert _turn(session, "second", "two") < _LOCK_WAIT
        told_in_time(home, ["turn", "second", "two"])
    assert _lines(home, "turn") == [["turn", "before", "0"], ["turn", "first", "one"], ["turn", "second", "two"]]
    assert _lines(home, "write") == [["write", "add", "memory", "Likes tea.", None]]


@pytest.mark.slow
def test_a_session_that_ends_while_the_outbox_is_locked_loses_no_turn(tmp_path: Path) -> None:
    """The next one finds it in the record."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory:
        with memory.session() as session:
            _turn(session, "before", "0")
        with _locked(home), memory.session() as session:
            _turn(session, "first", "one")
        assert ["turn", "first", "one"] not in told(home)
        with memory.session():
            told_in_time(home, ["turn", "first", "one"])
    assert _lines(home, "turn") == [["turn", "before", "0"], ["turn", "first", "one"]]


_CHILD = """
import os, sys, memoranda
with memoranda.open(sys.argv[1]) as memory:
    session = memory.session(session_id="s1")
    with session.turn("first") as turn:
        turn.record("assistant", "I will look.")
        turn.done("one")
    session.turn("interrupted").record("assistant", "I was about to")
    os._exit(9)
"""


@pytest.mark.slow
def test_a_turn_that_was_recorded_before_a_crash_is_delivered_by_the_next_start(tmp_path: Path) -> None:
    """Once, and nothing of the one that was interrupted, although it has an answer of sorts."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory, memory.session() as session:
        _turn(session, "before", "0")
    with _locked(home):
        assert subprocess.run([sys.executable, "-c", _CHILD, str(home)], check=False).returncode == 9
    with memoranda.open(home) as memory:
        for _ in range(2):
            with memory.session() as session:
                _turn(session, "after", "2")
                told_in_time(home, ["turn", "first", "one"], ["turn", "after", "2"])
    assert [line[1] for line in _lines(home, "turn")] == ["before", "first", "after", "after"]


@pytest.mark.slow
def test_an_interrupted_turn_of_a_session_taken_up_again_is_not_in_its_end(tmp_path: Path) -> None:
    """Not even in another process; what is in no turn is."""
    add_plugin(
        tmp_path, "diary",
        DIARY.replace("len(messages))", "[each['content'] for each in messages])")
        .replace("BREAK_START", "pass").replace("BREAK_RECALL", "pass"),
    )  # fmt: skip
    config.set_value(Home.at(tmp_path), "memory.provider", "diary")
    with memoranda.open(tmp_path) as memory, memory.session():
        pass
    with _locked(tmp_path):
        assert subprocess.run([sys.executable, "-c", _CHILD, str(tmp_path)], check=False).returncode == 9
    with memoranda.open(tmp_path) as memory, memory.session(session_id="s1") as session:
        session.record("user", "noted beside")
        _turn(session, "second", "two")
    assert _lines(tmp_path, "end") == [["end", ["first", "I will look.", "one", "noted beside", "second", "two"]]]


@pytest.mark.slow
def test_what_was_said_before_a_provider_was_used_is_not_replayed(tmp_path: Path) -> None:
    """Neither history, nor conversations that are imported with the marks of another home."""
    with memoranda.open(tmp_path / "a") as memory, memory.session() as session:
        _turn(session, "long ago", "yes")
    home = diary_home(tmp_path / "a")
    with memoranda.open(home) as memory:
        with memory.session(session_id="s1") as session:
            _turn(session, "now", "yes")
        exported = memory.sessions.export_session("s1")
    assert [line[1] for line in _lines(home, "turn")] == ["now"]
    other = diary_home(tmp_path / "b")
    with memoranda.open(other) as memory:
        with memory.session():
            pass
        assert exported is not None
        memory.sessions.import_sessions([exported])
        with memory.session() as session:
            _turn(session, "new here", "yes")
    assert [line[1] for line in _lines(other, "turn")] == ["new here"]


@pytest.mark.slow
def test_a_provider_that_could_not_be_loaded_receives_later_what_it_missed(tmp_path: Path) -> None:
    """Turns that were completed while its plugin was broken."""
    home = diary_home(tmp_path)
    source = home / "plugins" / "diary" / "__init__.py"
    whole = source.read_text()
    with memoranda.open(home) as memory:
        with memory.session() as session:
            _turn(session, "first", "1")
        source.write_text("import nonsense_that_is_not_there\n")
        with memory.session() as session:
            _turn(session, "second", "2")
            with session.turn("interrupted"):
                pass
        source.write_text(whole)
        with memory.session() as session:
            _turn(session, "third", "3")
    assert [line[1] for line in _lines(home, "turn")] == ["first", "second", "third"]


def test_a_turn_after_the_end_is_delivered_too(tmp_path: Path) -> None:
    """The same object resumes the session; so does its external memory."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory:
        session = memory.session()
        _turn(session, "first", "one")
        session.end()
        session.remember("Between two lives.")
        _turn(session, "second", "two")
        session.end()
    assert told(home) == [
        ["turn", "first", "one"],
        ["end", 2],
        ["write", "add", "memory", "Between two lives.", None],
        ["turn", "second", "two"],
        ["end", 4],
    ]


def test_a_turn_is_done_once(tmp_path: Path) -> None:
    """A second answer is an error, and neither recorded nor delivered."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory, memory.session() as session:
        with session.turn("first") as turn:
            turn.done("one")
            with pytest.raises(SessionError, match="is done"):
                turn.done("one")
        assert len(memory.sessions.get_messages(session.id)) == 2
    assert _lines(home, "turn") == [["turn", "first", "one"]]


@pytest.mark.slow
def test_a_turn_of_pictures_is_delivered_and_an_empty_session_is_not(tmp_path: Path) -> None:
    """With the text that there is, which is none; a session in which nothing was completed has no end to tell of."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory:
        with memory.session() as session, session.turn([{"type": "image_url", "image_url": {"url": "data:"}}]) as turn:
            turn.done("A cat.")
        with memory.session():
            pass
        with memory.session() as session, session.turn("interrupted"):
            pass
    assert told(home) == [["turn", "", "A cat."], ["end", 2]]


def test_what_marks_a_turn_is_in_no_message_that_a_model_sees(tmp_path: Path) -> None:
    """And without a provider there is no mark at all."""
    home = diary_home(tmp_path / "a")
    with memoranda.open(home) as memory, memory.session() as session:
        _turn(session, "first", "one")
        assert "memoranda" not in str(session.turn("second").messages)
    with memoranda.open(tmp_path / "b") as memory, memory.session() as session:
        _turn(session, "first", "one")
        assert "memoranda" not in str(memory.sessions.get_messages(session.id))


def _talk(home: Path, name: str, say: Say) -> None:
    """Finish a turn and interrupt another, again and again, and say "." for each that was done."""
    with memoranda.open(home) as memory:
        session = memory.session(session_id=name)
        for number in count():
            with session.turn(f"{name}-{number}") as turn:
                turn.done("answer")
            say(b".")
            session.turn(f"{name}-interrupted-{number}").record("assistant", "half an")


@pytest.mark.slow
@forking
def test_many_kills_between_recording_and_queueing_lose_no_turn(tmp_path: Path, strikes: Strikes) -> None:
    """Every turn that was answered for arrives once and in order, and none that was interrupted."""
    home = diary_home(tmp_path)
    chance = random.Random(5)
    answered: dict[str, int] = {}
    kills = strikes(80)
    for number in range(kills):
        name = f"s{number}"
        talking = Forked(partial(_talk, home, name))
        said = b""
        for _ in range(chance.randint(1, 4)):
            said += talking.heard()
        time.sleep(chance.uniform(0, 0.01))
        answered[name] = len(said + talking.kill())
    config.set_value(Home.at(home), "provider.begin_seconds", "10")
    with memoranda.open(home) as memory, memory.session() as session:
        group = session.external._group
        assert group is not None
        assert group.managers[0].drain(60)
    turns = [str(line[1]) for line in _lines(home, "turn")]
    assert not [turn for turn in turns if "interrupted" in turn]
    for name, acknowledged in answered.items():
        own = [turn for turn in dict.fromkeys(turns) if turn.startswith(f"{name}-")]
        assert own == [f"{name}-{number}" for number in range(len(own))]
        assert acknowledged <= len(own) <= acknowledged + 1
    # Killed between a delivery and the note of it: that one comes again, with the same key.
    assert len(turns) - len(set(turns)) <= kills
