"""Honcho's provider stores, recalls and deletes as its server needs it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import TemporaryProviderError
from memoranda.providers.vendors.honcho import HonchoProvider
from tests.providers.vendors.honcho.double import KEY, HonchoDouble, Workspace

ASSISTANT = "memoranda__for__default"
SESSION = "default__session__s1"


@pytest.fixture
def double() -> Iterator[HonchoDouble]:
    with HonchoDouble.start() as double:
        yield double


class Home:
    """Starts providers in one home, and shuts them down."""

    def __init__(self, double: HonchoDouble, path: Path) -> None:
        self._double = double
        self.path = path
        self._started: list[HonchoProvider] = []

    def start(
        self, user_id: str = "", session_id: str = "s1", context: str = "primary", **settings: Any
    ) -> HonchoProvider:
        provider = HonchoProvider(self.path, {"baseUrl": self._double.url, "api_key": KEY, "timeout": 5, **settings})
        provider.initialize(session_id, hermes_home=str(self.path), user_id=user_id, agent_context=context)
        self._started.append(provider)
        return provider

    @property
    def workspace(self) -> Workspace:
        return self._double.workspaces["memoranda"]

    def close(self) -> None:
        for provider in self._started:
            provider.shutdown()


@pytest.fixture
def home(double: HonchoDouble, tmp_path: Path) -> Iterator[Home]:
    home = Home(double, tmp_path)
    yield home
    home.close()


def _turn(provider: HonchoProvider, text: str, key: str = "k1", session_id: str = "s1", **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id=session_id, idempotency_key=key, **facts)


def _call(provider: HonchoProvider, tool: str, **args: Any) -> dict[str, Any]:
    answer = json.loads(provider.handle_tool_call(tool, args))
    assert isinstance(answer, dict)
    return answer


# Deliveries


def test_a_turn_is_two_messages_with_the_time_at_which_it_was_said(home: Home) -> None:
    """User and assistant are peers of one session, which Memoranda marks as its own."""
    _turn(home.start(), "I drink tea.", timestamp=1_794_816_000.0)
    first, second = home.workspace.messages
    assert (first["peer_id"], first["content"], second["peer_id"]) == ("default", "I drink tea.", ASSISTANT)
    assert first["created_at"].startswith("2026-11-16T08:00:00")
    assert first["metadata"] == {"source": "memoranda", "key": "k1", "part": 0, "parts": 2}
    assert home.workspace.sessions[SESSION]["metadata"] == {"source": "memoranda", "session": "s1"}


def test_only_a_repeated_delivery_looks_for_its_key(home: Home, double: HonchoDouble) -> None:
    """The first one costs a single request, once the session exists."""
    provider = home.start()
    _turn(provider, "one", "k1")
    before = len(double.requests)
    _turn(provider, "two", "k2", attempt=1)
    assert double.requests[before:] == [("POST", f"/v3/workspaces/memoranda/sessions/{SESSION}/messages")]
    _turn(provider, "three", "k3", attempt=2)
    assert double.requests[before + 1][1].startswith(f"/v3/workspaces/memoranda/sessions/{SESSION}/messages/list")
    assert [row["content"] for row in home.workspace.messages][::2] == ["one", "two", "three"]


def test_a_delivery_that_stopped_in_the_middle_is_completed(home: Home) -> None:
    """A turn of more than a hundred parts needs several requests; parts that arrived are not sent again."""
    provider = home.start(messageMaxChars=500)
    text = " ".join(f"word{number:05}" for number in range(6_000))
    _turn(provider, text)
    stored = home.workspace.messages
    assert len(stored) > 100
    home.workspace.messages = stored[:100]
    provider.shutdown()
    (home.path / "providers" / "honcho.db").unlink()
    _turn(home.start(messageMaxChars=500), text, attempt=2)
    assert [row["content"] for row in home.workspace.messages] == [row["content"] for row in stored]


def test_a_turn_for_a_session_that_was_just_deleted_waits(home: Home) -> None:
    """The server frees the name after some minutes; the turn must not be parked for that."""
    provider = home.start()
    _turn(provider, "one")
    provider.forget(["s1"])
    with pytest.raises(TemporaryProviderError, match="not free yet") as caught:
        _turn(provider, "two", "k2")
    assert caught.value.retry_after == 60
    home.workspace.deleted.clear()
    _turn(provider, "two", "k2", attempt=2)
    assert [row["content"] for row in home.workspace.messages] == ["two", "Noted."]


def test_turns_can_be_kept_from_honcho(home: Home, double: HonchoDouble) -> None:
    """With saveMessages off only conclusions are sent."""
    provider = home.start(saveMessages=False)
    _turn(provider, "one")
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


# Recall


def test_recall_has_card_conclusions_and_words_of_other_sessions(home: Home) -> None:
    """Each with its kind and time; the messages of this session are in the conversation anyway."""
    _turn(home.start(session_id="s0"), "I drink green tea.", session_id="s0")
    provider = home.start()
    _turn(provider, "The zebra drinks water.", "k2")
    _call(provider, "honcho_profile", card=["Lives in Lisbon"])
    recalled = provider.prefetch("What green drink is there?", session_id="s1").splitlines()
    assert recalled[0] == "- Lives in Lisbon (Honcho, card)"
    assert "- I drink green tea. (Honcho, user said, 2026-11-16)" in [
        line.replace(line[-11:-1], "2026-11-16") for line in recalled
    ]
    assert any("(Honcho, conclusion, " in line for line in recalled)
    assert not any(line.startswith("- The zebra") for line in recalled)


def test_unrelated_messages_are_not_recalled(home: Home) -> None:
    """Honcho's search returns the nearest ones, however far they are."""
    _turn(home.start(session_id="s0"), "I drink green tea.", session_id="s0")
    assert home.start().prefetch("How tall is the tower?", session_id="s1") == ""


