"""The manager takes one provider in, tells it everything in order, and lets nothing of its trouble through.

The manager has the methods that agents written for Hermes call, and each does what its name says.
"""

import json
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoranda.external.manager import MemoryManager
from memoranda.external.provider import MemoryProvider
from memoranda.external.settings import CORE_TOOLS, ProviderSettings
from memoranda.safety.fence import PAST_DATA
from memoranda.support.tool import Tool
from tests.external.samples import QUICK, HermesStyle, InMemory, Scripted, managed
from tests.timing import GIVE_UP, HANG, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def provider() -> InMemory:
    return InMemory()


@pytest.fixture
def manager(tmp_path: Path, provider: InMemory) -> Iterator[MemoryManager]:
    made = managed(tmp_path, provider, clean=lambda text: text.replace("<fence>", ""))
    yield made
    made.shutdown_all()


def _tool(name: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "Does it.", "parameters": {"type": "object", "properties": {}}, **more}


def test_without_a_provider_there_is_nothing_and_nothing_fails(tmp_path: Path) -> None:
    """Built-in memory is all there is; no file is made."""
    manager = MemoryManager(tmp_path)
    assert not manager.initialize_all("s1")
    manager.on_turn_start(1, "hello")
    assert (manager.prefetch_all("q"), manager.build_system_prompt(), manager.on_pre_compress([])) == ("", "", "")
    assert not manager.sync_all("a", "b", "s1")
    assert not manager.on_memory_write("add", "memory", "x")
    assert not manager.on_session_switch("s2")
    assert not manager.on_session_end([])
    assert not manager.on_delegation("a", "b")
    assert manager.tools_for(None) == []
    assert manager.answer_tool("x", {}).json["success"] is False
    assert manager.drain(0)
    assert manager.retry_failed() == 0
    status = manager.status()
    assert (status.provider, status.ready, bool(status.backlog)) == ("", False, False)
    assert manager.shutdown_all()
    assert list(tmp_path.iterdir()) == []


def test_a_second_provider_is_refused_with_a_warning(
    manager: MemoryManager, provider: InMemory, caplog: pytest.LogCaptureFixture
) -> None:
    """The first one stays, and the second is not even looked at."""
    second = Scripted(name="second")
    assert manager.add_provider(second) is False
    assert manager.provider is provider
    assert second.calls == []
    assert "A manager has one memory provider: in-memory stays" in caplog.text


@pytest.mark.parametrize(
    "scripts",
    [
        {"name": "builtin"},
        {"name": " "},
        {"name": 5},
        {"is_available": lambda: False},
        {"is_available": lambda: 1 / 0},
        {"is_available": lambda: time.sleep(8)},
    ],
)
def test_a_refused_provider_leaves_no_trace(tmp_path: Path, scripts: dict[str, Any]) -> None:
    """A bad name, or not available for whatever reason: the place stays free for another one."""
    manager = MemoryManager(tmp_path, QUICK)
    assert manager.add_provider(Scripted(**scripts)) is False
    assert manager.status().provider == ""
    assert manager.add_provider(InMemory()) is True


def test_a_provider_gets_its_home(manager: MemoryManager, provider: InMemory, tmp_path: Path) -> None:
    """The session, the home under the name that providers know, and whatever else the caller knows."""
    assert provider.started == {"session_id": "s1", "hermes_home": str(tmp_path)}
    assert manager.initialize_all("s2", platform="x") is True
    assert provider.started["session_id"] == "s1"


def test_everything_is_delivered_in_the_order_in_which_it_happened(manager: MemoryManager, provider: InMemory) -> None:
    """Turns, writes, sub-agents, the end of a session and the switch to the next, each once."""
    assert manager.sync_all("q1", "a1")
    assert manager.on_memory_write("replace", "user", "Likes tea.", {"old_text": "Likes coffee."})
    assert manager.on_delegation("look", "seen", child_session_id="c1")
    assert manager.sync_all("q2", "a2")
    assert manager.on_session_end([{"role": "user", "content": "q1"}])
    assert manager.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
    assert manager.sync_all("q3", "a3")
    assert manager.drain(GIVE_UP)
    assert provider.told == [
        ("turn", "s1", "q1", "a1"),
        ("write", "replace", "user", "Likes tea.", {"old_text": "Likes coffee."}),
        ("delegation", "look", "seen", "c1"),
        ("turn", "s1", "q2", "a2"),
        ("end", "s1", 1),
        ("switch", "s2", "s1", True, False, "new_session"),
        ("turn", "s2", "q3", "a3"),
    ]
    assert all(provider.keys)
    assert not manager.backlog()


