"""Zep's provider finds its users and threads again, stores each turn once, and recalls what is still true."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.vendors.zep.vendor import ZepProvider
from tests.external.vendors.zep.double import KEY, ZepDouble

pytestmark = pytest.mark.slow


@pytest.fixture
def double() -> Iterator[ZepDouble]:
    with ZepDouble.start() as double:
        yield double


class Home:
    """Starts providers in one home, and shuts them down."""

    def __init__(self, double: ZepDouble, path: Path) -> None:
        self._double = double
        self.path = path
        self._started: list[ZepProvider] = []

    def start(self, user_id: str = "", session_id: str = "s1", **facts: str) -> ZepProvider:
        provider = ZepProvider(self.path, {"url": f"{self._double.url}/api/v4", "api_key": KEY, "timeout": 5})
        provider.initialize(session_id, hermes_home=str(self.path), user_id=user_id, **facts)
        self._started.append(provider)
        return provider

    def lose_record(self) -> None:
        """Delete the record of what was sent, after all providers were shut down."""
        self.close()
        (self.path / "home.db").unlink()

    def close(self) -> None:
        for provider in self._started:
            provider.shutdown()


@pytest.fixture
def home(double: ZepDouble, tmp_path: Path) -> Iterator[Home]:
    home = Home(double, tmp_path)
    yield home
    home.close()


def _turn(provider: ZepProvider, text: str, key: str = "k1", session_id: str = "s1", **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id=session_id, idempotency_key=key, **facts)


def _call(provider: ZepProvider, tool: str, **args: Any) -> dict[str, Any]:
    answer = json.loads(provider.handle_tool_call(tool, args))
    assert isinstance(answer, dict)
    return answer


# Ids


def test_user_and_thread_are_created_once(home: Home, double: ZepDouble) -> None:
    """Their UUIDs are in the record, so later processes ask for nothing."""
    _turn(home.start(user_name="Ana"), "one", timestamp=1_794_816_000.0)
    before = len(double.requests)
    _turn(home.start(user_name="Ana"), "two", "k2")
    assert [method for method, _ in double.requests[before:]] == ["POST"]
    assert [row["user_id"] for row in double.users.values()] == ["memoranda_default"]
    first = double.messages[0]
    assert (first["role"], first["name"], first["reference_time"]) == ("user", "Ana", "2026-11-16T08:00:00+00:00")
    assert first["metadata"] == {"source": "memoranda", "session": "s1", "key": "k1", "parts": 2, "part": 0}


def test_a_lost_record_is_rebuilt_from_zep(home: Home, double: ZepDouble) -> None:
    """The user is looked up by id, and each thread is recognised by its first message; nothing is created again."""
    provider = home.start()
    for number in range(3):
        _turn(provider, f"turn {number}", f"k{number}", f"s{number}")
    home.lose_record()
    _turn(home.start(), "later", "k9", "s1")
    assert (len(double.users), len(double.threads)) == (1, 3)
    threads = {row["metadata"]["session"]: row["thread_uuid"] for row in double.messages}
    assert {row["thread_uuid"] for row in double.messages if row["metadata"]["session"] == "s1"} == {threads["s1"]}


def test_what_was_deleted_at_zep_is_created_again(home: Home, double: ZepDouble) -> None:
    """A turn for a thread or a user that was deleted in the dashboard is stored in new ones."""
    provider = home.start()
    _turn(provider, "one")
    double.answer("DELETE", f"threads/{next(iter(double.threads))}", {}, {})
    _turn(provider, "two", "k2")
    assert [row["content"] for row in double.messages] == ["two", "Noted."]
    double.answer("DELETE", f"users/{next(iter(double.users))}", {}, {})
    _turn(provider, "three", "k3")
    assert [row["content"] for row in double.messages] == ["three", "Noted."]


def test_users_and_profiles_have_ids_of_their_own(home: Home, double: ZepDouble) -> None:
    """And threads of their own, also for a session of the same name in the same home."""
    for user_id, profile in (("", "default"), ("ana", "default"), ("ana", "work")):
        _turn(home.start(user_id, agent_identity=profile), f"{user_id} {profile}", f"{user_id} {profile}")
    assert {row["user_id"] for row in double.users.values()} == {
        "memoranda_default",
        "memoranda_default__ana",
        "memoranda_work__ana",
    }
    assert len({row["thread_uuid"] for row in double.messages}) == 3


# Deliveries


def test_a_turn_is_stored_once_even_if_zep_forgets_the_idempotency_key(home: Home, double: ZepDouble) -> None:
    """The newest messages of the thread are looked at before a second attempt."""
    double.remembers_keys = False
    _turn(home.start(), "one")
    home.lose_record()
    _turn(home.start(), "one", attempt=2)
    assert [row["content"] for row in double.messages] == ["one", "Noted."]


def test_a_long_turn_is_sent_in_parts_and_completed(home: Home, double: ZepDouble) -> None:
    """At most thirty messages per request; parts that arrived are not sent again."""
    text = " ".join(f"word{number:05}" for number in range(15_000))
    _turn(home.start(), text)
    stored = double.messages
    assert len(stored) > 30
    double.messages, double.remembers_keys = stored[:30], False
    home.lose_record()
    _turn(home.start(), text, attempt=2)
    assert [row["content"] for row in double.messages] == [row["content"] for row in stored]


def test_a_conflict_is_temporary(home: Home, double: ZepDouble) -> None:
    """The first attempt may still be running at Zep."""
    provider = home.start()
    _turn(provider, "one")
    double.fail(409)
    with pytest.raises(TemporaryProviderError, match="still be running"):
        _turn(provider, "two", "k2")


def test_curated_memory_is_mirrored_as_episodes(home: Home, double: ZepDouble) -> None:
    """Replacing and removing delete the old one; the same entry is stored once."""
    provider = home.start()
    provider.on_memory_write("add", "user", "Likes chess.", {}, idempotency_key="w1")
    provider.on_memory_write("add", "user", "Likes chess.", {}, idempotency_key="w2")
    provider.on_memory_write("add", "memory", "The build needs make.", {}, idempotency_key="w3")
    assert [row["content"] for row in double.episodes] == ["Likes chess.", "The build needs make."]
    provider.on_memory_write("replace", "user", "Likes go.", {"old_text": "Likes chess."}, idempotency_key="w4")
    provider.on_memory_write("remove", "memory", "", {"old_text": "The build needs make."}, idempotency_key="w5")
    assert [row["content"] for row in double.episodes] == ["Likes go."]


# Recall


def test_facts_that_are_no_longer_true_are_not_recalled(home: Home, double: ZepDouble) -> None:
    """Zep keeps them with the time when they ended; the tool shows them with that time."""
    provider = home.start()
    _turn(provider, "The zebra is called Otto.")
    double.edges[0]["invalid_at"] = "2026-01-01T00:00:00Z"
    assert provider.prefetch("zebra", session_id="s1") == ""
    (found,) = _call(provider, "zep_search", query="zebra")["results"]
    assert found["no_longer_true_since"] == "2026-01-01T00:00:00Z"
    double.edges[0]["invalid_at"] = "2999-01-01T00:00:00Z"
    assert provider.prefetch("zebra", session_id="s1").startswith("- The zebra is called Otto. (Zep, fact, 2026-11-16")


def test_the_context_of_the_thread_is_prepared_for_the_next_turn(home: Home) -> None:
    """Its lines are items, without headings and tags."""
    provider = home.start()
    _turn(provider, "The zebra is called Otto.")
    provider.queue_prefetch("anything", session_id="s1")
    recalled = provider.prefetch("something else", session_id="s1").splitlines()
    assert recalled == ["- The zebra is called Otto. (Zep, context)", "- Noted. (Zep, context)"]
    assert provider.prefetch("something else", session_id="s1") == ""


def test_nothing_is_created_by_recall(home: Home, double: ZepDouble) -> None:
    """A user whom Zep does not know has no memories."""
    provider = home.start()
    assert provider.prefetch("zebra", session_id="s1") == ""
    provider.queue_prefetch("zebra", session_id="s1")
    assert _call(provider, "zep_search", query="zebra") == {"results": [], "count": 0}
    assert _call(provider, "zep_context", query="zebra") == {"context": ""}
    assert double.users == {}


# Tools


def test_the_tools_search_remember_and_forget(home: Home, double: ZepDouble) -> None:
    """Each in the user's own graph."""
    provider = home.start()
    stored = _call(provider, "zep_remember", content="The zebra is called Otto.")["id"]
    assert [row["uuid"] for row in double.episodes] == [stored]
    (fact,) = _call(provider, "zep_search", query="zebra", scope="facts")["results"]
    assert _call(provider, "zep_search", query="zebra", scope="messages")["results"][0]["id"] == stored
    assert _call(provider, "zep_search", query="zebra", scope="entities")["count"] == 0
    assert _call(provider, "zep_context", query="zebra") == {"context": "The zebra is called Otto."}
    assert _call(provider, "zep_forget", id=fact["id"])["result"] == "deleted"
    assert _call(provider, "zep_forget", id=stored)["result"] == "deleted"
    assert (double.episodes, double.edges) == ([], [])