def test_the_model_of_honcho_answers_after_a_turn_for_the_next_one(home: Home) -> None:
    """In the next recall of the same session, and once."""
    provider = home.start()
    _turn(provider, "I drink green tea.")
    provider.queue_prefetch("What do I drink?", session_id="s1")
    assert home.workspace.chats[0]["observer"] == ASSISTANT
    assert home.workspace.chats[0]["target"] == "default"
    assert "What do I drink?" in home.workspace.chats[0]["query"]
    assert "messages are known" in provider.prefetch("Which tea?", session_id="s1")
    assert "messages are known" not in provider.prefetch("Which tea?", session_id="s1")


def test_the_model_is_asked_as_often_as_the_settings_say(home: Home) -> None:
    """Not at all with 0, in several passes with a depth, and not about a word of assent."""
    never = home.start(dialecticCadence=0)
    _turn(never, "I drink green tea.")
    never.queue_prefetch("What do I drink?", session_id="s1")
    assert home.workspace.chats == []
    deep = home.start(dialecticDepth=3, dialecticReasoningLevel="medium")
    deep.queue_prefetch("ok, thanks", session_id="s1")
    deep.queue_prefetch("/compress", session_id="s1")
    assert home.workspace.chats == []
    deep.queue_prefetch("What do I drink?", session_id="s1")
    assert [chat["reasoning_level"] for chat in home.workspace.chats] == ["minimal", "medium", "low"]
    assert "An earlier answer was" in home.workspace.chats[1]["query"]


def test_context_is_asked_for_as_often_as_the_settings_say(home: Home, double: HonchoDouble) -> None:
    """In between the last one is shown again; with first-turn it is shown once."""
    _turn(home.start(session_id="s0"), "I drink green tea.", session_id="s0")
    slow = home.start(contextCadence=3)
    first = slow.prefetch("Which green tea?", session_id="s1")
    before = len(double.requests)
    assert slow.prefetch("Which green car?", session_id="s1") == first != ""
    assert len(double.requests) == before
    assert slow.prefetch("ok", session_id="s1") == ""
    slow.prefetch("Which green car?", session_id="s1")
    assert len(double.requests) > before
    once = home.start(injectionFrequency="first-turn")
    assert once.prefetch("Which green tea?", session_id="s1") == first
    assert once.prefetch("Which green tea?", session_id="s1") == ""


