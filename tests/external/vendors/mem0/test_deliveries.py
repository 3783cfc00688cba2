"""What Mem0 receives: each turn once, with its time and session; curated entries; and what `forget` deletes."""

import json
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.vendors.mem0 import client as platform_client
from memoranda.external.vendors.mem0.vendor import Mem0Provider
from tests.external.vendors.mem0.conftest import Start, settings_for
from tests.external.vendors.mem0.double import Mem0Double, PlatformDouble, ServerDouble
from tests.external.vendors.mem0.library_double import LibraryDouble
from tests.external.vendors.vendor_service import read_recording

pytestmark = pytest.mark.slow

Double = Any


def turn(provider: Mem0Provider, text: str, key: str, **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id="s1", idempotency_key=key, **facts)


@pytest.mark.parametrize("infer", [True, False])
def test_the_same_key_is_stored_once(infer: bool, double: Double, start: Start, tmp_path: Path) -> None:
    """Even if this home does not know that the first attempt arrived."""
    provider = start(double, infer=infer)
    turn(provider, "My cat is called Minka.", "k1")
    provider.shutdown()
    for file in tmp_path.glob("home.db*"):
        file.unlink()
    again = start(double, infer=infer)
    turn(again, "My cat is called Minka.", "k1", attempt=2)
    turn(again, "My dog is called Rex.", "k2", attempt=2)
    answers = [] if infer else ["Noted."]
    assert double.texts() == ["My cat is called Minka.", *answers, "My dog is called Rex.", *answers]


@pytest.mark.parametrize("infer", [True, False])
def test_a_lost_answer_repeats_nothing(infer: bool, double: Double, start: Start) -> None:
    """The attempt fails, and the next one finds what Mem0 stored or is still processing."""
    provider = start(double, infer=infer)
    double.lose_next_answer()
    with pytest.raises(TemporaryProviderError):
        turn(provider, "My cat is called Minka.", "k1")
    turn(provider, "My cat is called Minka.", "k1", attempt=2)
    assert double.stored_texts() == ["My cat is called Minka."] + ([] if infer else ["Noted."])


