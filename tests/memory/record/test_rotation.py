"""Going on in a new session is all or nothing for every process, and no damage takes more than it must."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.memory.record.copies import LOST
from memoranda.memory.record.health import salvage
from memoranda.memory.record.rotation import ContextItem, KeptMessage, NotRotated, Rotated, Summary
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.support.home import Home
from memoranda.upkeep.doctor import examine
from tests.conftest import Strikes
from tests.contracts.store.assertions import contents, say
from tests.contracts.store.rotation import begin, rotate
from tests.forked import forking

KEPT = 4


def _context(store: SessionStore, name: str) -> tuple[list[ContextItem], int]:
    live = store.rotation.live_context(name)
    items: list[ContextItem] = [KeptMessage(live[0].id), Summary(f"What was said in {name}.")]
    return [*items, *(KeptMessage(each.id) for each in live[-KEPT:])], live[-1].id


def _rotate_until_killed(path: Path, name: int, pipe: int) -> None:
    """Rotate one session after the other until the process is killed; report which were acknowledged."""
    store = open_store(path, wait=60)
    number = 0
    while True:
        old, new = f"{name}-{number}", f"{name}-{number + 1}"
        if number == 0:
            store.sessions.create_session(old, "cli", title=f"Round {name}")
            say(store, old, *(f"{name} says {each}" for each in range(10)))
        items, last = _context(store, old)
        store.rotation.rotate_session(old, new, items, last_seen=last, system_prompt=f"prompt of {new}")
        os.write(pipe, b".")
        say(store, new, f"said in {new}")
        number += 1


def _is_whole(store: SessionStore, name: str) -> None:
    """A continuation is linked, titled, prompted and complete."""
    session = store.sessions.get_session(name)
    assert session is not None
    parent = store.sessions.get_session(session["parent_session_id"])
    assert parent is not None
    assert (parent["successor_id"], parent["end_reason"]) == (name, "compression")
    assert (session["relation"], session["system_prompt"]) == ("compression", f"prompt of {name}")
    started, _, number = name.partition("-")
    assert session["title"] == f"Round {started} #{int(number) + 1}"
    live = store.rotation.live_context(name)
    assert [each.is_summary for each in live[: KEPT + 2]] == [False, True, *[False] * KEPT]
    assert all(each.message["content"] for each in live)


@pytest.mark.slow
@forking
def test_many_kills_leave_no_half_rotation(path: Path, strikes: Strikes) -> None:
    """After each kill -9 the old session is open and unchanged, or the new one is complete."""
    chance = random.Random(7)
    open_store(path).close()
    for name in range(strikes(100)):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                _rotate_until_killed(path, name, writer)
            finally:
                os._exit(1)
        os.close(writer)
        os.read(reader, 1)
        time.sleep(chance.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        acknowledged = 1 + len(os.read(reader, 1_000_000))
        os.close(reader)
        with open_store(path) as store:
            chain = store.lineage.get_compression_lineage(f"{name}-0")
            assert chain == [f"{name}-{number}" for number in range(len(chain))]
            assert acknowledged <= len(chain) - 1 <= acknowledged + 1
            for each in chain[1:]:
                _is_whole(store, each)
            tip = store.sessions.get_session(chain[-1])
            assert tip is not None
            assert (tip["ended_at"], tip["successor_id"]) == (None, None)
    with open_store(path) as store:
        assert store.maintenance.miscounted_sessions() == []
        assert store.maintenance.lost_repetitions() == []
        assert store.maintenance.check_integrity() == []


_RACE = """
import sys, time
from pathlib import Path
from memoranda.memory.record.rotation import Lease, KeptMessage, Rotated, Summary
from memoranda.memory.record.store import SessionStore, open_store
path, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with open_store(path, wait=60) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    won = leases = 0
    for number in range(rounds):
        session = f"race {number}"
        leases += isinstance(store.rotation.take_compression_lease(session, name), Lease)
        live = store.rotation.live_context(session)
        done = store.rotation.rotate_session(session, f"{session} by {name}", [Summary(name), KeptMessage(live[-1].id)],
                                    last_seen=live[-1].id)
        won += isinstance(done, Rotated)
    print(won, leases, flush=True)
