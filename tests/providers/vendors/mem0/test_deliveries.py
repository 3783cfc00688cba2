"""What Mem0 receives: each turn once, with its time and session; curated entries; and what `forget` deletes."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.providers.vendors.mem0 import Mem0Provider
from tests.providers.vendors.mem0.conftest import Start
from tests.providers.vendors.mem0.mem0_service import Mem0Service, recorded

DEPLOYMENTS = ("server", "platform", "oss")
Texts = Callable[..., list[str]]


@pytest.fixture
def texts(state: Mem0Service, library: ModuleType) -> Texts:
    """The texts that are stored for a user, wherever they are."""

    def texts(user_id: str = "default") -> list[str]:
        own = [memory for memories in library.stored.values() for memory in memories]
        return [*state.texts(user_id), *(memory["memory"] for memory in own if memory["user_id"] == user_id)]

    return texts


def turn(provider: Mem0Provider, text: str, key: str, **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id="s1", idempotency_key=key, **facts)


@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_the_same_key_is_stored_once(deployment: str, infer: bool, start: Start, texts: Texts, tmp_path: Path) -> None:
    """Even if this home does not know that the first attempt arrived."""
    provider = start(deployment, infer=infer)
    turn(provider, "My cat is called Minka.", "k1")
    provider.shutdown()
    for file in (tmp_path / "providers").glob("mem0.db*"):
        file.unlink()
    again = start(deployment, infer=infer)
    turn(again, "My cat is called Minka.", "k1", attempt=2)
    turn(again, "My dog is called Rex.", "k2", attempt=2)
    answers = [] if infer else ["Noted."]
    assert texts() == ["My cat is called Minka.", *answers, "My dog is called Rex.", *answers]


@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize("deployment", ["server", "platform"])
def test_a_lost_answer_repeats_nothing(deployment: str, infer: bool, start: Start, state: Mem0Service) -> None:
    """The attempt fails, and the next one finds what Mem0 stored or is still processing."""
    provider = start(deployment, infer=infer)
    state.lose_answers = 1
    with pytest.raises(TemporaryProviderError):
        turn(provider, "My cat is called Minka.", "k1")
    turn(provider, "My cat is called Minka.", "k1", attempt=2)
    assert len(state.additions) + len([event for event in state.events if event["status"] == "PENDING"]) == 1


def test_messages_that_an_interrupted_attempt_did_not_store_are_stored_later(
    start: Start, texts: Texts, library: ModuleType
) -> None:
    """Word for word, Mem0 stores messages one by one: it may fail between two."""
    provider = start("oss", infer=False)
    original = library.Memory.add

    def add(self: Any, messages: Any, **options: Any) -> Any:
        original(self, messages[:1], **options)
        raise library.ModelError(503)

    library.Memory.add = add
    with pytest.raises(TemporaryProviderError):
        turn(provider, "My cat is called Minka.", "k1")
    library.Memory.add = original
    turn(provider, "My cat is called Minka.", "k1", attempt=2)
    assert texts() == ["My cat is called Minka.", "Noted."]


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_a_turn_keeps_its_time(deployment: str, start: Start, library: ModuleType) -> None:
    """A turn that waited for days is not remembered as one of today."""
    provider = start(deployment)
    turn(provider, "My cat is called Minka.", "k1", timestamp=1_700_000_000.0)
    assert "Mem0, 2023-11-14" in provider.prefetch("My cat is called", session_id="s1")


@pytest.mark.parametrize("deployment", ["server", "oss"])
def test_an_embedder_that_fails_half_way_does_not_look_like_a_turn_without_facts(
    deployment: str, start: Start, state: Mem0Service, library: ModuleType
) -> None:
    """Mem0 answers both alike, so the embedder is asked again, and the turn is kept if it fails."""
    provider = start(deployment)
    state.embedder_fails = 9
    if deployment == "oss":
        # The first addition stores nothing, then the search fails.
        library.Memory.add = lambda self, messages, **options: {"results": []}
        library.failures[:] = [library.ModelError(500)]
    with pytest.raises(TemporaryProviderError):
        turn(provider, "Many thanks!", "k1")


def test_a_turn_without_facts_is_delivered(start: Start, state: Mem0Service) -> None:
    """Mem0 accepted it, and its model found nothing worth a memory."""
    turn(start("server"), "Many thanks!", "k1")
    assert state.texts() == [] and len(state.additions) == 1


def test_an_addition_that_the_platform_could_not_process_raises(start: Start, state: Mem0Service) -> None:
    """The platform queues additions; the delivery waits for the end of the event."""
    state.refuse = [
        {"status": 200, "answer": recorded("platform", "add_pending")["answer"]},
        {"status": 200, "answer": {"status": "FAILED", "error": "no quota"}},
    ]
    with pytest.raises(TemporaryProviderError, match="no quota"):
        turn(start("platform"), "My cat is called Minka.", "k1")


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_curated_entries_are_mirrored_with_their_changes(deployment: str, start: Start, texts: Texts) -> None:
    """A replaced or removed entry leaves no old copy behind."""
    provider = start(deployment)
    provider.on_memory_write("add", "user", "Prefers tabs.", {}, idempotency_key="w1")
    assert texts() == ["Prefers tabs."]
    provider.on_memory_write("replace", "user", "Prefers spaces.", {"old_text": "Prefers tabs."}, idempotency_key="w2")
    assert texts() == ["Prefers spaces."]
    provider.on_memory_write("remove", "user", "", {"old_text": "Prefers spaces."}, idempotency_key="w3")
    assert texts() == []


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_a_user_never_sees_or_changes_what_belongs_to_another(deployment: str, start: Start, texts: Texts) -> None:
    """Neither through recall nor with an id."""
    alice, bob = start(deployment, user_id="alice"), start(deployment, user_id="bob")
    turn(alice, "My cat is called Minka.", "k1")
    assert "Minka" in alice.prefetch("My cat is called", session_id="s1")
    assert bob.prefetch("My cat is called Minka", session_id="s1") == ""
    assert "nothing" in bob.handle_tool_call("mem0_profile", {})
    memory_id = _first_id(alice)
    for tool, more in (("mem0_delete", {}), ("mem0_update", {"text": "gone"})):
        assert "no memory" in bob.handle_tool_call(tool, {"memory_id": memory_id, **more})
    assert texts("default__alice") == ["My cat is called Minka."]


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_forget_deletes_what_memoranda_sent_and_nothing_else(
    deployment: str, start: Start, texts: Texts, state: Mem0Service
) -> None:
    """Turns, entries and what tools stored; what another program stored for the same user stays."""
    provider = start(deployment)
    state.memories.append(
        {"id": "1" * 32, "memory": "Of another program.", "user_id": "default", "agent_id": "x", "metadata": {}}
        | {"app_id": "x", "created_at": "", "updated_at": ""}
    )
    turn(provider, "My cat is called Minka.", "k1")
    provider.sync_turn("I live in Graz.", "Noted.", session_id="s2", idempotency_key="k2")
    provider.on_memory_write("add", "user", "Prefers tabs.", {"session_id": "s2"}, idempotency_key="w1")
    provider.handle_tool_call("mem0_add", {"content": "Likes tea."}, session_id="s2")
    provider.forget(["s1"])
    assert "My cat is called Minka." not in texts() and len(texts()) == 4
    report = provider.forget()
    assert texts() == ["Of another program."]
    assert bool(report["remaining"]) == (deployment != "oss")
    # A repetition finds nothing.
    assert provider.forget() == {"deleted": [], "remaining": []}


def test_forget_in_this_process_leaves_no_history(start: Start, library: ModuleType) -> None:
    """Mem0 would keep the texts of deleted memories, and the last messages."""
    provider = start("oss")
    turn(provider, "My cat is called Minka.", "k1")
    database = provider._vendor._store._library.memory(5).db.connection  # type: ignore[union-attr]
    assert database.execute("SELECT count(*) FROM history").fetchone() == (1,)
    provider.forget()
    assert database.execute("SELECT (SELECT count(*) FROM history), (SELECT count(*) FROM messages)").fetchone() == (
        0,
        0,
    )


@pytest.mark.parametrize(
    ("name", "error", "advice"),
    [
        ("wrong_key", PermanentProviderError, "provider setup mem0"),
        ("no_key", PermanentProviderError, "provider setup mem0"),
        ("invalid_body", PermanentProviderError, "422"),
        ("user_with_space", PermanentProviderError, "400"),
        ("unknown_path", PermanentProviderError, "address"),
        ("add_model_down", TemporaryProviderError, "unreachable"),
    ],
)
def test_recorded_refusals_of_the_server(
    name: str, error: type[Exception], advice: str, start: Start, state: Mem0Service
) -> None:
    """What can be repaired waits, what cannot is parked with what to do."""
    state.refuse = [recorded("server", name)]
    with pytest.raises(error, match=advice):
        turn(start("server"), "My cat is called Minka.", "k1")
    assert state.texts() == []


def test_the_platform_says_when_to_come_back(start: Start, state: Mem0Service) -> None:
    """Retry-After reaches the outbox."""
    state.refuse = [recorded("platform", "rate_limited") | {"headers": {"Retry_After": "7"}}]
    with pytest.raises(TemporaryProviderError) as caught:
        turn(start("platform"), "My cat is called Minka.", "k1")
    assert caught.value.retry_after == 7


@pytest.mark.parametrize(
    "answer", [b"<html>", b'{"results": [', {"results": "?"}, {"results": [1]}, [], None, {"results": [{"id": 1}]}]
)
@pytest.mark.parametrize("deployment", ["server", "platform"])
def test_an_answer_without_sense_is_no_acceptance(
    deployment: str, answer: Any, start: Start, state: Mem0Service
) -> None:
    """The turn is kept, and recall finds nothing."""
    provider = start(deployment)
    state.refuse = [{"status": 200, "answer": answer}]
    with pytest.raises(TemporaryProviderError):
        turn(provider, "My cat is called Minka.", "k1")
    state.refuse = [{"status": 200, "answer": answer}] * 3
    with pytest.raises(TemporaryProviderError):
        provider.prefetch("cat", session_id="s1")


def _first_id(provider: Mem0Provider) -> str:
    return str(json.loads(provider.handle_tool_call("mem0_profile", {}))["memories"][0]["id"])