def test_a_turn_that_stays_queued_is_not_called_stored(
    platform: PlatformDouble, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outbox keeps it: the platform may still fail. The next attempt waits for the same event, and adds nothing."""
    monkeypatch.setattr(platform_client, "_EVENT_SECONDS", 0.3)
    provider = start(platform)
    platform.stalled = True
    for attempt in (1, 2):
        with pytest.raises(TemporaryProviderError, match="still processing"):
            turn(provider, "My cat is called Minka.", "k1", attempt=attempt)
    platform.stalled = False
    turn(provider, "My cat is called Minka.", "k1", attempt=3)
    assert platform.stored_texts() == ["My cat is called Minka."] and len(platform.additions) == 1


def test_a_processed_turn_without_facts_is_not_processed_again(platform: PlatformDouble, start: Start) -> None:
    """It left no memory with its key, but an event of the platform."""
    provider = start(platform)
    platform.lose_next_answer()
    with pytest.raises(TemporaryProviderError):
        turn(provider, "Many thanks!", "k1")
    turn(provider, "Many thanks!", "k1", attempt=2)
    assert platform.stored_texts() == [] and len(platform.additions) == 1


def test_messages_that_an_interrupted_attempt_did_not_store_are_stored_later(
    library: LibraryDouble, start: Start
) -> None:
    """Word for word, Mem0 stores messages one by one: it may fail between two."""
    provider = start(library, infer=False)
    kind = library.library.Memory
    original = kind.add

    def add(self: Any, messages: Any, **options: Any) -> Any:
        original(self, messages[:1], **options)
        raise library.library.ModelError(503)

    kind.add = add
    with pytest.raises(TemporaryProviderError):
        turn(provider, "My cat is called Minka.", "k1")
    kind.add = original
    turn(provider, "My cat is called Minka.", "k1", attempt=2)
    assert library.texts() == ["My cat is called Minka.", "Noted."]


def test_a_turn_keeps_its_time(double: Double, start: Start) -> None:
    """A turn that waited for days is not remembered as one of today."""
    provider = start(double)
    turn(provider, "My cat is called Minka.", "k1", timestamp=1_700_000_000.0)
    assert "Mem0, 2023-11-14" in provider.prefetch("My cat is called", session_id="s1")


def test_an_embedder_that_fails_half_way_does_not_look_like_a_turn_without_facts(
    server: ServerDouble, library: LibraryDouble, start: Start
) -> None:
    """Mem0 answers both alike, so the embedder is asked again, and the turn is kept if it fails."""
    server.embedder_fails = True
    with pytest.raises(TemporaryProviderError):
        turn(start(server), "Many thanks!", "k1")

    def add(self: Any, messages: Any, **options: Any) -> Any:
        library.fail("down")
        return {"results": []}

    library.library.Memory.add = add
    with pytest.raises(TemporaryProviderError):
        turn(start(library), "Many thanks!", "k2")


def test_a_long_turn_fits_into_an_embedder(server: ServerDouble, start: Start) -> None:
    """Its middle is left out; refused as a whole it would be parked. A second attempt finds it all the same."""
    provider = start(server, infer=False)
    text = f"The beginning. {'word ' * 20_000} The end.\0"
    server.lose_next_answer()
    with pytest.raises(TemporaryProviderError):
        turn(provider, text, "k1")
    turn(provider, text, "k1", attempt=2)
    [stored, _] = server.texts()
    assert stored.startswith("The beginning.") and stored.endswith("The end.")
    assert len(stored) <= 8_000


def test_a_turn_without_facts_is_delivered(server: ServerDouble, start: Start) -> None:
    """Mem0 accepted it, and its model found nothing worth a memory."""
    turn(start(server), "Many thanks!", "k1")
    assert server.texts() == [] and len(server.additions) == 1


def test_an_addition_that_the_platform_could_not_process_raises(platform: PlatformDouble, start: Start) -> None:
    """The platform queues additions; the delivery waits for the end of the event."""
    pending = read_recording(platform.recorded, "add_pending")["body"]
    platform.replies = [(200, pending), (200, {"status": "FAILED", "error": "no quota"})]
    with pytest.raises(TemporaryProviderError, match="no quota"):
        turn(start(platform), "My cat is called Minka.", "k1")


def test_curated_entries_are_mirrored_with_their_changes(double: Double, start: Start) -> None:
    """A replaced or removed entry leaves no old copy behind."""
    provider = start(double)
    provider.on_memory_write("add", "user", "Prefers tabs.", {}, idempotency_key="w1")
    assert double.texts() == ["Prefers tabs."]
    provider.on_memory_write("replace", "user", "Prefers spaces.", {"old_text": "Prefers tabs."}, idempotency_key="w2")
    assert double.texts() == ["Prefers spaces."]
    provider.on_memory_write("remove", "user", "", {"old_text": "Prefers spaces."}, idempotency_key="w3")
    assert double.texts() == []


def test_a_user_never_sees_or_changes_what_belongs_to_another(double: Double, start: Start) -> None:
    """Neither through recall nor with an id."""
    alice, bob = start(double, user_id="alice"), start(double, user_id="bob")
    turn(alice, "My cat is called Minka.", "k1")
    assert "Minka" in alice.prefetch("My cat is called", session_id="s1")
    assert bob.prefetch("My cat is called Minka", session_id="s1") == ""
    assert "nothing" in bob.handle_tool_call("mem0_profile", {})
    memory_id = _first_id(alice)
    for tool, more in (("mem0_delete", {}), ("mem0_update", {"text": "gone"})):
        assert "no memory" in bob.handle_tool_call(tool, {"memory_id": memory_id, **more})
    assert double.texts("default__alice") == ["My cat is called Minka."]


def test_forget_deletes_what_memoranda_sent_and_nothing_else(double: Double, start: Start) -> None:
    """Turns, entries and what tools stored; what another program stored for the same user stays."""
    provider = start(double)
    turn(provider, "My cat is called Minka.", "k1")
    provider.sync_turn("I live in Graz.", "Noted.", session_id="s2", idempotency_key="k2")
    provider.on_memory_write("add", "user", "Prefers tabs.", {"session_id": "s2"}, idempotency_key="w1")
    provider.handle_tool_call("mem0_add", {"content": "Likes tea."}, session_id="s2")
    _store_as_another_program(double)
    provider.forget(["s1"])
    assert "My cat is called Minka." not in double.texts() and len(double.texts()) == 4
    report = provider.forget()
    assert double.texts() == ["Of another program."]
    assert bool(report["remaining"]) == (not isinstance(double, LibraryDouble))
    assert provider.forget() == {"deleted": [], "remaining": []}


def test_forget_deletes_what_this_home_has_no_record_of(double: Double, start: Start, tmp_path: Path) -> None:
    """The metadata of a memory says who wrote it, in which session."""
    provider = start(double)
    turn(provider, "My cat is called Minka.", "k1")
    provider.shutdown()
    for file in tmp_path.glob("home.db*"):
        file.unlink()
    start(double).forget()
    assert double.texts() == []


def test_forget_pages_through_many_memories(platform: PlatformDouble, start: Start) -> None:
    """The platform lists a hundred at a time; other users and sessions keep theirs."""
    for number in range(250):
        metadata = {"memoranda_key": str(number), "memoranda_session": "s1" if number % 2 else "s2"}
        body = {"messages": [{"role": "user", "content": f"fact {number}"}], "infer": False, "metadata": metadata}
        platform.add(body | {"user_id": "default", "app_id": "memoranda"}, "")
    provider = start(platform)
    provider.forget(["s1"])
    assert len(platform.texts()) == 125
    provider.forget()
    assert platform.texts() == []


def test_forget_in_this_process_leaves_no_history(library: LibraryDouble, start: Start) -> None:
    """Mem0 would keep the texts of deleted memories, and the last messages."""
    provider = start(library)
    turn(provider, "My cat is called Minka.", "k1")
    database = library.library.opened[-1].db.connection
    counts = "SELECT (SELECT count(*) FROM history), (SELECT count(*) FROM messages)"
    assert database.execute(counts).fetchone() == (1, 1)
    provider.forget()
    assert database.execute(counts).fetchone() == (0, 0)


@pytest.mark.parametrize(
    ("name", "error", "advice"),
    [
        ("401", PermanentProviderError, "provider setup mem0"),
        ("no_key", PermanentProviderError, "provider setup mem0"),
        ("422", PermanentProviderError, "valid list"),
        ("user_with_space", PermanentProviderError, "whitespace"),
        ("404", PermanentProviderError, "address"),
        ("add_model_down", TemporaryProviderError, "unreachable"),
    ],
)
def test_recorded_refusals_of_the_server(
    name: str, error: type[Exception], advice: str, server: ServerDouble, start: Start
) -> None:
    """What can be repaired waits, what cannot is parked with what to do."""
    recording = read_recording(server.recorded, name)
    server.replies = [(recording["status"], recording["body"])]
    with pytest.raises(error, match=advice):
        turn(start(server), "My cat is called Minka.", "k1")
    assert server.texts() == []


def test_the_double_answers_in_the_form_of_the_server(server: ServerDouble, start: Start) -> None:
    """Every field that the provider reads is where the real server was recorded to put it."""
    turn(start(server, infer=False), "I live in Graz", "k1")
    [memory, _] = server.find("I live in Graz", {"user_id": "default"}, 2, 0.0)
    real = read_recording(server.recorded, "find_key")["body"]["results"][0]
    used = {"id", "memory", "user_id", "agent_id", "metadata", "created_at", "score"}
    assert used <= set(real) and used <= set(memory)
    assert isinstance(real["metadata"]["memoranda_key"], str)


@pytest.mark.parametrize(
    "answer", [b"<html>", b'{"results": [', {"results": "?"}, {"results": [1]}, [], None, {"results": [{"id": 1}]}]
)
@pytest.mark.parametrize("wire", ["server", "platform"])
def test_an_answer_without_sense_is_no_acceptance(
    wire: str, answer: Any, request: pytest.FixtureRequest, start: Start
) -> None:
    """The turn is kept, and recall finds nothing."""
    double: Mem0Double = request.getfixturevalue(wire)
    provider = start(double)
    double.replies = [(200, answer)]
    with pytest.raises(TemporaryProviderError):
        turn(provider, "My cat is called Minka.", "k1")
    double.replies = [(200, answer)] * 3
    with pytest.raises(TemporaryProviderError):
        provider.prefetch("cat", session_id="s1", seconds=0.1)


def test_a_configured_user_id_is_that_of_the_owner_only(server: ServerDouble, tmp_path: Path) -> None:
    """Other users never get it, and it cannot be the name of one of them."""
    names = {}
    for user in ("", "bob"):
        provider = Mem0Provider(tmp_path, settings_for(server, user_id="ana"))
        provider.initialize("s1", hermes_home=str(tmp_path), user_id=user)
        turn(provider, f"I am {user or 'the owner'}.", f"k{user}")
        names[user] = server.memories[-1]["user_id"]
        provider.shutdown()
    assert names == {"": "ana", "bob": "default__bob"}
    with pytest.raises(PermanentProviderError, match="user_id"):
        Mem0Provider(tmp_path, settings_for(server, user_id="default__bob")).initialize("s1", hermes_home=str(tmp_path))


def _store_as_another_program(double: Double) -> None:
    if isinstance(double, LibraryDouble):
        memory = double.library.opened[-1]
        options = {"user_id": "default", "agent_id": "other", "metadata": {"created_at": ""}, "infer": False}
        memory.add([{"role": "user", "content": "Of another program."}], **options)
        return
    body = {"messages": [{"role": "user", "content": "Of another program."}], "infer": False, "metadata": {}}
    double.add(body | {"user_id": "default", "agent_id": "other", "app_id": "other"}, "")


def _first_id(provider: Mem0Provider) -> str:
    return str(json.loads(provider.handle_tool_call("mem0_profile", {}))["memories"][0]["id"])
