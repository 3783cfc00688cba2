"""Turns, curated writes, sessions and recall at OpenViking, for one user and for several."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.vendors.openviking.vendor import OpenVikingProvider
from tests.external.http_service import Exchange
from tests.external.vendors.openviking.conftest import Start
from tests.external.vendors.openviking.double import VikingDouble, recorded, replay

pytestmark = pytest.mark.slow

MEMORIES = "viking://user/default/memories"
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "I prefer tabs."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "1", "function": {"name": "ls", "arguments": '{"path": "."}'}},
            {"id": "2", "function": {"name": "viking_search", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "a.py"},
    {"role": "assistant", "content": "Noted."},
]


def _turn(provider: OpenVikingProvider, text: str, key: str = "turn:s1:1", **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id="s1", idempotency_key=key, timestamp=1_790_000_000.0, **facts)


def test_a_turn_is_a_file_of_the_users_memories(start: Start, server: VikingDouble) -> None:
    """Its address comes from session and key, and it says when it was said."""
    _turn(start(), "My cat is called Miso.")
    [(uri, text)] = server.files.items()
    assert uri.startswith(f"{MEMORIES}/turns/s1-")
    assert text == "2026-09-21T14:13:20Z\n\nUser: My cat is called Miso.\n\nAssistant: Noted.\n"


def test_a_turn_whose_answer_was_lost_is_stored_once(start: Start, server: VikingDouble, tmp_path: Path) -> None:
    """The second attempt writes the same file again, even in a process that lost its record of what was sent."""
    provider = start()
    server.lose_next_answer()
    with pytest.raises(TemporaryProviderError):
        _turn(provider, "My cat is called Miso.")
    other_home = start(facts={"hermes_home": str(tmp_path / "other")})
    _turn(other_home, "My cat is called Miso.", attempt=2)
    assert len(server.writes) > 1
    assert len(server.files) == 1


def test_recalled_items_are_labelled_and_unrelated_ones_left_out(start: Start) -> None:
    """A turn that shares words is recalled with its day and score; one that shares none is not."""
    provider = start()
    _turn(provider, "My cat is called Miso.", "k1")
    _turn(provider, "Deploy on Fridays.", "k2")
    recalled = provider.prefetch("what is my cat called", session_id="s1")
    assert recalled.startswith("- User: My cat is called Miso. Assistant: Noted. (OpenViking, turn, 2026-09-21, score")
    assert "Fridays" not in recalled
    assert provider.prefetch("quantum zebra", session_id="s1") == ""


def test_summaries_of_directories_do_not_crowd_out_memories(start: Start, server: VikingDouble) -> None:
    """The real server ranks them first, so it is asked for files only, and a summary is dropped in any case."""
    provider = start()
    _turn(provider, "Skills registry of the user.")
    status, answer = recorded("find_without_level")
    server.next_answers["/api/v1/search/find"] = [lambda exchange: exchange.answer(status, answer)]
    assert provider.prefetch("skills registry of the user", session_id="s1") == ""
    assert "User: Skills registry" in provider.prefetch("skills registry of the user", session_id="s1")


def test_one_user_never_sees_another_users_data(start: Start, server: VikingDouble) -> None:
    """Neither by recall nor by a tool, although the server shows everyone everything."""
    owner, ana, bob = start(), start("ana@home"), start("bob")
    for provider, word in ((owner, "olive"), (ana, "amber"), (bob, "blue")):
        _turn(provider, f"My colour is {word}.")
    assert [uri.split("/memories/")[0] for uri in server.files] == [
        "viking://user/default",
        "viking://user/default/peers/default__ana_40home",
        "viking://user/default/peers/default__bob",
    ]
    foreign = next(uri for uri in server.files if "ana_40home" in uri)
    for provider, word in ((owner, "olive"), (bob, "blue")):
        recalled = provider.prefetch("what is my colour", session_id="s1")
        assert word in recalled and "amber" not in recalled
        assert "amber" not in provider.handle_tool_call("viking_search", {"query": "my colour is"})
        for tool in ("viking_read", "viking_forget"):
            assert "is outside" in provider.handle_tool_call(tool, {"uri": foreign})
    assert foreign in server.files


def test_a_profile_has_memories_of_its_own(start: Start, server: VikingDouble) -> None:
    """Its owner is a peer as well."""
    _turn(start(facts={"agent_identity": "work"}), "My colour is amber.")
    assert "/peers/work/memories/" in next(iter(server.files))


def test_the_agents_name_of_hermes_continues_its_memories(start: Start, server: VikingDouble) -> None:
    """With agent=hermes, the owner's memories are those that Hermes wrote."""
    _turn(start(agent="hermes"), "My colour is amber.")
    assert next(iter(server.files)).startswith("viking://user/default/peers/hermes/memories/turns/")