def test_a_mode_and_a_token_limit_narrow_the_common_limits(home: Home) -> None:
    """The prompt names the tools only if the model has them."""
    assert home.start(contextTokens=500).limits() == {"mode": "hybrid", "recall_chars": 2_000}
    context, tools = home.start(recallMode="context"), home.start(recallMode="tools")
    assert (context.limits(), tools.limits()) == ({"mode": "context"}, {"mode": "tools"})
    assert "honcho_search" not in context.system_prompt_block()
    assert "honcho_search" in tools.system_prompt_block()


# Users


def test_the_model_never_answers_from_another_users_sessions(home: Home) -> None:
    """It reads every session of the peer that asks, so each user has an assistant of their own."""
    ana, ben = home.start("ana"), home.start("ben")
    _turn(ana, "My secret is zanzibar.")
    _turn(ben, "I like tea.")
    for peer in ("user", "ai"):
        answer = _call(ben, "honcho_reasoning", query="What is the secret?", peer=peer)
        assert "tea" in answer["result"] and "zanzibar" not in answer["result"]


def test_a_tool_refuses_to_name_another_user(home: Home) -> None:
    """Neither their peer nor the id of their conclusion."""
    ana, ben = home.start("ana"), home.start("ben")
    secret = _call(ana, "honcho_conclude", conclusion="Ana has a secret.")["id"]
    for tool, args in (("honcho_profile", {}), ("honcho_search", {"query": "secret"}), ("honcho_context", {})):
        assert "error" in _call(ben, tool, peer="default__ana", **args)
    assert "error" in _call(ben, "honcho_conclude", delete_id=secret)
    assert [row["content"] for row in home.workspace.conclusions] == ["Ana has a secret."]


# Tools


def test_the_tools_have_the_names_and_arguments_that_models_know(home: Home) -> None:
    """Those of the plugins that people used before."""
    schemas = {schema["name"]: set(schema["parameters"]["properties"]) for schema in home.start().get_tool_schemas()}
    assert schemas == {
        "honcho_profile": {"peer", "card"},
        "honcho_search": {"peer", "query", "max_tokens"},
        "honcho_context": {"peer"},
        "honcho_reasoning": {"peer", "query", "reasoning_level"},
        "honcho_conclude": {"peer", "conclusion", "delete_id", "list", "query"},
    }


def test_the_tools_answer(home: Home) -> None:
    """From what was said, concluded and written on the card."""
    provider = home.start()
    _turn(provider, "I drink green tea.")
    found = _call(provider, "honcho_search", query="tea")["results"][0]
    assert {**found, "time": ""} == {"text": "I drink green tea.", "author": "user", "session": "s1", "time": ""}
    assert _call(provider, "honcho_profile", card=["Lives in Lisbon"]) == {"card": ["Lives in Lisbon"]}
    context = _call(provider, "honcho_context")
    assert "green tea" in context["representation"]
    assert context["card"] == ["Lives in Lisbon"]
    assert context["recent_messages"][0]["text"] == "I drink green tea."
    assert "green tea" in _call(provider, "honcho_reasoning", query="What do I drink?")["result"]


def test_an_empty_card_clears_it(home: Home) -> None:
    """An empty list is a value, not a missing one."""
    provider = home.start()
    _call(provider, "honcho_profile", card=["Lives in Lisbon"])
    assert _call(provider, "honcho_profile", card=[]) == {"card": []}
    assert _call(provider, "honcho_profile")["card"] == []


def test_conclusions_are_stored_listed_and_deleted(home: Home) -> None:
    """Exactly one of the three at a time."""
    provider = home.start()
    stored = _call(provider, "honcho_conclude", conclusion="Likes chess.")["id"]
    _call(provider, "honcho_conclude", conclusion="Owns a bike.")
    assert len(_call(provider, "honcho_conclude", list=True)["conclusions"]) == 2
    nearest = _call(provider, "honcho_conclude", list=True, query="chess")["conclusions"]
    assert [row["content"] for row in nearest] == ["Likes chess."]
    assert _call(provider, "honcho_conclude", delete_id=stored)["result"] == "deleted"
    for wrong in ({}, {"conclusion": "x", "list": True}, {"conclusion": "x", "query": "y"}, {"delete_id": "none"}):
        assert "error" in _call(provider, "honcho_conclude", **wrong)


