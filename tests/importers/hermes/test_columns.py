"""What Hermes records about a session arrives in the same columns here, and stays with the same user."""

import json
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.importers.hermes.reader import Hermes
from memoranda.memory.record.scope import Scope
from tests.cli.terminal import Terminal
from tests.external.diary import diary_home
from tests.importers.hermes.homes import HermesHome
from tests.importers.hermes.import_check import differences
from tests.importers.import_home import Home

pytestmark = pytest.mark.slow

# Writes down the facts of every start.
KEEP_FACTS = "facts.pop('secrets'); (Path(facts['hermes_home']) / 'facts.json').write_text(json.dumps(facts))"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def hermes(tmp_path: Path) -> HermesHome:
    return HermesHome(tmp_path / ".hermes")


def test_columns_are_the_same_here(home: Home, hermes: HermesHome) -> None:
    """Source, tokens, settings, prompt, end and archived flag; the check sees a column that differs."""
    hermes.session("s1", source="cron", model="opus", model_config='{"temperature": 1}', system_prompt="You are X",
                   input_tokens=7, ended_at=1_794_734_999.5, end_reason="done", archived=1)  # fmt: skip
    hermes.say("s1", "one", "two")
    home.take(Hermes(), hermes.root)
    assert list(differences(hermes.database, home.root / "state.db")) == []
    hermes.execute("UPDATE sessions SET input_tokens = 8")
    hermes.execute("UPDATE messages SET content = 'three' WHERE content = 'two'")
    assert len(list(differences(hermes.database, home.root / "state.db"))) == 2
    assert home.store.listing.list_sessions_rich() == []


def test_what_changes_later_in_hermes_changes_here(home: Home, hermes: HermesHome) -> None:
    """Tokens, the end and the archived flag of a session without new messages; what happened here stays."""
    hermes.session("s1", input_tokens=7)
    hermes.say("s1", "one")
    home.take(Hermes(), hermes.root)
    home.store.usage.update_token_counts("hermes-s1", input_tokens=100)
    hermes.execute("UPDATE sessions SET input_tokens = 9, ended_at = 5.0, end_reason = 'done', archived = 1")
    home.take(Hermes(), hermes.root)
    row = home.everything()["hermes-s1"]
    assert (row["input_tokens"], row["ended_at"], row["end_reason"], row["archived"]) == (107, 5.0, "done", 1)
    home.store.sessions.reopen_session("hermes-s1")
    hermes.execute("UPDATE sessions SET ended_at = 6.0")
    home.take(Hermes(), hermes.root)
    assert home.everything()["hermes-s1"]["ended_at"] is None


def test_the_chat_of_a_gateway_is_known_when_the_session_is_resumed(tmp_path: Path, hermes: HermesHome) -> None:
    """A provider that separates chats gets the same names as from a gateway of our own."""
    hermes.session("s1", source="telegram", user_id="42", chat_id="-5")
    hermes.say("s1", "one", "two")
    with memoranda.open(diary_home(tmp_path / "home", KEEP_FACTS), user="42") as memory:
        Terminal(memory.home.root).ok("import", "hermes", "--source", str(hermes.root), "--yes")
        row = memory.sessions.get_session("hermes-s1")
        assert row is not None and row["gateway"] == {"platform": "telegram", "chat_id": "-5"}
        memory.session(source="cli", session_id="hermes-s1").end()
    facts = json.loads((tmp_path / "home" / "facts.json").read_text())
    assert (facts["platform"], facts["chat_id"], facts["user_id"]) == ("telegram", "-5", "42")


def test_conversations_of_other_users_stay_with_them(home: Home, hermes: HermesHome) -> None:
    """Also the sub-agents that worked for them; the owner's own view shows neither, and two users may use one title."""
    hermes.session("mine", title="Plans")
    hermes.session("hers", source="telegram", user_id="42", title="Plans")
    hermes.session("helper", source="subagent", parent_session_id="hers")
    for name in ("mine", "hers", "helper"):
        hermes.say(name, f"in {name}")
    owner = home.store.scoped(Scope.of(None))
    home.store = owner
    home.take(Hermes(), hermes.root)
    home.take(Hermes(), hermes.root, rescan=True)
    assert [row["id"] for row in owner.listing.list_sessions_rich()] == ["hermes-mine"]
    assert owner.messages.get_messages("hermes-hers") == []
    hers = owner.scoped(Scope.of("42"))
    assert [message["content"] for message in hers.messages.get_messages("hermes-hers")] == ["in hers"]
    assert [message["content"] for message in hers.messages.get_messages("hermes-helper")] == ["in helper"]
    assert hers.titles.get_session_title("hermes-hers") == "Plans"


def test_a_session_that_gets_a_user_later_moves_to_that_user(home: Home, hermes: HermesHome) -> None:
    """Its columns are those that Hermes has now, and its messages stay: nothing is added twice."""
    hermes.session("s1", source="telegram")
    hermes.say("s1", "one", "two")
    home.take(Hermes(), hermes.root)
    hermes.execute("UPDATE sessions SET user_id = '42', input_tokens = 7, end_reason = 'done', ended_at = 5.0")
    summary = home.take(Hermes(), hermes.root, rescan=True)
    row: dict[str, Any] = home.everything()["hermes-s1"]
    assert (row["source"], row["user_id"], row["input_tokens"], row["end_reason"]) == ("telegram", "42", 7, "done")
    assert [message["content"] for message in row["messages"]] == ["one", "two"]
    assert summary.messages == 0


def test_hidden_sources_stay_hidden_in_the_list(tmp_path: Path, hermes: HermesHome) -> None:
    """Unless the list is asked for them, or for everything."""
    for source in ("cli", "tool", "subagent"):
        hermes.say(hermes.session(f"from-{source}", source=source), "hello")
    home = Home(tmp_path / "home")
    home.take(Hermes(), hermes.root)
    home.store.close()
    terminal = Terminal(tmp_path / "home")
    assert [row["source"] for row in terminal.json("sessions", "list")["sessions"]] == ["cli"]
    assert [row["source"] for row in terminal.json("sessions", "list", "--source", "tool")["sessions"]] == ["tool"]
    assert len(terminal.json("sessions", "list", "--everything")["sessions"]) == 3
