"""Recall comes in time or not at all, for the session that asked, within its budget."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from memoranda.external.settings import ProviderSettings
from tests.external.samples import QUICK, InMemory, managed
from tests.timing import GIVE_UP, HANG, wait_until

pytestmark = pytest.mark.slow


class Slow(InMemory):
    """Recalls `<query>!` after as many seconds as the query says."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self.release = threading.Event()
        self.caller: threading.Thread | None = None

    def prefetch(self, query: str, *, session_id: str = "", **facts: Any) -> str:
        self.caller = threading.current_thread()
        self.asked.append((query, session_id))
        if query.startswith("hang"):
            self.release.wait(HANG)
        return f"{query}!"


def _late(provider: Slow) -> None:
    """Let the provider answer, and wait for the thread that called it, which takes what it returned."""
    assert provider.caller is not None
    provider.release.set()
    provider.caller.join(GIVE_UP)
    provider.release.clear()


def test_recall_is_what_the_provider_says(tmp_path: Path) -> None:
    """With the session that asked; nothing for an empty query, and the provider is not asked then."""
    provider = Slow()
    manager = managed(tmp_path, provider)
    assert manager.prefetch_all("deadlock", "s7") == "deadlock!"
    assert manager.prefetch_all("again") == "again!"
    assert manager.prefetch_all("  ") == ""
    assert provider.asked == [("deadlock", "s7"), ("again", "s1")]
    health = manager.status().health
    assert health.last_recall is not None
    assert health.latency is not None
    assert (health.last_recall_chars, health.healthy) == (6, True)
    manager.shutdown_all()


def test_a_hanging_provider_costs_one_deadline(tmp_path: Path) -> None:
    """The next turns do not wait and do not ask, until it has returned."""
    provider = Slow()
    manager = managed(tmp_path, provider)
    began = time.monotonic()
    assert manager.prefetch_all("hang") == ""
    assert 0.35 < time.monotonic() - began < GIVE_UP
    began = time.monotonic()
    assert manager.prefetch_all("b") == ""
    assert time.monotonic() - began < GIVE_UP
    assert len(provider.asked) == 1
    health = manager.status().health
    assert (health.phase, health.last_error) == ("prefetch", "no answer within 0.4 s")
    _late(provider)
    assert manager.prefetch_all("c") == "c!"
    manager.shutdown_all()


def test_a_late_recall_is_used_when_the_next_one_is_late_too(tmp_path: Path) -> None:
    """By the same session, and once."""
    provider = Slow()
    manager = managed(tmp_path, provider)
    assert manager.prefetch_all("hang 1") == ""
    _late(provider)
    assert manager.prefetch_all("hang 2") == "hang 1!"
    assert manager.prefetch_all("x") == ""
    _late(provider)
    assert manager.prefetch_all("new") == "new!"
    assert manager.prefetch_all("hang 3") == ""
    _late(provider)
    assert manager.prefetch_all("hang 4", "another session") == ""
    manager.shutdown_all()


@pytest.mark.parametrize("switch", [{"new_session_id": "s2"}, {"new_session_id": "s1", "rewound": True}])
def test_what_is_late_is_dropped_when_the_session_is_switched(tmp_path: Path, switch: dict[str, Any]) -> None:
    """Also when it goes back, and also what is still on its way."""
    provider = Slow()
    manager = managed(tmp_path, provider)
    assert manager.prefetch_all("hang 1", "s1") == ""
    manager.on_session_switch(**switch)
    _late(provider)
    assert manager.prefetch_all("hang 2", "s1") == ""
    manager.on_session_switch(**switch)
    manager.on_session_switch("s1")
    _late(provider)
    assert manager.prefetch_all("fresh", "s1") == "fresh!"
    manager.shutdown_all()


def test_a_switch_while_waiting_drops_what_comes(tmp_path: Path) -> None:
    """Even in time."""
    provider = Slow()
    manager = managed(tmp_path, provider, ProviderSettings(recall_seconds=5, shutdown_seconds=0.5))
    got: list[str] = []
    thread = threading.Thread(target=lambda: got.append(manager.prefetch_all("hang", "s1")))
    thread.start()
    wait_until(lambda: provider.asked)
    manager.on_session_switch("s2")
    _late(provider)
    thread.join(GIVE_UP)
    assert got == [""]
    manager.shutdown_all()


@pytest.mark.parametrize("recalled", [5, ["a"], {"a": 1}, b"bytes"])
def test_anything_but_text_is_a_failure(tmp_path: Path, recalled: Any) -> None:
    """And nothing is recalled."""

    class Garbage(InMemory):
        def prefetch(self, query: str, *, session_id: str = "", **facts: Any) -> str:
            return recalled  # type: ignore[no-any-return]

    manager = managed(tmp_path, Garbage())
    assert manager.prefetch_all("q") == ""
    assert "instead of text" in manager.status().health.last_error
    manager.shutdown_all()


