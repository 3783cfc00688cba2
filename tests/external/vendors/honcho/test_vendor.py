"""Honcho's provider stores turns as its server needs them, and keeps users apart.

Honcho's provider deletes what it has sent, and nothing else.
"""

from pathlib import Path

import pytest

from memoranda.errors import TemporaryProviderError
from memoranda.external.vendors.honcho.vendor import HonchoProvider
from tests.external.vendors.honcho.double import HonchoDouble
from tests.external.vendors.honcho.home import ASSISTANT, SESSION, Home, call_tool, send_turn

pytestmark = pytest.mark.slow


def test_a_turn_is_two_messages_with_the_time_at_which_it_was_said(home: Home) -> None:
    """User and assistant are peers of one session, which Memoranda marks as its own."""
    send_turn(home.start(), "I drink tea.", timestamp=1_794_816_000.0)
    first, second = home.workspace.messages
    assert (first["peer_id"], first["content"], second["peer_id"]) == ("default", "I drink tea.", ASSISTANT)
    assert first["created_at"].startswith("2026-11-16T08:00:00")
    assert first["metadata"] == {"source": "memoranda", "key": "k1", "part": 0, "parts": 2}
    assert home.workspace.sessions[SESSION]["metadata"] == {"source": "memoranda", "session": "s1"}


def test_only_a_repeated_delivery_looks_for_its_key(home: Home, double: HonchoDouble) -> None:
    """The first one costs a single request, once the session exists."""
    provider = home.start()
    send_turn(provider, "one", "k1")
    before = len(double.requests)
    send_turn(provider, "two", "k2", attempt=1)
    assert double.requests[before:] == [("POST", f"/v3/workspaces/memoranda/sessions/{SESSION}/messages")]
    send_turn(provider, "three", "k3", attempt=2)
    assert double.requests[before + 1][1].startswith(f"/v3/workspaces/memoranda/sessions/{SESSION}/messages/list")
    assert [row["content"] for row in home.workspace.messages][::2] == ["one", "two", "three"]


def test_a_delivery_that_stopped_in_the_middle_is_completed(home: Home) -> None:
    """A turn of more than a hundred parts needs several requests; parts that arrived are not sent again."""
    provider = home.start(messageMaxChars=500)
    text = " ".join(f"word{number:05}" for number in range(6_000))
    send_turn(provider, text)
    stored = home.workspace.messages
    assert len(stored) > 100
    home.workspace.messages = stored[:100]
    provider.shutdown()
    (home.path / "home.db").unlink()
    send_turn(home.start(messageMaxChars=500), text, attempt=2)
    assert [row["content"] for row in home.workspace.messages] == [row["content"] for row in stored]


def test_a_turn_for_a_session_that_was_just_deleted_waits(home: Home) -> None:
    """The server frees the name after some minutes; the turn must not be parked for that."""
    provider = home.start()
    send_turn(provider, "one")
    provider.forget(["s1"])
    with pytest.raises(TemporaryProviderError, match="not free yet") as caught:
        send_turn(provider, "two", "k2")
    assert caught.value.retry_after == 60
    home.workspace.deleted.clear()
    send_turn(provider, "two", "k2", attempt=2)
    assert [row["content"] for row in home.workspace.messages] == ["two", "Noted."]


def test_turns_can_be_kept_from_honcho(home: Home, double: HonchoDouble) -> None:
    """With saveMessages off only conclusions are sent."""
    provider = home.start(saveMessages=False)
    send_turn(provider, "one")
    assert double.stored_texts() == []


def test_curated_memory_is_mirrored_as_conclusions(home: Home) -> None:
    """Adding, replacing and removing; the same entry is stored once."""
    provider = home.start()

    def contents() -> list[tuple[str, str]]:
        return [(row["observed_id"], row["content"]) for row in home.workspace.conclusions]

    provider.on_memory_write("add", "user", "Likes chess.", {}, idempotency_key="w1")
    provider.on_memory_write("add", "user", "Likes chess.", {}, idempotency_key="w2")
    provider.on_memory_write("add", "memory", "The build needs make.", {}, idempotency_key="w3")
    assert sorted(contents()) == [("default", "Likes chess."), (ASSISTANT, "The build needs make.")]
    provider.on_memory_write("replace", "user", "Likes go.", {"old_text": "Likes chess."}, idempotency_key="w4")
    provider.on_memory_write("remove", "memory", "", {"old_text": "The build needs make."}, idempotency_key="w5")
    assert contents() == [("default", "Likes go.")]


def test_the_model_never_answers_from_another_users_sessions(home: Home) -> None:
    """It reads every session of the peer that asks, so each user has an assistant of their own."""
    ana, ben = home.start("ana"), home.start("ben")
    send_turn(ana, "My secret is zanzibar.")
    send_turn(ben, "I like tea.")
    for peer in ("user", "ai"):
        answer = call_tool(ben, "honcho_reasoning", query="What is the secret?", peer=peer)
        assert "tea" in answer["result"] and "zanzibar" not in answer["result"]