def test_only_completed_turns_are_told_without_what_was_recalled(tmp_path: Path) -> None:
    """A question and an answer, as text; the transcript goes along, cleaned as well, to those who take it."""
    told: list[Any] = []
    provider = Scripted(sync_turn=lambda *args, **facts: told.append((args, facts.get("messages"))))
    manager = managed(tmp_path, provider, clean=lambda text: text.replace("<fence>", ""))
    for user, assistant in [("", "a"), ("q", ""), ("q", None), (None, "a"), ("<fence>", "a"), ("q", " \n"), (5, "a")]:
        assert manager.sync_all(user, assistant) is False
    parts = [
        {"type": "text", "text": "<fence>look"},
        {"type": "image_url", "image_url": {}},
        {"type": "text", "text": 2},
    ]
    assert manager.sync_all(parts, "a\ud800<fence>", "s1", [{"role": "user", "content": parts[:1]}])
    assert manager.drain(GIVE_UP)
    assert told == [(("look", "a\ufffd"), [{"role": "user", "content": [{"type": "text", "text": "look"}]}])]
    manager.shutdown_all()


def test_a_turn_with_a_key_is_queued_once(tmp_path: Path) -> None:
    """However often it is handed over."""
    release = threading.Event()
    provider = Scripted(sync_turn=lambda *args, **facts: release.wait(GIVE_UP))
    manager = managed(tmp_path, provider)
    for _ in range(3):
        assert manager.sync_all("q", "a", key="turn 7")
    assert manager.backlog().waiting == 1
    release.set()
    manager.shutdown_all()


def test_what_no_hook_takes_is_not_queued(tmp_path: Path) -> None:
    """A hook that a provider does not have, an action that is no write, a switch to nowhere."""
    manager = managed(tmp_path, HermesStyle())
    assert not manager.on_delegation("task", "result")
    assert not manager.on_memory_write("read", "memory", "x")
    assert not manager.on_session_switch("")
    assert not (tmp_path / "home.db").exists()
    manager.shutdown_all()


def test_a_turn_begins_with_everything_that_is_known(tmp_path: Path) -> None:
    """The number, the message, the session and whatever the caller says; before compression the provider is asked."""
    told: list[Any] = []
    provider = Scripted(
        on_turn_start=lambda number, message, **facts: told.append((number, message, facts)),
        on_pre_compress=lambda messages: f"Keep {len(messages)}. " + "x" * 10_000,
    )
    manager = managed(tmp_path, provider)
    manager.on_turn_start(3, "hello", model="m", remaining_tokens=5)
    assert told == [(3, "hello", {"session_id": "s1", "model": "m", "remaining_tokens": 5})]
    assert manager.on_pre_compress([{"role": "user"}]).startswith("Keep 1. x")
    assert len(manager.on_pre_compress([])) == QUICK.recall_chars
    assert manager.build_system_prompt() == "Notes are kept."
    manager.shutdown_all()


def test_tools_are_known_after_the_start_and_when_they_change(manager: MemoryManager, provider: InMemory) -> None:
    """They can be called as any other tool, in the session that it is."""
    (tool,) = manager.tools_for(None)
    assert isinstance(tool, Tool)
    assert manager.status().tools == ("notes_find",)
    assert tool.call({"text": "x"}) == {"success": True, "found": [], "session": "s1"}
    provider.get_tool_schemas = lambda: [_tool("notes_find"), _tool("notes_more")]  # type: ignore[method-assign]
    provider.handle_tool_call = lambda tool_name, args, **facts: f'"{tool_name}"'  # type: ignore[method-assign]
    assert manager.answer_tool("notes_more", {}).json == {"success": True, "result": "notes_more"}
    assert manager.handle_tool_call("notes_none", {}) == (
        '{"success": false, "error": "No memory provider has a tool \'notes_none\'."}'
    )
    assert [tool.name for tool in manager.tools_for(None)] == ["notes_find", "notes_more"]