def test_an_agents_name_that_could_be_a_users_is_refused(start: Start) -> None:
    """Names with two underscores belong to users."""
    with pytest.raises(Exception, match="two underscores"):
        start(agent="default__ana")


def test_curated_writes_are_mirrored(start: Start, server: VikingDouble) -> None:
    """An entry that is replaced or removed leaves nothing behind, and a repeated delivery changes nothing."""
    provider = start()
    provider.on_memory_write("add", "user", "Likes tea.", {}, idempotency_key="m1")
    provider.on_memory_write("replace", "user", "Likes coffee.", {"old_text": "Likes tea."}, idempotency_key="m2")
    provider.on_memory_write("add", "memory", "Uses tabs.", {}, idempotency_key="m3")
    assert list(server.files.values()) == ["Likes coffee.", "Uses tabs."]
    assert [uri.split("/")[5] for uri in server.files] == ["preferences", "patterns"]
    provider.on_memory_write("remove", "memory", "", {"old_text": "Uses tabs."}, idempotency_key="m4")
    assert list(server.files.values()) == ["Likes coffee."]


def test_a_session_is_committed_once(start: Start, server: VikingDouble) -> None:
    """A repeated end adds nothing; a session that was resumed adds its new messages. Our own tools are left out."""
    provider = start()
    for messages in (MESSAGES, MESSAGES, [*MESSAGES, {"role": "user", "content": "And spaces in YAML."}]):
        provider.on_session_end(messages, session_id="s1", idempotency_key=f"end{len(messages)}")
    [session] = server.sessions.values()
    assert [message["role"] for message in session["messages"]] == ["user", "assistant", "assistant", "user"]
    assert [part.get("tool_name") for part in session["messages"][1]["parts"]] == ["ls"]
    assert session["messages"][1]["parts"][0]["tool_output"] == "a.py"
    assert session["committed"] == 4


def test_a_session_with_hundreds_of_messages_arrives_in_batches(start: Start, server: VikingDouble) -> None:
    """The server accepts 100 at once; an answer that was lost in between repeats none of them."""
    provider = start()
    messages = [{"role": "user", "content": f"Message {number}."} for number in range(250)]
    server.next_answers["/api/v1/sessions/memoranda-s1/commit"] = [replay("503") for _ in range(3)]
    with pytest.raises(TemporaryProviderError):
        provider.on_session_end(messages, session_id="s1", idempotency_key="end")
    provider.on_session_end(messages, session_id="s1", idempotency_key="end", attempt=2)
    [session] = server.sessions.values()
    assert [message["parts"][0]["text"] for message in session["messages"]] == [each["content"] for each in messages]


def test_messages_of_a_user_are_those_of_a_peer(start: Start, server: VikingDouble) -> None:
    """The server then extracts memories for the peer, and none for the user to whom all peers belong."""
    start("ana").on_session_end(MESSAGES, session_id="s1", idempotency_key="end")
    [(name, session)] = server.sessions.items()
    assert name == "memoranda-default__ana.s1"
    assert session["policy"] == {"self": {"enabled": False}, "peer": {"enabled": True}}
    assert [message.get("peer_id") for message in session["messages"]] == ["default__ana", None, None]


def test_sessions_of_peers_have_names_of_their_own(start: Start, server: VikingDouble) -> None:
    """The session s1 of the profile work is not the session work-s1 of the owner."""
    start(facts={"agent_identity": "work"}).on_session_end(MESSAGES, session_id="s1", idempotency_key="end")
    start().on_session_end(MESSAGES, session_id="work-s1", idempotency_key="end")
    assert list(server.sessions) == ["memoranda-work.s1", "memoranda-work-s1"]


def test_a_server_that_names_no_user_gets_nothing(start: Start, server: VikingDouble) -> None:
    """Its name would be part of every address."""
    provider = start()
    for name in ("", None, "../ana", "a/b"):
        answer = {"status": "ok", "result": {"initialized": True, "user": name}}
        server.next_answers["/api/v1/system/status"] = [partial(Exchange.answer, status=200, value=answer)]
        with pytest.raises(TemporaryProviderError, match="as which user"):
            _turn(provider, "My colour is amber.")
    assert server.files == {}


def test_sessions_stay_here_if_the_user_wants_that(start: Start, server: VikingDouble) -> None:
    """Extraction costs tokens of the server's model."""
    start(commit_sessions=False).on_session_end(MESSAGES, session_id="s1", idempotency_key="end")
    assert server.sessions == {}


def test_a_delegation_is_stored_with_the_sessions_turns(start: Start, server: VikingDouble) -> None:
    """Task and result are one file."""
    start().on_delegation("Look it up", "It is 42", session_id="s1", idempotency_key="d1")
    [(uri, text)] = server.files.items()
    assert uri.startswith(f"{MEMORIES}/turns/s1-")
    assert "Delegated task: Look it up\n\nResult: It is 42" in text


