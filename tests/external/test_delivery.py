"""Deliveries get through in the end, whatever a provider does meanwhile, and keep their order."""

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import PermanentProviderError
from memoranda.external.manager import MemoryManager
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.remote import RemoteClient
from memoranda.external.settings import ProviderSettings
from tests.external.http_service import Exchange, serving
from tests.external.samples import QUICK, InMemory, Scripted, managed
from tests.timing import GIVE_UP, HANG, wait_until, without_waiting


class Flaky(InMemory):
    """Fails for what is in `failing`."""

    def __init__(self, *failing: str) -> None:
        super().__init__()
        self.failing = set(failing)

    def sync_turn(self, user_content: str, assistant_content: str, **facts: Any) -> None:
        if user_content in self.failing:
            raise ConnectionError(f"cannot take {user_content}")
        super().sync_turn(user_content, assistant_content, **facts)


def test_what_fails_is_retried_and_delays_its_own_session_only(tmp_path: Path) -> None:
    """Another session's turns go by; its own come after it, in order."""
    provider = Flaky("a1")
    manager = managed(tmp_path, provider, ProviderSettings(first_retry_seconds=0.01, max_retry_seconds=0.02))
    for turn in ("a1", "a2", "a3"):
        assert manager.sync_all(turn, "answer", "a")
    for turn in ("b1", "b2"):
        assert manager.sync_all(turn, "answer", "b")
    wait_until(lambda: provider.turns() == ["b1", "b2"] and manager.backlog().waiting == 3)
    backlog = manager.backlog()
    assert (backlog.waiting, backlog.parked, backlog.last_error) == (3, 0, "ConnectionError: cannot take a1")
    assert manager.status().health.phase == "sync_turn"
    provider.failing.clear()
    assert manager.drain(GIVE_UP)
    assert provider.turns("a") == ["a1", "a2", "a3"]
    assert manager.status().health.healthy
    manager.shutdown_all()


