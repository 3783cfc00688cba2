"""A home that is copied to a server and back is the same, byte by byte."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import memoranda
from memoranda.errors import StorageError
from memoranda.memory.curated import change_history
from memoranda.memory.curated.operations import Add
from memoranda.memory.record.record import open_record
from memoranda.support.home import Home
from memoranda.support.origin import PERSON, Origin
from memoranda.upkeep.migration import tables
from memoranda.upkeep.migration.migrate import TABLES, migrate_to_files, migrate_to_server

LONG_USER = "Ü" * 90


def _ignore(what: str, done: int, total: int) -> None:
    """Progress is not of interest."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with conversations, items and memories of several users, hostile texts included."""
    root = tmp_path / "home"
    for user in (None, "alice", LONG_USER):
        with memoranda.open(root, user=user) as memory:
            for number in range(3):
                with memory.session(source="cli") as session, session.turn(f"Question {number}\0 for {user}") as turn:
                    turn.done("An answer with 🗝 and \x1a0.")
            memory.remember(f"A fact of {user}.")
            memory.remember("Another.", "user")
            change_history.undo(memory.curated, None, PERSON)
            memory.curated.proposals.add("memory", [Add("x")], Origin("agent"), [None])
    with memoranda.open(root) as memory:
        memory.sessions.create_session("deleted", "cli")
        memory.sessions.append_message("deleted", "user", "Not any more.")
        memory.sessions.delete_sessions(["deleted"])
    (root / "memories" / "MEMORY.md").write_bytes("by hand\n\n§\n other ".encode())
    os.utime(root / "memories" / "MEMORY.md", (1_700_000_000, 1_700_000_000))
    return Home.at(root)


def _memories(root: Path) -> dict[str, bytes]:
    files = (path for path in sorted((root / "memories").rglob("*")) if path.is_file() and path.name != ".lock")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


@pytest.mark.smoke
def test_a_home_comes_back_from_a_server_as_it_was(home: Home, tmp_path: Path, postgres_url: str) -> None:
    """Ids, times, titles, deleted sessions, entries, journal and proposals: every value and every byte."""
    there = migrate_to_server(home, postgres_url, _ignore)
    back = Home.at(tmp_path / "back")
    again = migrate_to_files(postgres_url, back, _ignore)
    assert there == again and there.memories == 3 and there.tables["messages"] > 10
    assert _memories(back.root) == _memories(home.root)
    assert (back.memories() / "MEMORY.md").stat().st_mtime == 1_700_000_000
    one, two = open_record(home.state_db), open_record(back.state_db)
    for copied in TABLES:
        tables.compare_table(one, two, copied, _ignore)
    one.close()
    two.close()


def test_a_copied_home_continues_on_the_server(home: Home, postgres_url: str, tmp_path: Path) -> None:
    """New messages get new ids, and memory and search know the old ones."""
    migrate_to_server(home, postgres_url, _ignore)
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "config.yaml").write_text(f"store:\n  url: {postgres_url}\n")
    with memoranda.open(tmp_path / "node") as memory:
        assert memory.entries() == ("by hand", "other")
        with memory.session(source="cli") as session, session.turn("A new question") as turn:
            turn.done("A new answer.")
        assert len(memory.search("question", limit=10)["results"]) >= 3


def test_an_interrupted_copy_is_continued(home: Home, postgres_url: str) -> None:
    """Killed after any batch, the next run copies the rest and verifies everything."""

    class Killed(Exception):
        """In place of a signal."""

    def stop(what: str, done: int, total: int) -> None:
        if what == "messages":
            raise Killed

    with pytest.raises(Killed):
        migrate_to_server(home, postgres_url, stop)
    assert migrate_to_server(home, postgres_url, _ignore).tables["messages"] > 10


@pytest.mark.slow
def test_the_command_is_continued_after_kill_9(home: Home, postgres_url: str) -> None:
    """Killed at any time, the same command completes the copy, and says what it copied."""
    with memoranda.open(home.root) as memory:
        memory.sessions.create_session("long", "cli")
        for start in range(0, 6_000, 1_000):
            texts = [{"role": "user", "content": f"message {start + number}"} for number in range(1_000)]
            memory.sessions.append_messages("long", texts)
    command = [sys.executable, "-m", "memoranda", "migrate", f"sqlite:{home.root}", postgres_url, "--json"]
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.2)
        process.kill()
        process.wait()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "not empty" not in done.stdout + done.stderr:
        assert json.loads(done.stdout)["tables"]["messages"] > 6_000, done.stderr
    one, two = open_record(home.state_db), open_record(postgres_url)
    everyone = two.acting_for(None, everyone=True)
    for copied in TABLES:
        tables.compare_table(one, everyone, copied, _ignore)
    one.close()
    two.close()


def test_a_target_with_other_content_is_refused(home: Home, postgres_url: str) -> None:
    """Nothing is mixed, and nothing is overwritten."""
    migrate_to_server(home, postgres_url, _ignore)
    with pytest.raises(StorageError, match="not empty"):
        migrate_to_server(home, postgres_url, _ignore)


def test_a_difference_is_found(home: Home, postgres_url: str) -> None:
    """A source that changes during the copy is not called copied."""

    def change(what: str, done: int, total: int) -> None:
        if what == "verifying sessions":
            with memoranda.open(home.root) as memory:
                memory.sessions.create_session("meanwhile", "cli")

    with pytest.raises(StorageError, match="differs"):
        migrate_to_server(home, postgres_url, change)
