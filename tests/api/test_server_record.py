"""A home whose record is on a PostgreSQL server."""

import subprocess
import sys
from pathlib import Path

import pytest

import memoranda
from memoranda.errors import ConfigError, StorageError, StoreUnavailableError
from memoranda.home.config import load, record_location
from memoranda.support.home import Home
from tests.timing import without_waiting

pytestmark = pytest.mark.slow


@pytest.mark.smoke
def test_two_homes_with_one_server_share_a_record(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each node keeps only its own index; what one records, the other finds."""
    monkeypatch.setenv("MEMORANDA_STORE", postgres_url)
    with memoranda.open(tmp_path / "one") as one, memoranda.open(tmp_path / "two") as two:
        with one.session(source="cli") as session, session.turn("How did we fix the deadlock?") as turn:
            turn.done("We took the lock first.")
        (found,) = two.search("deadlock")["results"]
        assert found["session_id"] == session.id
    assert not (tmp_path / "one" / "state.db").exists()
    assert not (tmp_path / "two" / "state.db").exists()
    assert list((tmp_path / "two").glob("server-*.index.db.*"))


def test_the_setting_names_the_server_and_the_secrets_its_password(tmp_path: Path) -> None:
    """The password is a secret, and config.yaml is not the place for one."""
    home = Home.at(tmp_path)
    (tmp_path / "config.yaml").write_text("store:\n  url: postgresql://memo@db.example/memory\n")
    assert record_location(home, load(home)) == "postgresql://memo@db.example/memory"
    (tmp_path / ".env").write_text("MEMORANDA_STORE_PASSWORD='p@ss/word'\n")
    assert record_location(home, load(home)) == "postgresql://memo:p%40ss%2Fword@db.example/memory"


def test_no_command_shows_a_password(tmp_path: Path) -> None:
    """Lists and errors show the address without it."""
    home = Home.at(tmp_path)
    (tmp_path / "config.yaml").write_text("store:\n  url: postgresql://memo:hunter22@db.example/memory\n")
    for command in (["config", "list"], ["config", "get", "store.url"], ["config", "list", "--json"]):
        arguments = [sys.executable, "-m", "memoranda", *command, "--home", str(tmp_path)]
        shown = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
        assert "db.example" in shown
        assert "hunter22" not in shown
    (tmp_path / "config.yaml").write_text("store:\n  url: mysql://memo:hunter22@db.example/memory\n")
    with pytest.raises(ConfigError) as refused:
        load(home)
    assert "hunter22" not in str(refused.value)


def test_an_unreachable_server_is_an_error_in_bounded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the server and what to do, without the password; nothing is recorded anywhere else."""
    monkeypatch.setenv("MEMORANDA_STORE", "postgresql://memo:hunter22@127.0.0.1:9/memory")
    with without_waiting(), memoranda.open(tmp_path) as memory, pytest.raises(StoreUnavailableError) as refused:
        memory.sessions.create_session("s", "cli")
    assert "127.0.0.1:9/memory cannot be reached" in str(refused.value)
    assert "store.url" in str(refused.value)
    assert "hunter22" not in str(refused.value)
    assert not (tmp_path / "state.db").exists()


def test_a_missing_database_is_named(postgres_url: str) -> None:
    """The server's own words say which database does not exist."""
    with pytest.raises(StorageError, match='database "nothing" does not exist'):
        memoranda.SessionDB(postgres_url.replace("/postgres?", "/nothing?"))


def test_a_home_without_a_server_loads_no_driver(tmp_path: Path) -> None:
    """psycopg is an extra, and loading it takes longer than most commands."""
    script = f"""
import sys, memoranda
with memoranda.open({str(tmp_path)!r}) as memory:
    memory.sessions.create_session("s", "cli")
    memory.search("anything")
assert not [name for name in sys.modules if name.startswith("psycopg")]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
