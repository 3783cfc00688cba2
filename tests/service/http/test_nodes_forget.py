"""Services on several nodes over one record: what one node forgets, or moves away, leaves the index files of all."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import memoranda
from memoranda.home.shards.placement import shard_of
from memoranda.memory.record.feed import user_name
from memoranda.support.home import server_index_path
from tests.cli.terminal import Terminal
from tests.service.http.running_service import RunningService, run_service
from tests.storage.postgres.servers import Server
from tests.timing import GIVE_UP, wait_until


def _home(root: Path, *urls: str) -> Path:
    first, *others = urls
    root.mkdir()
    (root / "config.yaml").write_text(
        f"store:\n  url: {first}\n  servers: [{', '.join(others)}]\nsearch:\n  index: user\n"
    )
    return root


def _bytes(home: Path) -> bytes:
    """Every byte of the index directories of a home."""
    found = b""
    for file in home.glob("server-*.index.users/*"):
        with suppress(FileNotFoundError):
            found += file.read_bytes()
    return found


def _say(home: Path, user: str, *texts: str) -> None:
    with memoranda.open(home) as memory:
        sessions = memory.for_user(user).sessions
        sessions.create_session(f"of-{user}", "cli", user_id=user)
        for text in texts:
            sessions.append_message(f"of-{user}", "user", text)


def _search(node: RunningService, user: str) -> None:
    """Let a node build the index file of a user."""
    client = node.client(node.key(user=user))
    wait_until(lambda: client.post("/v1/search", json={"query": "heron"}).json()["count"] == 1)


@pytest.mark.slow
def test_a_text_that_one_node_forgets_leaves_the_other(postgres_url: str, tmp_path: Path) -> None:
    """While the other serves, although nobody searches there; and the report says what it cannot know."""
    one, two = (_home(tmp_path / name, postgres_url) for name in ("one", "two"))
    _say(one, "ann", "the heron has zorblatt", "the otter has plimforth")
    _say(one, "bob", "the heron has no port")
    with run_service(two) as node:
        for user in ("ann", "bob"):
            _search(node, user)
        assert b"zorblatt" in _bytes(two) and b"plimforth" in _bytes(two)
        report = Terminal(one).json("forget", "zorblatt", "--user", "ann", "--yes")
        assert report["complete"]
        assert any("Other nodes" in note and "cannot read" in note for note in report["notes"])
        wait_until(lambda: b"zorblatt" not in _bytes(two))
        assert b"plimforth" in _bytes(two)
        Terminal(one).json("forget", "--user", "ann", "--yes")
        wait_until(lambda: not list(two.glob(f"*.index.users/{user_name('ann')}*")))
        assert list(two.glob(f"*.index.users/{user_name('bob')}*"))


@pytest.mark.slow
def test_a_node_that_was_killed_forgets_after_its_next_start(postgres_url: str, tmp_path: Path) -> None:
    """Before any user comes: the service opens the record because it has indexes of it."""
    one, two = (_home(tmp_path / name, postgres_url) for name in ("one", "two"))
    _say(one, "ann", "the heron has zorblatt")
    script = (
        "import sys, time, memoranda\n"
        "memory = memoranda.open(sys.argv[1])\n"
        "while not memory.for_user('ann').search('heron')['count']: time.sleep(0.01)\n"
        "print('found', flush=True)\n"
        "time.sleep(300)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(two)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "found\n"
        os.kill(process.pid, signal.SIGKILL)
        process.wait(GIVE_UP)
    assert b"zorblatt" in _bytes(two)
    assert Terminal(one).json("forget", "zorblatt", "--user", "ann", "--yes")["complete"]
    assert b"zorblatt" in _bytes(two)
    with run_service(two):
        wait_until(lambda: b"zorblatt" not in _bytes(two))


@pytest.mark.slow
@pytest.mark.usefixtures("short_settling")
@pytest.mark.parametrize("is_running", [True, False])
def test_the_files_of_a_user_who_moves_to_another_store_vanish(
    postgres_server: Server, tmp_path: Path, is_running: bool
) -> None:
    """From the directory of the old store, on a node that runs and on one that starts later."""
    with postgres_server.schema() as first, postgres_server.schema() as second:
        one, two = (_home(tmp_path / name, first, second) for name in ("one", "two"))
        _say(one, "ann", "the heron has zorblatt")
        old = server_index_path(two, first).with_suffix(".users")
        with run_service(two) as node:
            _search(node, "ann")
            assert list(old.glob(f"{user_name('ann')}*"))
            if is_running:
                Terminal(one).json("shards", "move", str(shard_of("ann")), "--to", "1")
                wait_until(lambda: not list(old.glob(f"{user_name('ann')}*")))
                _search(node, "ann")
        if not is_running:
            Terminal(one).json("shards", "move", str(shard_of("ann")), "--to", "1")
            assert list(old.glob(f"{user_name('ann')}*"))
            with run_service(two):
                wait_until(lambda: not list(old.glob(f"{user_name('ann')}*")))