def test_a_tool_refuses_to_name_another_user(home: Home) -> None:
    """Neither their peer nor the id of their conclusion."""
    ana, ben = home.start("ana"), home.start("ben")
    secret = call_tool(ana, "honcho_conclude", conclusion="Ana has a secret.")["id"]
    for tool, args in (("honcho_profile", {}), ("honcho_search", {"query": "secret"}), ("honcho_context", {})):
        assert "error" in call_tool(ben, tool, peer="default__ana", **args)
    assert "error" in call_tool(ben, "honcho_conclude", delete_id=secret)
    assert [row["content"] for row in home.workspace.conclusions] == ["Ana has a secret."]


def test_the_cloud_needs_a_key_and_a_server_of_your_own_none(tmp_path: Path) -> None:
    """Neither question needs the network."""
    assert not HonchoProvider(tmp_path).is_available()
    assert HonchoProvider(tmp_path, {"api_key": "x"}).is_available()
    assert HonchoProvider(tmp_path, {"baseUrl": "http://127.0.0.1:1"}).is_available()


def test_the_status_shows_the_names_at_honcho(tmp_path: Path) -> None:
    """So that a person finds them there."""
    assert HonchoProvider(tmp_path, {"workspace": "home"}).get_status_config({}) == {
        "workspace": "home",
        "user_at_vendor": "default",
        "assistant_at_vendor": ASSISTANT,
    }


def test_the_address_may_end_in_the_version(home: Home, double: HonchoDouble) -> None:
    """As people copy it from elsewhere."""
    provider = home.start(baseUrl=f"{double.url}/v3/")
    assert provider.test_connection() == "Honcho answers for the workspace memoranda; 0 tasks wait for its deriver."


def test_one_conversation_is_forgotten(home: Home) -> None:
    """With what was derived from it; others stay."""
    provider = home.start()
    send_turn(provider, "one", "k1", "s1")
    send_turn(provider, "two", "k2", "s2")
    report = provider.forget(["s1"])
    assert report["deleted"] == ["1 turn"]
    assert [row["content"] for row in home.workspace.messages] == ["two", "Noted."]
    assert all(row["session_id"].endswith("s2") for row in home.workspace.conclusions)


def test_everything_is_forgotten_except_what_other_programs_stored(home: Home) -> None:
    """Their sessions in the same workspace have no mark of ours; what remains is listed."""
    provider = home.start("ana")
    send_turn(provider, "one")
    provider.on_memory_write("add", "user", "Likes chess.", {}, idempotency_key="w1")
    call_tool(provider, "honcho_conclude", conclusion="Owns a bike.")
    call_tool(provider, "honcho_profile", card=["Lives in Lisbon"])
    other = [{"content": "Another program", "peer_id": "default__ana", "created_at": "2026-11-16T08:00:00Z"}]
    home.workspace.answer("POST", ["sessions", "theirs", "messages"], {"messages": other}, {})
    report = provider.forget()
    assert sorted(report["deleted"]) == ["1 conclusion", "1 memory write", "1 turn"]
    assert report["remaining"] == [
        "the names of the peers default__ana and memoranda__for__default__ana: Honcho deletes no peers"
    ]
    assert home.workspace.stored_texts() == ["Another program"]
    assert not any(home.workspace.cards.values())


def test_a_shared_session_is_only_forgotten_as_a_whole(home: Home) -> None:
    """Honcho deletes no single messages, and the report says so."""
    provider = home.start(sessionStrategy="global")
    send_turn(provider, "one", "k1", "s1")
    send_turn(provider, "two", "k2", "s2")
    assert set(home.workspace.sessions) == {"default__sessions"}
    report = provider.forget(["s1"])
    assert report["deleted"] == [] and "share one session" in report["remaining"][0]
    assert provider.forget()["deleted"] == ["2 turns"]
    assert home.workspace.messages == []


def test_peers_of_other_programs_are_not_emptied(home: Home) -> None:
    """If the settings name the assistant of another program, its conclusions stay, and the report says so."""
    provider = home.start(peerName="ana", aiPeer="hermes")
    send_turn(provider, "one")
    home.workspace._conclude("From elsewhere.", "hermes", "ana", None)
    report = provider.forget()
    assert [row["content"] for row in home.workspace.conclusions] == ["From elsewhere."]
    assert [text.partition(",")[0] for text in report["remaining"][:2]] == [
        "what ana learned elsewhere",
        "what hermes learned elsewhere",
    ]


def test_cards_are_cleared_in_every_mode(home: Home) -> None:
    """Also the one that the user has of themselves, which the tools use in the mode unified."""
    provider = home.start(observationMode="unified")
    call_tool(provider, "honcho_profile", card=["Lives in Lisbon"])
    assert provider.forget()["remaining"] == [
        "the names of the peers default and memoranda__for__default: Honcho deletes no peers"
    ]
    assert call_tool(provider, "honcho_profile")["card"] == []