def test_nothing_of_another_user_can_be_deleted(home: Home, double: ZepDouble) -> None:
    """Neither with an id nor with a path in its place."""
    stored = _call(home.start("ana"), "zep_remember", content="Ana has a zebra.")["id"]
    ben = home.start("ben")
    _turn(ben, "hello")
    user = next(number for number, row in double.users.items() if row["user_id"].endswith("ana"))
    for wrong in (stored, f"../../{user}/episodes/{stored}", "none"):
        assert "error" in _call(ben, "zep_forget", id=wrong)
    assert stored in [row["uuid"] for row in double.episodes]


# Forgetting


def test_one_conversation_is_forgotten_with_what_was_extracted_from_it(home: Home, double: ZepDouble) -> None:
    """Its thread and episodes; the report names what Zep may keep."""
    provider = home.start()
    _turn(provider, "one", "k1", "s1")
    _turn(provider, "two", "k2", "s2")
    report = provider.forget(["s1"])
    assert report["deleted"] == ["1 turn"]
    assert "several conversations" in report["remaining"][0]
    assert [row["content"] for row in double.messages] == ["two", "Noted."]
    assert [row["content"] for row in double.episodes] == ["two", "Noted."]
    _turn(provider, "again", "k3", "s1")
    assert len(double.threads) == 2