def test_tools_that_cannot_be_offered_are_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Core names, duplicates, no names, no JSON; wrapped ones are unwrapped. Said once."""
    itself: dict[str, Any] = {"name": "itself"}
    itself["parameters"] = itself
    schemas = [
        _tool("memory"), _tool("delegate_task"), _tool("read_file"), _tool("one"), _tool("one", description="again"),
        _tool(""), _tool(None), _tool("no spaces"), {"description": "nameless"}, "text", None, itself,
        {"type": "function", "function": _tool("wrapped")}, {"name": "bare"},
    ]  # fmt: skip
    manager = managed(tmp_path, Scripted(get_tool_schemas=lambda: schemas))
    tools = manager.tools_for(None)
    assert [tool.name for tool in tools] == ["one", "wrapped", "bare"]
    assert tools[0].description == "Does it."
    assert tools[2].parameters == {"type": "object", "properties": {}}
    warnings = [record.getMessage() for record in caplog.records if "is refused" in record.getMessage()]
    assert len(warnings) == len(set(warnings)) == 7
    assert "memory" in CORE_TOOLS
    manager.shutdown_all()


@pytest.mark.parametrize(
    ("toolsets", "expected"),
    [
        (None, True),
        ([], False),
        (["memory"], True),
        (["web"], False),
    ],
)
def test_tools_follow_the_platform(tmp_path: Path, toolsets: list[str] | None, expected: bool) -> None:
    """Only where the memory toolset is."""
    manager = managed(tmp_path, InMemory())
    assert bool(manager.tools_for(toolsets)) is expected
    manager.shutdown_all()


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"a": 1}', {"success": True, "a": 1}),
        ('{"error": "no"}', {"success": False, "error": "no"}),
        ('{"success": false}', {"success": False}),
        ("[1, 2]", {"success": True, "result": [1, 2]}),
        ("no JSON", {"success": True, "result": "no JSON", "recalled_from": f"in-memory: {PAST_DATA}"}),
        ({"a": "<fence>1"}, {"success": True, "a": "1"}),
        ({"<fence>a": 1}, {"success": True, "a": 1}),
        (None, {"success": False, "error": "returned no answer"}),
        ({1, 2}, {"success": False, "error": "answered with set, which is not JSON"}),
        ("[" * 100_000, {"success": True, "truncated": True, "result": "[" * 49_999 + "…"}),
    ],
)
def test_a_tool_answers_with_a_json_object_whatever_happens(tmp_path: Path, reply: Any, expected: Any) -> None:
    """Garbage, floods and values that are not text included."""
    provider = Scripted(handle_tool_call=lambda *args, **facts: reply)
    manager = managed(tmp_path, provider, clean=lambda text: text.replace("<fence>", ""))
    assert manager.answer_tool("notes_find", {}).json == expected
    manager.shutdown_all()


def _raise(error: BaseException) -> Any:
    raise error


def _hang(*args: Any, **facts: Any) -> Any:
    time.sleep(HANG)


@pytest.mark.parametrize(
    "trouble",
    [_hang, lambda *args, **facts: _raise(ValueError("no")), lambda *args, **facts: _raise(SystemExit()),
     lambda *args, **facts: _raise(KeyboardInterrupt()), lambda *args, **facts: object(), lambda a, b, c, d, e: None],
    ids=["hangs", "raises", "exits", "interrupts", "garbage", "wrong signature"],
)  # fmt: skip
def test_a_provider_in_trouble_changes_nothing_but_the_log(
    tmp_path: Path, trouble: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Every hook goes wrong; every call comes back in time with nothing, and shutting down does not take long."""
    hooks = ("system_prompt_block", "prefetch", "queue_prefetch", "sync_turn", "on_turn_start", "on_session_end",
             "on_session_switch", "on_pre_compress", "on_memory_write", "on_delegation", "get_tool_schemas",
             "handle_tool_call", "shutdown", "limits")  # fmt: skip
    manager = managed(tmp_path, Scripted(**dict.fromkeys(hooks, trouble)))
    began = time.monotonic()
    manager.on_turn_start(1, "hello")
    assert (manager.build_system_prompt(), manager.prefetch_all("q"), manager.on_pre_compress([])) == ("", "", "")
    assert manager.tools_for(None) == []
    assert manager.answer_tool("notes_find", {}).json["success"] is False
    assert manager.sync_all("q", "a")
    assert manager.on_memory_write("add", "memory", "x")
    assert manager.on_session_switch("s2")
    assert manager.status().provider == "in-memory"
    assert time.monotonic() - began < GIVE_UP
    began = time.monotonic()
    manager.shutdown_all()
    assert time.monotonic() - began < GIVE_UP
    assert "Memory provider in-memory failed in " in caplog.text
    assert all(record.levelno < logging.ERROR for record in caplog.records)


def test_a_provider_that_cannot_be_started_is_started_later(tmp_path: Path) -> None:
    """Meanwhile it is not asked, and what happens waits for it."""
    errors = [ConnectionError("refused")] * 3

    def initialize(session_id: str, **facts: Any) -> None:
        if errors:
            raise errors.pop()

    provider = Scripted(initialize=initialize)
    manager = managed(tmp_path, provider)
    assert manager.status().ready is False
    assert (manager.prefetch_all("q"), manager.tools_for(None)) == ("", [])
    assert manager.status().health.last_error == "ConnectionError: refused"
    assert manager.sync_all("q1", "a1")
    wait_until(lambda: manager.status().ready)
    assert manager.drain(GIVE_UP)
    assert provider.turns() == ["q1"]
    manager.shutdown_all()