"""


@pytest.mark.slow
def test_of_two_processes_that_race_one_rotates(path: Path) -> None:
    """Every session has one child; the other process learns which."""
    rounds = 60
    with open_store(path) as store:
        for number in range(rounds):
            store.sessions.create_session(f"race {number}", "cli", title=f"Race {number}")
            say(store, f"race {number}", "1", "2")
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACE, str(path), name, str(rounds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("one", "two")
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    answers = [racer.communicate("go\n")[0].split() for racer in racers]
    assert sum(int(won) for won, _ in answers) == rounds
    with open_store(path) as store:
        assert store.listing.session_count() == 2 * rounds
        for number in range(rounds):
            chain = store.lineage.get_compression_lineage(f"race {number}")
            assert len(chain) == 2
            assert store.titles.get_session_title(chain[1]) == f"Race {number} #2"
        assert store.maintenance.miscounted_sessions() == []


def test_an_append_in_the_meantime_wins(store: SessionStore, path: Path) -> None:
    """A message that arrives while the session is being summarised is not lost."""
    begin(store, "a", "1", "2")
    items, last = _context(store, "a")
    with open_store(path) as other:
        other.messages.append_message("a", "user", "meanwhile")
    assert store.rotation.rotate_session("a", "b", items, last_seen=last) == NotRotated("changed")
    items, last = _context(store, "a")
    assert isinstance(store.rotation.rotate_session("a", "b", items, last_seen=last), Rotated)
    assert "meanwhile" in contents(store, "b")


@pytest.mark.slow
def test_a_row_that_refers_is_small(store: SessionStore, path: Path) -> None:
    """A repeated megabyte is not a second megabyte in the file."""
    store.sessions.create_session("a", "cli")
    for number in range(20):
        store.messages.append_message("a", "tool", f"{number}" * 50_000)
    with open_store(path):
        pass
    store.deletion.vacuum()
    before = path.stat().st_size
    for old, new in ("ab", "bc", "cd"):
        rotate(store, old, new, 20)
    store.deletion.vacuum()
    assert path.stat().st_size - before < 100_000
    assert len(str(contents(store, "d")[-1])) == 100_000


# An original that another program deleted: its copies have the text, unless that program removed it, too.
_lost_originals = pytest.mark.parametrize(
    ("statement", "remaining"),
    [("SELECT 1", "1"), ("UPDATE messages SET content = NULL WHERE content = '1'", LOST)],
    ids=["with text", "without text"],
)


def _delete_original(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM messages WHERE content = '1' AND copy_of IS NULL")
        connection.execute(statement)
        connection.execute("UPDATE sessions SET message_count = 1 WHERE id = 'a'")
        connection.commit()


@_lost_originals
def test_copies_without_an_original_are_reported_and_repaired(tmp_path: Path, statement: str, remaining: str) -> None:
    """The repair makes them originals, or says that the message is lost, and nothing else changes."""
    home = Home.at(tmp_path / "home")
    with open_store(home.state_db) as store:
        begin(store, "a", "1", "2")
        rotate(store, "a", "b")
    _delete_original(home.state_db, statement)
    (finding,) = [each for each in examine(home) if "copies" in each.problem]
    assert finding.repair is not None
    finding.repair()
    assert [each.problem for each in examine(home) if each.path == home.state_db] == []
    with open_store(home.state_db) as store:
        assert contents(store, "b") == ["In short.", remaining, "2"]
        rotate(store, "b", "c", 2)
        assert contents(store, "c") == ["In short.", remaining, "2"]
        assert store.maintenance.miscounted_sessions() == []


@_lost_originals
def test_a_continuation_keeps_what_remains_of_a_lost_message(
    store: SessionStore, path: Path, statement: str, remaining: str
) -> None:
    """A continuation and a branch of a session whose original another program has deleted have its text, or a note."""
    begin(store, "a", "1", "2")
    rotate(store, "a", "b")
    _delete_original(path, statement)
    store.rotation.branch_session("b", "c")
    rotate(store, "b", "d", 2)
    assert contents(store, "c")[1:] == contents(store, "d")[1:] == [remaining, "2"]
    store.maintenance.recount_sessions(["a"])
    assert store.maintenance.miscounted_sessions() == []


@_lost_originals
def test_salvaging_keeps_rows_that_refer(
    store: SessionStore, path: Path, tmp_path: Path, statement: str, remaining: str
) -> None:
    """With what they refer to, with their own text, or with a note in place of what is lost."""
    begin(store, "a", "1", "2")
    rotate(store, "a", "b")
    store.close()
    _delete_original(path, statement)
    salvage(path, tmp_path / "damaged")
    with open_store(path) as saved:
        assert contents(saved, "b") == ["In short.", remaining, "2"]
        assert saved.maintenance.lost_repetitions() == []
        assert saved.maintenance.miscounted_sessions() == []
