"""The contract that every memory provider must fulfil, as a test suite for pytest.

To run it against a provider, derive a class with one fixture, `provider`: a provider that is configured but not
initialized, and that can reach its service or needs none. pytest's `tmp_path` is its home.

    class TestMyProvider(ProviderContract):
        @pytest.fixture
        def provider(self, tmp_path: Path) -> MemoryProvider:
            return MyProvider(tmp_path)

A provider with a service should also override `stored_texts`, `refuse_turns` and `lose_next_answer`; without them the
tests that need them are skipped.

The suite calls hooks as the manager does: in threads, and with the facts that their signatures accept.
"""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memoranda.external.guarded_call import CallResult, GuardedProvider
from memoranda.external.health import HealthTracker
from memoranda.external.manager import MemoryManager
from memoranda.external.provider import MemoryProvider, Message
from memoranda.external.settings import CORE_TOOLS, ProviderSettings
from memoranda.external.tools import usable_schemas

_LONG_TIMEOUTS = ProviderSettings(
    recall_seconds=30, call_seconds=30, start_seconds=30, shutdown_seconds=30, first_retry_seconds=0.05
)
_FACTS: dict[str, Any] = {
    "platform": "cli",
    "agent_context": "primary",
    "agent_identity": "default",
    "agent_workspace": "work",
    "session_title": "A title",
    "user_id": "user_1",
    "user_name": "Ana",
    "chat_id": "c1",
    "thread_id": "t1",
    "parent_session_id": "",
}
# A fact that no current provider knows.
_FUTURE_FACTS = {"a_fact_of_the_future": {"any": ["thing"]}}
_QUERIES = (
    "",
    "deadlock",
    "どう直した？",
    "'\"; DROP TABLE facts; --",
    "AND OR NOT (",
    "%_*",
    "\x00",
    "word " * 5_000,
)
_VALUES: tuple[Any, ...] = (None, "", "text", -1, 10**30, [], {"a": 1})
_MESSAGES: list[Message] = [
    {"role": "user", "content": "How did we fix the deadlock?"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "x", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "{}"},
    {"role": "user", "content": [{"type": "text", "text": "So"}, {"type": "image_url", "image_url": {"url": "data:"}}]},
    {"role": "assistant", "content": "With a second queue."},
]  # fmt: skip