def test_a_start_that_takes_long_is_not_waited_for(tmp_path: Path) -> None:
    """The provider joins in when it is ready, its tools included."""
    release = threading.Event()
    provider = Scripted()
    started = provider.initialize

    calls: list[str] = []

    def initialize(session_id: str, **facts: Any) -> None:
        calls.append(session_id)
        release.wait(HANG)
        started(session_id, **facts)

    provider.scripts["initialize"] = initialize
    began = time.monotonic()
    manager = managed(tmp_path, provider)
    assert time.monotonic() - began < GIVE_UP
    assert manager.sync_all("q1", "a1")
    release.set()
    wait_until(lambda: manager.status().ready)
    assert manager.status().tools == ("notes_find",)
    assert manager.drain(GIVE_UP)
    assert calls == ["s1"]
    manager.shutdown_all()


def test_a_damaged_outbox_does_not_stop_a_conversation(tmp_path: Path) -> None:
    """It is left as it is, and said; what happens meanwhile is recorded."""
    (tmp_path / "home.db").write_bytes(b"damage" * 1000)
    manager = managed(tmp_path, InMemory(), replace(QUICK, shutdown_seconds=HANG))
    assert manager.sync_all("q", "a") is True
    assert manager.drain(0.1) is False
    assert (manager.prefetch_all("q"), manager.status().health.phase) == ("", "outbox")
    assert "damaged" in manager.status().backlog.last_error
    began = time.monotonic()
    assert manager.shutdown_all() is False
    assert time.monotonic() - began < GIVE_UP
    assert (tmp_path / "home.db").read_bytes() == b"damage" * 1000


def test_after_the_end_nothing_is_called(manager: MemoryManager, provider: InMemory) -> None:
    """Shutting down twice is once."""
    manager.sync_all("q", "a")
    assert manager.shutdown_all() is True
    assert manager.shutdown_all() is True
    assert (provider.closed, provider.turns()) == (1, ["q"])
    assert manager.prefetch_all("q") == ""
    assert manager.sync_all("q", "a") is False
    assert manager.initialize_all("s1") is False


def test_a_duck_that_is_no_subclass_will_do(tmp_path: Path) -> None:
    """Only what it has is used."""

    class Duck:
        name = "duck"

        def is_available(self) -> bool:
            return True

        def initialize(self, session_id: str, **kwargs: Any) -> None: ...

        def get_tool_schemas(self) -> list[Any]:
            return []

        def prefetch(self, query: str) -> str:
            return "quack"

    manager = MemoryManager(tmp_path, ProviderSettings())
    duck: MemoryProvider = Duck()  # type: ignore[assignment]
    assert manager.add_provider(duck)
    assert manager.initialize_all("s1")
    assert manager.prefetch_all("q") == "quack"
    assert not manager.sync_all("q", "a")
    assert manager.build_system_prompt() == ""
    assert manager.status().health.last_error == ""
    assert manager.shutdown_all()


class Preparing(InMemory):
    """Also keeps for what recall was prepared."""

    def queue_prefetch(self, query: str, *, session_id: str = "", **facts: object) -> None:
        self.told.append(("prepare", query, session_id))


def test_a_conversation_by_the_names_of_hermes(tmp_path: Path) -> None:
    """Start, prompt, recall, sync, boundaries, writes, delegation and end reach the provider with their arguments."""
    provider = Preparing()
    manager = MemoryManager(tmp_path, QUICK)
    assert manager.add_provider(provider)
    assert manager.initialize_all("s1", platform="cli")
    assert provider.started == {"session_id": "s1", "platform": "cli", "hermes_home": str(tmp_path)}
    assert manager.build_system_prompt() == "Notes are kept."
    assert [schema["name"] for schema in manager.get_all_tool_schemas()] == ["notes_find"]
    assert json.loads(manager.handle_tool_call("notes_find", {"text": "tea"}, task_id="7"))["success"] is True

    messages = [{"role": "user", "content": "I like tea."}]
    manager.on_turn_start(1, "I like tea.", model="m")
    assert manager.sync_all("I like tea.", "Noted.", session_id="s1")
    assert manager.drain(GIVE_UP)
    assert manager.prefetch_all("What do I like", session_id="s1") == "Noted."
    assert not [line for line in provider.told if line[0] == "prepare"]
    manager.queue_prefetch_all("tea", session_id="s1")
    wait_until(lambda: ("prepare", "tea", "s1") in provider.told)
    assert manager.on_memory_write("add", "user", "Likes tea.", {"session_id": "s1"})
    assert manager.on_delegation("look", "seen", child_session_id="c1")
    assert isinstance(manager.on_pre_compress(messages), str)
    assert manager.on_session_end(messages)
    assert manager.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
    assert manager.drain(GIVE_UP)
    kinds = [line[0] for line in provider.told]
    assert ("switch", "s2", "s1", True, False, "new_session") in provider.told
    assert [kind for kind in kinds if kind in ("delegation", "switch")] == ["delegation", "switch"]
    assert manager.shutdown_all()
    assert provider.closed == 1
