"""Each turn in the spool of a home is recorded once, whatever happened to the process that wrote it."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.importers.hermes.reader import Hermes
from memoranda.importers.importer import Importer
from memoranda.integrations.hooks.capture import record_turns
from memoranda.integrations.hooks.events import spool_directory, waiting_turns
from memoranda.support.home import Home
from tests.importers.hermes.homes import HermesHome
from tests.importers.openclaw.material import EVENTS, SESSION, write_database


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.at(tmp_path / "memory")


def _spool(home: Home, session_id: str, *texts: str, host: str = "hermes", **fields: Any) -> Path:
    directory = spool_directory(home.root, host)
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{time.time_ns():020d}.json"
    roles = ("user", "assistant")
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    file.write_text(json.dumps({"session_id": session_id, "at": time.time(), "messages": messages, **fields}))
    return file


def _texts(home: Home, session: str, user: str | None = None) -> list[str]:
    with memoranda.open(home.root, user=user) as memory:
        return [row["content"] for row in memory.sessions.get_messages(session)]


def test_a_session_is_imported_from_the_host_s_own_database(home: Home, tmp_path: Path) -> None:
    """Only that session is imported, completely; an import adds nothing twice, and the next turn adds only itself."""
    hermes = HermesHome(tmp_path / "hermes")
    for name in ("mine", "other"):
        hermes.say(hermes.session(name), f"question of {name}", f"answer of {name}")
    _spool(home, "mine", "question of mine", "answer of mine", database=str(hermes.database))
    assert record_turns(home, "hermes", None) == 1
    assert waiting_turns(home.root, "hermes") == []
    assert _texts(home, "hermes-mine") == ["question of mine", "answer of mine"]
    with memoranda.open(home.root) as memory:
        assert [row["id"] for row in memory.sessions.list_sessions_rich()] == ["hermes-mine"]
        summary = Importer(home.root, memory.sessions).apply(Hermes(), Hermes().scan(hermes.root))
    assert (summary.messages, summary.messages_known) == (2, 2)
    hermes.say("mine", "again", "yes")
    _spool(home, "mine", "again", "yes", database=str(hermes.database))
    record_turns(home, "hermes", None)
    assert _texts(home, "hermes-mine") == ["question of mine", "answer of mine", "again", "yes"]


def test_a_session_in_openclaw_s_database_is_imported(home: Home, tmp_path: Path) -> None:
    """Only that session is imported, with its tool calls."""
    database = write_database(tmp_path / "openclaw", EVENTS)
    _spool(home, SESSION, "Where is the anchor?", host="openclaw", database=str(database))
    assert record_turns(home, "openclaw", None) == 1
    assert _texts(home, f"openclaw-{SESSION}")[0] == "Where is the anchor?"
    assert len(_texts(home, f"openclaw-{SESSION}")) > 2


@pytest.mark.parametrize("database", [None, "missing", "without the session"])
def test_a_turn_that_the_host_does_not_store_is_recorded_as_the_plugin_wrote_it(
    database: str | None, home: Home, tmp_path: Path
) -> None:
    """It is recorded once, even when the process was killed before it could delete the file."""
    path = str(tmp_path / "missing.db")
    if database == "without the session":
        path = str(HermesHome(tmp_path / "hermes").database)
    file = _spool(home, "s1", "Which port?", "5433.", **({} if database is None else {"database": path}))
    content = file.read_bytes()
    assert record_turns(home, "hermes", None) == 1
    file.write_bytes(content)
    assert record_turns(home, "hermes", None) == 1
    assert _texts(home, "hermes-s1") == ["Which port?", "5433."]


def test_a_database_that_cannot_be_read_makes_the_turn_wait(home: Home, tmp_path: Path) -> None:
    """It waits for an hour; then the text that the plugin wrote is recorded."""
    broken = tmp_path / "state.db"
    broken.write_bytes(b"no database" * 100)
    _spool(home, "s1", "Which port?", "5433.", database=str(broken))
    assert record_turns(home, "hermes", None) == 0
    assert len(waiting_turns(home.root, "hermes")) == 1
    _spool(home, "s2", "Which port?", "5433.", database=str(broken), at=time.time() - 4000)
    assert record_turns(home, "hermes", None) == 1
    assert _texts(home, "hermes-s2") == ["Which port?", "5433."]


def test_a_file_that_is_not_a_turn_is_renamed_and_does_not_stop_others(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """Its content stays under another name."""
    for text in ("{", "[]", '{"session_id": 3}'):
        _spool(home, "x").write_text(text)
    _spool(home, "s1", "Which port?", "5433.")
    assert record_turns(home, "hermes", None) == 1
    assert len(list(spool_directory(home.root, "hermes").glob("*.unreadable"))) == 3
    assert "was renamed" in caplog.text


def test_each_turn_goes_to_its_own_user(home: Home) -> None:
    """No user sees the turn of another one."""
    _spool(home, "s1", "mine", "yes")
    _spool(home, "s2", "theirs", "yes", user="telegram:7")
    assert record_turns(home, "hermes", None) == 2
    for user, said in ((None, "mine"), ("telegram:7", "theirs")):
        with memoranda.open(home.root, user=user) as memory:
            (session,) = memory.sessions.list_sessions_rich()
            assert memory.sessions.get_messages(session["id"])[0]["content"] == said


def test_a_session_that_was_deleted_here_stays_deleted(home: Home) -> None:
    """A further turn does not restore it."""
    _spool(home, "s1", "Which port?", "5433.")
    record_turns(home, "hermes", None)
    with memoranda.open(home.root) as memory:
        memory.sessions.delete_session("hermes-s1")
    _spool(home, "s1", "again", "yes")
    assert record_turns(home, "hermes", None) == 1
    with memoranda.open(home.root) as memory:
        assert memory.sessions.list_sessions_rich() == []