def test_everything_is_forgotten_by_deleting_the_user(home: Home, double: ZepDouble) -> None:
    """Of this user only; a later turn creates the user again."""
    ana, ben = home.start("ana"), home.start("ben")
    _turn(ana, "one")
    _turn(ben, "two")
    ana.on_memory_write("add", "user", "Likes chess.", {}, idempotency_key="w1")
    report = ana.forget()
    assert report == {"deleted": ["1 turn", "1 memory write"], "remaining": []}
    assert {row["user_id"] for row in double.users.values()} == {"memoranda_default__ben"}
    assert [row["content"] for row in double.messages] == ["two", "Noted."]
    _turn(ana, "three", "k3")
    assert len(double.users) == 2


# Configuration


def test_a_key_is_required(tmp_path: Path) -> None:
    """Without network."""
    assert not ZepProvider(tmp_path).is_available()
    assert ZepProvider(tmp_path, {"api_key": "x"}).is_available()


def test_the_status_shows_the_user_at_zep(tmp_path: Path) -> None:
    """And a prefix that could be mistaken is refused."""
    status = ZepProvider(tmp_path, {"api_key": "x", "user_prefix": "mine"}).get_status_config({})
    assert status == {"user_at_vendor": "mine_default"}
    with pytest.raises(PermanentProviderError, match="user_prefix"):
        ZepProvider(tmp_path, {"api_key": "x", "user_prefix": "a_b"}).get_status_config({})


def test_a_search_that_must_look_up_the_user_first_has_one_deadline(home: Home, double: ZepDouble) -> None:
    """Two slow calls do not take twice the time that a turn waits."""
    provider = home.start()
    _turn(provider, "I like tea.")
    home.lose_record()
    provider = home.start()
    double.answer_seconds = 0.3
    with pytest.raises(TemporaryProviderError):
        provider.prefetch("tea", session_id="s1", seconds=0.45)