class ProviderContract:
    """All tests of the contract."""

    def stored_texts(self) -> Sequence[str] | None:
        """The text of everything that the provider's service has stored; None if the tests cannot see it."""
        return None

    def refuse_turns(self) -> bool:
        """Make the service refuse everything from now on, for example the credentials; False without a service."""
        return False

    def lose_next_answer(self) -> bool:
        """Make the service store the next turn and drop the connection before it answers; False without a service."""
        return False

    def test_it_has_a_name_that_can_be_written_into_a_configuration(self, provider: MemoryProvider) -> None:
        """It is short, plain, always the same, and not the name of the built-in memory."""
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", provider.name)
        assert provider.name == provider.name != "builtin"

    def test_it_says_whether_it_is_available_without_network(self, provider: MemoryProvider) -> None:
        """It only looks at its configuration and dependencies, before it is initialized."""
        began = time.monotonic()
        with _no_network():
            assert provider.is_available() is True
        assert time.monotonic() - began < 2

    def test_it_can_be_set_up_and_backed_up_before_it_is_initialized(self, provider: MemoryProvider) -> None:
        """Fields have keys, paths are absolute, and no network is used."""
        with _no_network():
            fields = provider.get_config_schema() if hasattr(provider, "get_config_schema") else []
            paths = provider.backup_paths() if hasattr(provider, "backup_paths") else []
        assert all(isinstance(field["key"], str) and field["key"] for field in fields)
        assert len({field["key"] for field in fields}) == len(fields)
        json.dumps(fields)
        assert all(Path(path).is_absolute() for path in paths)

    def test_it_checks_its_files_without_being_initialized(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """In an empty home, after use, and without network; the doctor can show every report."""
        with _no_network():
            reports = provider.check(str(tmp_path)) if hasattr(provider, "check") else []
        assert [report for report in reports if report["severity"] == "error"] == []
        with _start_provider(provider, tmp_path) as calls:
            _turn(calls, "k1")
        with _no_network():
            reports = [*reports, *(provider.check(str(tmp_path)) if hasattr(provider, "check") else [])]
        for report in reports:
            assert report["severity"] in ("error", "warning", "note")
            assert Path(report["path"]).is_absolute()
            assert report["problem"].strip() and report["remedy"].strip()
            assert isinstance(report.get("repairable", False), bool)

    def test_it_is_initialized_with_facts_that_it_does_not_know(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """A later version may pass more facts."""
        with _start_provider(provider, tmp_path):
            pass

    def test_its_tools_can_be_offered_to_any_model(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """Each has a unique name that no core tool has, a description, and a JSON schema of an object."""
        with _start_provider(provider, tmp_path):
            schemas = provider.get_tool_schemas()
            usable, refusals = usable_schemas(schemas, CORE_TOOLS)
            assert refusals == []
            assert len(usable) == len(schemas)
            for schema in usable.values():
                assert schema["description"].strip()
                assert schema["parameters"]["type"] == "object"
                assert set(schema["parameters"].get("required", [])) <= set(schema["parameters"].get("properties", {}))

    def test_its_tools_answer_with_json_text(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """Whatever the arguments are, even if there are none."""
        with _start_provider(provider, tmp_path) as calls:
            for name, schema in usable_schemas(provider.get_tool_schemas(), CORE_TOOLS)[0].items():
                properties = schema["parameters"].get("properties", {})
                for value in _VALUES:
                    args = {"unknown": 1} if value is None else dict.fromkeys(properties, value)
                    reply = _ok(_call(calls, "handle_tool_call", {"tool_name": name, "args": args}))
                    assert isinstance(reply, str)
                    json.loads(reply)

    def test_calling_an_unknown_tool_fails(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """It raises, or answers with an error."""
        with _start_provider(provider, tmp_path) as calls:
            result = _call(calls, "handle_tool_call", {"tool_name": "no_such_tool", "args": {}})
            assert not result.ok or "error" in json.loads(result.value)

    def test_it_recalls_text(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """It does so for any query and any session, and does not fence the text itself."""
        with _start_provider(provider, tmp_path) as calls:
            for query in _QUERIES:
                for session_id in ("s1", "unknown", ""):
                    recalled = _ok(_call(calls, "prefetch", {"query": query}, session_id=session_id))
                    assert isinstance(recalled, str)
                    assert "<memory-context" not in recalled.casefold()
                _ok(_call(calls, "queue_prefetch", {"query": query}, session_id="s1"))

    def test_its_prompt_block_is_static_text(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """It stays the same within a session, so that prompts can be cached."""
        with _start_provider(provider, tmp_path) as calls:
            block = _ok(_call(calls, "system_prompt_block", {}))
            assert isinstance(block, str)
            _turn(calls, "k1")
            assert _ok(_call(calls, "system_prompt_block", {})) == block

    def test_it_accepts_turns_with_and_without_a_transcript(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """It accepts the same turn again with the same key, as after a crash; each in a separate thread."""
        with _start_provider(provider, tmp_path) as calls:
            _turn(calls, "k1")
            _turn(calls, "k1")
            args = {"user_content": "Ünïcödé 日本語", "assistant_content": "x" * 100_000}
            _ok(_call(calls, "sync_turn", args, session_id="s2", messages=_MESSAGES, idempotency_key="k2"))

    def test_a_refused_turn_raises(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """A provider that returns without storing a turn loses it: the outbox removes what was delivered."""
        with _start_provider(provider, tmp_path) as calls:
            if not self.refuse_turns():
                pytest.skip("refuse_turns is not overridden")
            args = {"user_content": "How did we fix the deadlock?", "assistant_content": "With a second queue."}
            assert not _call(calls, "sync_turn", args, session_id="s1", idempotency_key="k1", attempt=1).ok

    def test_the_same_key_is_stored_once(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """Even if the service stored the turn, and its answer to the first attempt was lost."""
        with _start_provider(provider, tmp_path) as calls:
            if self.stored_texts() is None:
                pytest.skip("stored_texts is not overridden")
            args = {"user_content": "The zebra is called Otto.", "assistant_content": "Noted."}
            lost = self.lose_next_answer()
            first = _call(calls, "sync_turn", args, session_id="s1", idempotency_key="k1", attempt=1)
            # A provider may repeat an idempotent request itself, and so deliver although an answer was lost.
            assert first.ok or lost, first.error
            _ok(_call(calls, "sync_turn", args, session_id="s1", idempotency_key="k1", attempt=2))
            assert " ".join(self.stored_texts() or ()).count("The zebra is called Otto.") == 1

    def test_one_user_never_sees_data_of_another(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """Neither in recalled text, nor in the prompt block, nor in the answer of a tool."""
        with _start_provider(provider, tmp_path, user_id="user_a") as calls:
            args = {"user_content": "The zebra is called Otto4711.", "assistant_content": "A zebra called Otto4711."}
            _ok(_call(calls, "sync_turn", args, session_id="s1", idempotency_key="k1", attempt=1))
            write = {"action": "add", "target": "user", "content": "Has a zebra that is called Otto4711."}
            _ok(_call(calls, "on_memory_write", write, metadata={}, idempotency_key="k2"))
            messages = [{"role": "user", "content": "I like my zebra, which is called Otto4711."}]
            _ok(_call(calls, "on_session_end", {"messages": messages}, session_id="s1", idempotency_key="k3"))
        with _start_provider(provider, tmp_path, user_id="user_b") as calls:
            seen = [_call(calls, "queue_prefetch", {"query": "zebra called"}, session_id="s1").value]
            seen += [_ok(_call(calls, "prefetch", {"query": "zebra called"}, session_id=name)) for name in ("s1", "s2")]
            seen.append(_ok(_call(calls, "system_prompt_block", {})))
            for name, schema in usable_schemas(provider.get_tool_schemas(), CORE_TOOLS)[0].items():
                for arguments in _plausible_arguments(schema["parameters"].get("properties", {})):
                    seen.append(_ok(_call(calls, "handle_tool_call", {"tool_name": name, "args": arguments})))
            assert [text for text in seen if "Otto4711" in str(text)] == []

    def test_it_accepts_every_memory_write(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """Adding, replacing and removing work with metadata and with empty metadata."""
        with _start_provider(provider, tmp_path) as calls:
            for action in ("add", "replace", "remove"):
                for target in ("memory", "user"):
                    args = {"action": action, "target": target, "content": "" if action == "remove" else "Likes tea."}
                    metadata = {"session_id": "s1", "write_origin": "assistant_tool", "old_text": "Likes coffee."}
                    _ok(_call(calls, "on_memory_write", args, metadata=metadata, idempotency_key=f"{action} {target}"))
                    _ok(_call(calls, "on_memory_write", args, metadata={}))

    def test_it_follows_a_conversation_through_its_sessions(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """A turn begins, a sub-agent ends, messages are compressed, the session is switched, rewound and ended."""
        with _start_provider(provider, tmp_path) as calls:
            _ok(_call(calls, "on_turn_start", {"turn_number": 1, "message": "Hello"}, session_id="s1", model="m"))
            _ok(_call(calls, "on_delegation", {"task": "look", "result": "seen"}, child_session_id="c"))
            assert isinstance(_ok(_call(calls, "on_pre_compress", {"messages": _MESSAGES})) or "", str)
            for facts in ({"parent_session_id": "s1", "reset": True, "reason": "new_session"}, {"rewound": True}, {}):
                _ok(_call(calls, "on_session_switch", {"new_session_id": "s2"}, **facts))
            _ok(_call(calls, "on_session_end", {"messages": _MESSAGES}, session_id="s2", idempotency_key="k"))
            _ok(_call(calls, "on_session_end", {"messages": []}, session_id="s2"))
            assert isinstance(_ok(_call(calls, "prefetch", {"query": "deadlock"}, session_id="s2")), str)

    def test_its_limits_are_limits(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """If it has any, they have the names that the manager knows."""
        with _start_provider(provider, tmp_path):
            limits = provider.limits() if hasattr(provider, "limits") else {}
            assert set(limits) <= {"mode", "recall_chars", "every_n_turns", "recall_seconds", "turns_per_delivery"}

    def test_it_can_be_shut_down_twice_and_without_a_start(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """Neither call raises or takes long."""
        began = time.monotonic()
        provider.shutdown()
        provider.shutdown()
        assert time.monotonic() - began < 10

    def test_it_can_be_shut_down_after_use(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """A second shutdown does no harm."""
        with _start_provider(provider, tmp_path) as calls:
            _turn(calls, "k1")
        provider.shutdown()

    def test_it_works_behind_the_manager(self, provider: MemoryProvider, tmp_path: Path) -> None:
        """It is added, started, receives a turn through the outbox, recalls, and is shut down without a failure."""
        manager = MemoryManager(tmp_path, _LONG_TIMEOUTS)
        assert manager.add_provider(provider)
        assert manager.initialize_all("s1", **_FACTS, **_FUTURE_FACTS)
        manager.on_turn_start(1, "Hello", model="m")
        manager.sync_all("How did we fix the deadlock?", "With a second queue.", "s1", _MESSAGES)
        manager.on_memory_write("add", "memory", "Likes tea.", {"write_origin": "assistant_tool"})
        manager.on_session_end(_MESSAGES, "s1")
        manager.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
        assert manager.drain(30)
        assert isinstance(manager.prefetch_all("deadlock"), str)
        manager.tools_for(None)
        status = manager.status()
        assert (status.ready, status.health.last_error, status.backlog.parked) == (True, "", 0)
        assert manager.shutdown_all()


@contextmanager
def _start_provider(provider: MemoryProvider, home: Path, **facts: str) -> Iterator[GuardedProvider]:
    calls = GuardedProvider(provider, provider.name, HealthTracker())
    _ok(_call(calls, "initialize", {"session_id": "s1"}, hermes_home=str(home), **(_FACTS | facts)))
    try:
        yield calls
    finally:
        provider.shutdown()


def _call(calls: GuardedProvider, hook: str, args: Mapping[str, Any], **facts: Any) -> CallResult:
    if not hasattr(calls.provider, hook):
        return CallResult()
    return calls.call(hook, args, {**facts, **_FUTURE_FACTS}, within=60)


def _plausible_arguments(properties: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Arguments with which a tool may find something: each choice of one property, and words for the others."""
    words = {name: "zebra" for name, schema in properties.items() if schema.get("type", "string") == "string"}
    choices = [(name, choice) for name, schema in properties.items() for choice in schema.get("enum", ())]
    return [words, *(words | {name: choice} for name, choice in choices)]


def _ok(result: CallResult) -> Any:
    assert result.ok, result.error
    return result.value


def _turn(calls: GuardedProvider, key: str) -> None:
    args = {"user_content": "How did we fix the deadlock?", "assistant_content": "With a second queue."}
    _ok(_call(calls, "sync_turn", args, session_id="s1", idempotency_key=key))


@contextmanager
def _no_network() -> Iterator[None]:
    """Refuse connections and name lookups in this thread."""
    this_thread = threading.get_ident()
    names = ("connect", "connect_ex", "sendto")
    real = {name: getattr(socket.socket, name) for name in names}
    look_up = socket.getaddrinfo

    def refuse(name: str) -> Any:
        def call_from_other_threads(*args: Any, **kwargs: Any) -> Any:
            assert threading.get_ident() != this_thread, "the network was used"
            return real[name](*args, **kwargs) if name in real else look_up(*args, **kwargs)

        return call_from_other_threads

    try:
        for name in names:
            setattr(socket.socket, name, refuse(name))
        socket.getaddrinfo = refuse("getaddrinfo")
        yield
    finally:
        for name in names:
            # The originals are inherited from a base class, so deleting ours restores them.
            delattr(socket.socket, name)
        socket.getaddrinfo = look_up