def test_a_session_that_only_reads_cannot_write_with_a_tool(home: Home, double: HonchoDouble) -> None:
    """It can still read."""
    provider = home.start(context="cron")
    for tool, args in (
        ("honcho_profile", {"card": ["x"]}),
        ("honcho_conclude", {"conclusion": "x"}),
        ("honcho_conclude", {"delete_id": "x"}),
    ):
        assert "only the main conversation writes" in _call(provider, tool, **args)["error"]
    assert _call(provider, "honcho_search", query="x") == {"results": [], "count": 0}
    assert double.stored_texts() == []


def test_nothing_is_known_before_the_first_turn(home: Home) -> None:
    """Peers that do not exist yet are no error."""
    provider = home.start()
    assert provider.prefetch("What do I drink?", session_id="s1") == ""
    assert _call(provider, "honcho_profile")["card"] == []
    assert _call(provider, "honcho_context")["representation"] == ""
    assert _call(provider, "honcho_reasoning", query="Who am I?")["result"] == ""


# Forgetting


def test_one_conversation_is_forgotten(home: Home) -> None:
    """With what was derived from it; others stay."""
    provider = home.start()
    _turn(provider, "one", "k1", "s1")
    _turn(provider, "two", "k2", "s2")
    report = provider.forget(["s1"])
    assert report["deleted"] == ["1 of the kind turn"]
    assert [row["content"] for row in home.workspace.messages] == ["two", "Noted."]
    assert all(row["session_id"].endswith("s2") for row in home.workspace.conclusions)


def test_everything_is_forgotten_except_what_other_programs_stored(home: Home) -> None:
    """Their sessions in the same workspace have no mark of ours; what remains is listed."""
    provider = home.start("ana")
    _turn(provider, "one")
    provider.on_memory_write("add", "user", "Likes chess.", {}, idempotency_key="w1")
    _call(provider, "honcho_conclude", conclusion="Owns a bike.")
    _call(provider, "honcho_profile", card=["Lives in Lisbon"])
    other = [{"content": "Another program", "peer_id": "default__ana", "created_at": "2026-11-16T08:00:00Z"}]
    home.workspace.answer("POST", ["sessions", "theirs", "messages"], {"messages": other}, {})
    report = provider.forget()
    assert sorted(report["deleted"]) == ["1 of the kind conclusion", "1 of the kind memory_write", "1 of the kind turn"]
    assert report["remaining"] == [
        "the names of the peers default__ana and memoranda__for__default__ana: Honcho deletes no peers"
    ]
    assert home.workspace.stored_texts() == ["Another program"]
    assert not any(home.workspace.cards.values())


def test_a_shared_session_is_only_forgotten_as_a_whole(home: Home) -> None:
    """Honcho deletes no single messages, and the report says so."""
    provider = home.start(sessionStrategy="global")
    _turn(provider, "one", "k1", "s1")
    _turn(provider, "two", "k2", "s2")
    assert set(home.workspace.sessions) == {"default__sessions"}
    report = provider.forget(["s1"])
    assert report["deleted"] == [] and "share one session" in report["remaining"][0]
    assert provider.forget()["deleted"] == ["2 of the kind turn"]
    assert home.workspace.messages == []


def test_peers_of_other_programs_are_not_emptied(home: Home) -> None:
    """If the settings name the assistant of another program, its conclusions stay, and the report says so."""
    provider = home.start(peerName="ana", aiPeer="hermes")
    _turn(provider, "one")
    home.workspace._conclude("From elsewhere.", "hermes", "ana", None)
    report = provider.forget()
    assert [row["content"] for row in home.workspace.conclusions] == ["From elsewhere."]
    assert "what hermes learned elsewhere" in report["remaining"][0]


# Configuration


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