def test_a_flood_is_cut_to_the_budget(tmp_path: Path) -> None:
    """A megabyte becomes as many characters as are allowed, whole lines where there are any."""

    class Flood(InMemory):
        def prefetch(self, query: str, *, session_id: str = "", **facts: Any) -> str:
            return "x" * 1_000_000 if query == "x" else "a line\n" * 150_000

    manager = managed(tmp_path, Flood(), ProviderSettings(recall_chars=1_000, recall_seconds=10))
    assert manager.prefetch_all("x") == "x" * 999 + "…"
    lines = manager.prefetch_all("lines")
    assert 900 < len(lines) <= 1_000
    assert lines.endswith("a line…")
    manager.shutdown_all()


def test_recall_may_be_asked_for_less_often(tmp_path: Path) -> None:
    """Every third turn of a session, beginning with the first."""
    provider = Slow()
    manager = managed(tmp_path, provider, ProviderSettings(every_n_turns=3))
    assert [bool(manager.prefetch_all(f"turn {number}")) for number in range(7)] == [True, False, False] * 2 + [True]
    assert manager.prefetch_all("in another session", "s9")
    manager.shutdown_all()


@pytest.mark.parametrize(("mode", "recalls", "tools"), [("hybrid", 1, 1), ("context", 1, 0), ("tools", 0, 1)])
def test_modes_say_what_a_provider_is_used_for(tmp_path: Path, mode: Any, recalls: int, tools: int) -> None:
    """Recall, tools, or both."""
    manager = managed(tmp_path, Slow(), ProviderSettings(mode=mode))
    assert len([text for text in [manager.prefetch_all("q")] if text]) == recalls
    assert len(manager.tools_for(None)) == tools
    assert len(manager.status().tools) == tools
    assert manager.answer_tool("notes_find", {"text": "q"}).json["success"] is bool(tools)
    manager.shutdown_all()


def test_a_provider_may_tighten_the_limits_and_not_widen_them(tmp_path: Path) -> None:
    """Fewer characters, a longer cadence, a shorter deadline, half of both modes; nonsense is ignored."""
    settings = ProviderSettings(recall_chars=100, every_n_turns=2, recall_seconds=1.0)
    tight = settings.narrowed({"mode": "context", "recall_chars": 50, "every_n_turns": 4, "recall_seconds": 0.5})
    assert (tight.mode, tight.recall_chars, tight.every_n_turns, tight.recall_seconds) == ("context", 50, 4, 0.5)
    assert settings.narrowed({"recall_chars": 500, "every_n_turns": 1, "recall_seconds": 9.0}) == settings
    assert (
        settings.narrowed({"mode": "loud", "recall_chars": "5", "every_n_turns": -1, "recall_seconds": True})
        == settings
    )
    assert ProviderSettings(mode="context").narrowed({"mode": "tools"}).mode == "context"

    class Modest(Slow):
        def limits(self) -> dict[str, Any]:
            return {"recall_chars": 3}

    manager = managed(tmp_path, Modest())
    assert manager.prefetch_all("abcdef") == "ab…"
    manager.shutdown_all()


def test_the_next_recall_is_warmed_up_after_a_turn(tmp_path: Path) -> None:
    """With what the user said; a provider that hangs there is not asked again."""
    release = threading.Event()
    warmed: list[str] = []

    class Warm(InMemory):
        def queue_prefetch(self, query: str, *, session_id: str = "", **facts: Any) -> None:
            warmed.append(f"{session_id} {query}")
            release.wait(HANG)

    manager = managed(tmp_path, Warm(), QUICK)
    manager.sync_all("first", "answer")
    manager.queue_prefetch_all("first")
    wait_until(lambda: warmed == ["s1 first"])
    manager.sync_all("second", "answer")
    manager.queue_prefetch_all("second")
    assert manager.drain(GIVE_UP)
    release.set()
    assert warmed == ["s1 first"]
    manager.shutdown_all()


def test_a_warm_up_that_fails_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing waits for it, so it is logged when it happens."""

    class Cold(InMemory):
        def queue_prefetch(self, query: str, *, session_id: str = "", **facts: Any) -> None:
            raise ConnectionError("refused")

    manager = managed(tmp_path, Cold())
    manager.queue_prefetch_all("q")
    wait_until(lambda: "failed in queue_prefetch: ConnectionError: refused" in caplog.text)
    assert manager.status().health.phase == "queue_prefetch"
    manager.shutdown_all()