def test_poison_is_parked_and_its_session_continues(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is said loudly, it is shown, and it is delivered when it is tried again and works."""
    provider = Flaky("poison")
    manager = managed(tmp_path, provider)
    manager.sync_all("poison", "answer", "a")
    manager.sync_all("a2", "answer", "a")
    for number in range(20):
        manager.sync_all(f"b{number}", "answer", "b")
        time.sleep(0.01)
    assert manager.drain(GIVE_UP)
    assert provider.turns("a") == ["a2"]
    assert (manager.backlog().waiting, manager.backlog().parked) == (0, 1)
    assert "is parked: ConnectionError: cannot take poison" in caplog.text
    provider.failing.clear()
    assert manager.retry_failed() == 1
    assert manager.drain(GIVE_UP)
    assert provider.turns("a") == ["a2", "poison"]
    manager.shutdown_all()


class Counting(InMemory):
    """Notes the attempt of each delivery, and fails while `error` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts: list[tuple[str, int]] = []
        self.times: list[float] = []
        self.error: Exception | None = None

    def sync_turn(self, user_content: str, assistant_content: str, **facts: Any) -> None:
        self.attempts.append((user_content, facts["attempt"]))
        self.times.append(facts["timestamp"])
        if self.error is not None:
            raise self.error


def test_a_delivery_says_its_attempt_and_when_it_was_queued(tmp_path: Path) -> None:
    """A provider knows when an earlier attempt may have reached its service."""
    provider = Counting()
    provider.error = ConnectionError()
    before = time.time()
    manager = managed(tmp_path, provider, ProviderSettings(first_retry_seconds=0.01, max_retry_seconds=0.02))
    manager.sync_all("a", "answer", "s")
    wait_until(lambda: len(provider.attempts) >= 3)
    provider.error = None
    assert manager.drain(GIVE_UP)
    manager.sync_all("b", "answer", "s")
    assert manager.drain(GIVE_UP)
    assert [attempt for _, attempt in provider.attempts[:-1]] == list(range(1, len(provider.attempts)))
    assert provider.attempts[-1] == ("b", 1)
    assert len(set(provider.times)) == 2
    assert before <= min(provider.times) <= max(provider.times) <= time.time()
    manager.shutdown_all()


def test_a_parked_delivery_that_is_retried_is_not_a_first_attempt(tmp_path: Path) -> None:
    """It may have been stored before it was parked, although its attempts are counted from zero."""
    provider = Counting()
    provider.error = PermanentProviderError("refused")
    # The pause after which a parked delivery is made again by itself is long.
    manager = managed(tmp_path, provider, ProviderSettings())
    manager.sync_all("a", "answer", "s")
    assert manager.drain(GIVE_UP)
    provider.error = None
    assert manager.retry_failed() == 1
    assert manager.drain(GIVE_UP)
    assert provider.attempts == [("a", 1), ("a", 2)]
    manager.shutdown_all()


def test_a_delivery_that_another_process_may_have_made_is_not_a_first_attempt(tmp_path: Path) -> None:
    """A process that was killed may have delivered a job without removing it."""
    outbox = Outbox(tmp_path)
    outbox.put("in-memory", "turn", "s", {"user_content": "a", "assistant_content": "b"}, {"session_id": "s"})
    outbox.release()
    outbox.close()
    provider = Counting()
    manager = managed(tmp_path, provider)
    assert manager.drain(GIVE_UP)
    assert provider.attempts == [("a", 2)]
    manager.shutdown_all()


@pytest.mark.slow
def test_a_hanging_delivery_is_seen_and_nothing_is_lost(tmp_path: Path) -> None:
    """Nothing waits for it, not even shutting down; the next start delivers it, with the same key."""
    release = threading.Event()
    keys: list[str] = []

    def hang(*args: Any, **facts: Any) -> None:
        keys.append(facts["idempotency_key"])
        release.wait(HANG)

    # Long enough for a busy machine to renew it in time.
    settings = replace(QUICK, lease_seconds=2.0)
    manager = managed(tmp_path, Scripted(sync_turn=hang), settings)
    began = time.monotonic()
    assert manager.sync_all("q1", "a1")
    assert manager.sync_all("q2", "a2")
    assert time.monotonic() - began < GIVE_UP
    wait_until(lambda: manager.backlog().last_error == "no answer within 0.3 s")
    # Longer than it is held: it is renewed, so no other process delivers it at the same time.
    time.sleep(settings.lease_seconds)
    assert Outbox(tmp_path, settings).claim("in-memory") is None
    began = time.monotonic()
    assert manager.shutdown_all() is False
    assert time.monotonic() - began < GIVE_UP

    second = InMemory()
    following = managed(tmp_path, second)
    assert following.drain(GIVE_UP)
    assert second.turns() == ["q1", "q2"]
    assert second.keys[0] == keys[0]
    assert len(keys) == 1
    assert following.shutdown_all() is True
    release.set()


@pytest.mark.slow
def test_shutting_down_delivers_what_it_can_and_leaves_the_rest_free(tmp_path: Path) -> None:
    """A slow provider gets some of it; the next start need not wait for anything."""
    all_queued = threading.Event()

    def take_a_while(*args: Any, **facts: Any) -> None:
        all_queued.wait(HANG)
        time.sleep(0.1)

    manager = managed(tmp_path, Scripted(sync_turn=take_a_while), ProviderSettings(shutdown_seconds=2))
    for number in range(60):
        manager.sync_all(f"q{number}", "a")
    all_queued.set()
    assert manager.shutdown_all() is False
    left = Outbox(tmp_path).backlog().waiting
    assert 10 <= left < 60
    second = InMemory()
    following = managed(tmp_path, second)
    assert following.drain(GIVE_UP)
    assert len(second.turns()) == left
    following.shutdown_all()


def test_what_may_still_be_under_way_is_not_free_at_once(tmp_path: Path) -> None:
    """After shutting down with a delivery that hangs, another process gets the other sessions, and not that one yet."""
    begun, release = threading.Event(), threading.Event()

    def hang(*args: Any, **facts: Any) -> None:
        begun.set()
        release.wait(HANG)

    manager = managed(tmp_path, Scripted(sync_turn=hang), ProviderSettings(shutdown_seconds=0.4))
    assert manager.sync_all("under way", "a", "a")
    assert begun.wait(GIVE_UP)
    assert manager.sync_all("after it", "a", "a")
    assert manager.sync_all("elsewhere", "a", "b")
    assert manager.shutdown_all() is False
    other = Outbox(tmp_path)
    # As another process does; the thread of this one may not have read everything from the record.
    other.catch_up("in-memory")
    job = other.claim("in-memory")
    assert job is not None
    assert job.args["user_content"] == "elsewhere"
    other.delivered(job)
    assert other.claim("in-memory") is None
    assert other.backlog().waiting == 2
    release.set()


@pytest.mark.slow
def test_a_delivery_that_is_almost_done_is_waited_for(tmp_path: Path) -> None:
    """Within the limit for shutting down."""
    manager = managed(tmp_path, Scripted(sync_turn=lambda *args, **facts: time.sleep(1.2)), ProviderSettings())
    assert manager.sync_all("q", "a")
    assert manager.shutdown_all() is True
    assert not Outbox(tmp_path).backlog()


def test_a_delivery_that_comes_through_after_the_end_is_not_made_again(tmp_path: Path) -> None:
    """While the process lives: the turn leaves the queue as soon as the provider has taken it."""
    begun, release = threading.Event(), threading.Event()

    def slow(*args: Any, **facts: Any) -> None:
        begun.set()
        release.wait(HANG)

    manager = managed(tmp_path, Scripted(sync_turn=slow), ProviderSettings(shutdown_seconds=0.4))
    assert manager.sync_all("slow", "a")
    assert begun.wait(GIVE_UP)
    assert manager.shutdown_all() is False
    left = Outbox(tmp_path)
    assert left.backlog().waiting == 1
    release.set()
    wait_until(lambda: not left.backlog())


def test_one_that_fails_after_the_end_is_made_again(tmp_path: Path) -> None:
    """At least once, as ever."""
    begun, release = threading.Event(), threading.Event()

    def fail(*args: Any, **facts: Any) -> None:
        begun.set()
        release.wait(HANG)
        raise ConnectionError("lost")

    manager = managed(tmp_path, Scripted(sync_turn=fail))
    assert manager.sync_all("slow", "a")
    assert begun.wait(GIVE_UP)
    assert manager.shutdown_all() is False
    release.set()
    following = InMemory()
    second = managed(tmp_path, following)
    assert second.drain(GIVE_UP)
    assert following.turns() == ["slow"]
    second.shutdown_all()


def test_a_switch_that_was_left_behind_does_not_lead_the_provider_astray(tmp_path: Path) -> None:
    """It receives the switch, and is switched back to the session that it is in."""
    before = managed(tmp_path, Scripted(on_session_switch=lambda *args, **facts: 1 / 0))
    before.on_session_switch("s2", parent_session_id="s1")
    before.shutdown_all()
    provider = InMemory()
    manager = managed(tmp_path, provider)
    assert manager.drain(GIVE_UP)
    wait_until(lambda: len(provider.told) == 2)
    assert [told[:2] for told in provider.told] == [("switch", "s2"), ("switch", "s1")]
    assert provider.told[1][-1] == "resume"
    manager.shutdown_all()


def _as_user(home: Path, provider: InMemory, user: str, *turns: str) -> list[str]:
    manager = MemoryManager(home, QUICK)
    assert manager.add_provider(provider)
    manager.initialize_all("s1", user_id=user)
    for turn in turns:
        manager.sync_all(turn, "answer")
    manager.drain(0.3)
    manager.shutdown_all()
    return provider.turns()


def test_each_user_has_separate_jobs(tmp_path: Path) -> None:
    """What one said waits for a provider that is started for the same one."""
    _as_user(tmp_path, Flaky("ana's"), "ana", "ana's")
    assert _as_user(tmp_path, InMemory(), "ben", "ben's") == ["ben's"]
    assert _as_user(tmp_path, InMemory(), "ana") == ["ana's"]


@pytest.mark.slow
def test_telling_costs_the_conversation_one_commit(tmp_path: Path) -> None:
    """A provider that hangs slows no turn down."""
    release = threading.Event()
    manager = managed(tmp_path, Scripted(sync_turn=lambda *args, **facts: release.wait(HANG)))
    with without_waiting():
        for number in range(60):
            assert manager.sync_all(f"q{number}", "a")
    release.set()
    manager.shutdown_all()


class Remote(InMemory):
    """Sends turns to a service over HTTP, as a vendor's provider does."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.client = RemoteClient("in-memory", url, headers={"Authorization": "Bearer sk-verysecret0123456789"})

    def sync_turn(self, user_content: str, assistant_content: str, **facts: Any) -> None:
        self.client.post("turns", {"user": user_content}, idempotency_key=facts["idempotency_key"])

    def shutdown(self) -> None:
        self.client.close()


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_turns_wait_in_order_while_a_service_refuses_everything(tmp_path: Path, status: int) -> None:
    """None is skipped, and the status says what to do; nothing of the key is shown."""
    with serving(lambda exchange: exchange.answer(status, {"detail": "bad key sk-verysecret0123456789"})) as service:
        settings = ProviderSettings(first_retry_seconds=0.01, max_retry_seconds=0.02, max_attempts=2)
        manager = managed(tmp_path, Remote(service.url), settings)
        for turn in ("a1", "a2"):
            assert manager.sync_all(turn, "hi", "a")
        wait_until(lambda: len(service.requests) > 5)
        backlog = manager.backlog()
        refused = len(service.requests)
        service.respond = lambda exchange: exchange.answer(200, {})
        assert manager.drain(GIVE_UP)
        manager.shutdown_all()
    assert (backlog.waiting, backlog.parked) == (2, 0)
    assert backlog.last_error.startswith(f"POST /turns at 127.0.0.1: {status} ")
    assert "'memoranda provider setup in-memory' sets" in backlog.last_error
    assert "verysecret" not in backlog.last_error
    sent = [json.loads(body)["user"] for *_, body in service.requests]
    assert set(sent[:refused]) == {"a1"}
    assert sent[-2:] == ["a1", "a2"]


def test_a_turn_that_a_service_refuses_for_its_content_is_retried_by_itself(tmp_path: Path) -> None:
    """Its session continues without it meanwhile."""
    with serving(lambda exchange: exchange.answer(422 if b"odd" in exchange.body else 200, {})) as service:
        settings = ProviderSettings(first_retry_seconds=0.01, max_retry_seconds=0.02)
        manager = managed(tmp_path, Remote(service.url), settings)
        for turn in ("odd", "a2"):
            assert manager.sync_all(turn, "hi", "a")
        wait_until(lambda: manager.backlog().parked == 1 and len(service.requests) > 2)
        service.respond = lambda exchange: exchange.answer(200, {})
        wait_until(lambda: not manager.backlog())
        manager.shutdown_all()


@pytest.mark.slow
def test_turns_wait_for_as_long_as_a_service_asks(tmp_path: Path) -> None:
    """Nothing more is sent meanwhile, not even another session's turn; then everything arrives, with the same key."""
    refused: list[float] = []
    accepted: list[float] = []

    def ask_to_wait(exchange: Exchange) -> None:
        refused.append(time.monotonic())
        exchange.answer(429, {}, Retry_After="1")

    def accept(exchange: Exchange) -> None:
        accepted.append(time.monotonic())
        exchange.answer(200, {})

    with serving(ask_to_wait) as service:
        manager = managed(tmp_path, Remote(service.url), ProviderSettings(first_retry_seconds=0.01))
        assert manager.sync_all("a1", "x", "a")
        wait_until(lambda: manager.backlog().failing == 1)
        service.respond = accept
        assert manager.sync_all("b1", "x", "b")
        assert manager.drain(GIVE_UP)
        manager.shutdown_all()
    assert accepted[0] - refused[-1] > 0.9
    assert [json.loads(body)["user"] for *_, body in service.requests[len(refused) :]] == ["a1", "b1"]
    keys = [headers["Idempotency-Key"] for _, _, headers, _ in service.requests]
    assert len(set(keys)) == 2