def test_forget_deletes_what_was_sent(start: Start, server: VikingDouble) -> None:
    """Turns, mirrored entries, memories of tools and archived sessions; nothing of another user."""
    owner, ana = start(), start("ana")
    for provider in (owner, ana):
        _turn(provider, "My colour is amber.")
        provider.on_memory_write("add", "user", "Likes tea.", {"session_id": "s1"}, idempotency_key="m1")
        provider.handle_tool_call("viking_remember", {"content": "Uses Postgres."}, session_id="s1")
        provider.handle_tool_call("viking_add_resource", {"url": "https://example.org/a.md"}, session_id="s1")
        provider.on_session_end(MESSAGES, session_id="s1", idempotency_key="end")
    before = len(server.files)
    owner.forget()
    assert len(server.files) == before / 2
    assert all("/peers/default__ana/" in uri for uri in server.files)
    assert list(server.sessions) == ["memoranda-default__ana.s1"]
    ana.forget(["another session"])
    assert len(server.files) == before / 2
    ana.forget(["s1"])
    assert server.files == {} and server.sessions == {}


def test_forget_deletes_extracted_memories_and_names_those_it_keeps(start: Start, server: VikingDouble) -> None:
    """A memory that a session created is deleted with it; one that it changed has other sources, and stays."""
    provider = start()
    provider.on_session_end(MESSAGES, session_id="s1", idempotency_key="end")
    created, changed = f"{MEMORIES}/preferences/x/tabs.md", f"{MEMORIES}/profile.md"
    archive = "viking://user/default/sessions/memoranda-s1/history/archive_001"
    diff = {"operations": {"adds": [{"uri": created}], "updates": [{"uri": changed}], "deletes": []}}
    server.files |= {created: "Tabs.", changed: "Profile.", f"{archive}/memory_diff.json": json.dumps(diff)}
    report = provider.forget()
    assert created not in server.files and changed in server.files
    assert any(changed in line for line in report["remaining"])


def test_sessions_that_only_read_write_nothing(start: Start, server: VikingDouble) -> None:
    """A cron job recalls and searches."""
    provider = start(facts={"agent_context": "cron"})
    _turn(provider, "My colour is amber.")
    provider.on_session_end(MESSAGES, session_id="s1", idempotency_key="end")
    assert "only reads" in provider.handle_tool_call("viking_remember", {"content": "Uses Postgres."})
    assert server.files == {} and server.sessions == {}


def test_a_locked_path_is_retried_later(start: Start, server: VikingDouble) -> None:
    """A conflict at the server is temporary, other refusals are not."""
    provider = start()
    conflict = {"status": "error", "error": {"code": "CONFLICT", "message": "path is busy"}}
    server.next_answers["/api/v1/content/write"] = [
        lambda exchange: exchange.answer(409, conflict),
        replay("invalid_body"),
    ]
    with pytest.raises(TemporaryProviderError, match="busy"):
        _turn(provider, "My colour is amber.")
    with pytest.raises(PermanentProviderError, match="INVALID_ARGUMENT"):
        _turn(provider, "My colour is amber.")


def test_a_model_of_the_server_that_fails_is_not_our_key(start: Start, server: VikingDouble) -> None:
    """The server passes on a 401 of its own model; the message names the model and not our credentials."""
    provider = start()
    server.next_answers["/api/v1/search/find"] = [replay("model_refused")]
    with pytest.raises(TemporaryProviderError, match="model that the OpenViking server uses"):
        provider.test_connection()


def test_the_test_call_says_what_answered(start: Start, server: VikingDouble) -> None:
    """Version, mode, and where memories are; it warns about a server that everyone can read."""
    answer = start("ana").test_connection()
    assert "OpenViking 0.5.2 (mode dev)" in answer
    assert "viking://user/default/peers/default__ana/memories" in answer
    assert "Everyone who reaches this server" in answer


def test_the_test_call_recognises_another_service(start: Start, server: VikingDouble) -> None:
    """A wrong address is said to be one."""
    server.next_answers["/health"] = [lambda exchange: exchange.answer(200, {"hello": "world"})]
    with pytest.raises(PermanentProviderError, match="is not an OpenViking server"):
        start().test_connection()


@pytest.mark.parametrize("name", ["key_missing", "401", "403"])
def test_refused_keys_are_permanent_and_say_what_to_do(start: Start, server: VikingDouble, name: str) -> None:
    """As the real server refuses them."""
    provider = start()
    server.next_answers["/api/v1/system/status"] = [replay(name)]
    with pytest.raises(PermanentProviderError, match="memoranda provider setup openviking"):
        _turn(provider, "My colour is amber.")
