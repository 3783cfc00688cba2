"""Transcripts of the Claude Agent SDK are messages of the record: kept as they came, found by search, stored once."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memoranda
from memoranda.integrations.frameworks import prompt_recall
from memoranda.integrations.frameworks.claude_agent import SOURCE, MemorandaSessionStore, memory_server, recall_hooks
from memoranda.integrations.frameworks.prompt_recall import memory_prompt, recall
from tests.examples import examples
from tests.timing import GIVE_UP, HANG, without_waiting

pytestmark = pytest.mark.slow

_KEY: Any = {"project_key": "-home-ana-bakery", "session_id": "5f0c"}
_SUB: Any = {**_KEY, "subpath": "subagents/agent-1"}
_NO_SDK = "the package claude-agent-sdk is not installed"
_APPEND = """
import asyncio, sys, memoranda
from memoranda.integrations.frameworks import prompt_recall
from memoranda.integrations.frameworks.claude_agent import MemorandaSessionStore
async def main():
    with memoranda.open(sys.argv[1]) as memory:
        store = MemorandaSessionStore(memory)
        for number in range(20):
            entry = {"type": "user", "uuid": f"{sys.argv[2]}-{number}", "message": {"role": "user", "content": "x"}}
            await store.append({"project_key": "p", "session_id": "s"}, [entry])
asyncio.run(main())
"""


def _said(role: str, content: Any, uuid: str = "", **fields: Any) -> Any:
    entry = {"type": role, "message": {"role": role, "content": content}, **fields}
    return entry | ({"uuid": uuid} if uuid else {})


_TRANSCRIPT = [
    _said("user", "How did we fix the oven?", "u1", timestamp="2026-03-01T09:00:00.000Z", cwd="/home/ana/bakery"),
    _said("assistant", [{"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": "t1", "name": "Read",
          "input": {"file_path": "/notes/oven.md"}}], "u2", timestamp="2026-03-01T09:00:01.000Z"),
    _said("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "The thermostat was replaced."}], "u3",
          toolUseResult={"file": {"content": "The thermostat was replaced.", "lines": 1}}),
    {"type": "system", "subtype": "info", "content": "A note of the program.", "uuid": "u4", "isMeta": False},
    {"type": "custom-title", "customTitle": "The oven", "sessionId": "5f0c"},
    {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {"backups": {}}, "isSnapshotUpdate": True},
    _said("assistant", [{"type": "text", "text": "You replaced the thermostat."}], "u5"),
]  # fmt: skip


def test_a_transcript_comes_back_as_it_was_and_is_found(memory: memoranda.Memory) -> None:
    """With its roles, its title, its times and its project; tool results are not taken for the user's words."""
    store = MemorandaSessionStore(memory)
    asyncio.run(store.append(_KEY, _TRANSCRIPT))
    assert asyncio.run(store.load(_KEY)) == _TRANSCRIPT
    (row,) = memory.sessions.list_sessions_rich()
    assert (row["source"], row["title"]) == (SOURCE, "The oven")
    roles = [message["role"] for message in memory.sessions.get_messages(row["id"])]
    assert roles == ["user", "assistant", "tool", "system", "system", "system", "assistant"]
    hit = memory.search("thermostat replaced")["results"][0]
    assert hit["session_id"] == row["id"] and "thermostat" in hit["snippet"]


_PROMPT = "How did we fix the bakery oven when it showed error E17?"
_ABOUT_THE_OVEN = [
    _said("user", "The oven of the bakery shows error E17 and stays cold.", "1"),
    _said("assistant", "Replace its thermostat, part 4711: that fixes error E17 of this oven.", "2"),
]


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemorandaSessionStore]:
    with memoranda.open(tmp_path_factory.mktemp("home")) as memory:
        yield MemorandaSessionStore(memory)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.fixed_dictionaries({"type": st.text()}, optional={"message": _json, "content": _json, "n": _json})))
def test_any_entry_comes_back_equal(shared_store: MemorandaSessionStore, entries: list[Any]) -> None:
    """Whatever JSON the SDK sends."""
    key: Any = {"project_key": "p", "session_id": uuid4().hex}
    asyncio.run(shared_store.append(key, entries))
    assert asyncio.run(shared_store.load(key)) == (entries or None)


def test_an_entry_that_is_sent_again_is_stored_once(memory: memoranda.Memory) -> None:
    """The SDK repeats a batch whose answer it did not get; entries without an id are appended."""
    store = MemorandaSessionStore(memory)
    for _ in range(2):
        asyncio.run(store.append(_KEY, _TRANSCRIPT[:4]))
    assert asyncio.run(store.load(_KEY)) == _TRANSCRIPT[:4]
    asyncio.run(store.append(_KEY, [{"type": "mode"}]))
    asyncio.run(store.append(_KEY, [{"type": "mode"}]))
    assert len(asyncio.run(store.load(_KEY)) or ()) == 6


def test_a_sub_agent_is_delegated_work_of_its_session(memory: memoranda.Memory) -> None:
    """It may be stored first; deleting the session deletes it too, and other keys that look alike stay."""
    store = MemorandaSessionStore(memory)
    others: list[Any] = [
        {"project_key": "-home-ana-bakery", "session_id": "5f0c2"},
        {"project_key": "-home-ana", "session_id": "bakery/5f0c"},
        {"project_key": "-HOME-ANA-BAKERY", "session_id": "5f0c"},
        {"project_key": "%", "session_id": "_"},
    ]

    async def main() -> None:
        await store.append(_SUB, [_said("user", "Look it up.", "a1")])
        assert await store.list_sessions(_KEY["project_key"]) == []
        for key in (_KEY, *others):
            await store.append(key, [_said("user", str(key), "b1")])
        assert await store.list_subkeys(_KEY) == ["subagents/agent-1"]
        listed = await store.list_sessions(_KEY["project_key"])
        assert sorted(each["session_id"] for each in listed) == ["5f0c", "5f0c2"]
        await store.delete(_KEY)
        assert await store.load(_SUB) is None and await store.load(_KEY) is None
        assert [bool(await store.load(key)) for key in others] == [True] * 4

    asyncio.run(main())
    assert len(memory.sessions.list_sessions_rich()) == 4


def test_two_processes_append_to_one_session(tmp_path: Path) -> None:
    """Every entry is there once."""
    processes = [subprocess.Popen([sys.executable, "-c", _APPEND, str(tmp_path), name]) for name in ("a", "b")]
    assert [process.wait(GIVE_UP) for process in processes] == [0, 0]
    with memoranda.open(tmp_path) as memory:
        entries: Any = asyncio.run(MemorandaSessionStore(memory).load({"project_key": "p", "session_id": "s"}))
        assert len(entries) == len({entry["uuid"] for entry in entries}) == 40


def test_one_user_sees_no_transcript_of_another(tmp_path: Path) -> None:
    """Neither by its key nor by listing; both can have the same key."""
    with memoranda.open(tmp_path, user="ana") as ana, memoranda.open(tmp_path, user="bob") as bob:
        asyncio.run(MemorandaSessionStore(ana).append(_KEY, _TRANSCRIPT[:1]))
        store = MemorandaSessionStore(bob)
        assert asyncio.run(store.load(_KEY)) is None
        assert asyncio.run(store.list_sessions(_KEY["project_key"])) == []
        asyncio.run(store.append(_KEY, _TRANSCRIPT[1:2]))
        assert asyncio.run(store.load(_KEY)) == _TRANSCRIPT[1:2]
        assert asyncio.run(MemorandaSessionStore(ana).load(_KEY)) == _TRANSCRIPT[:1]


def test_a_turn_does_not_wait_for_a_search_that_hangs_or_fails(
    memory: memoranda.Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes without, and the log says so."""
    asyncio.run(MemorandaSessionStore(memory).append(_KEY, _ABOUT_THE_OVEN))
    released = threading.Event()
    monkeypatch.setattr(prompt_recall, "_find", lambda *_: str(released.wait(HANG)))
    with without_waiting():
        assert recall(memory, _PROMPT, seconds=0.01) == ""
    released.set()
    monkeypatch.setattr(prompt_recall, "_find", lambda *_: 1 / 0)
    assert recall(memory, _PROMPT, seconds=GIVE_UP) == ""
    assert "longer than 0.01 s" in caplog.text and "failed in search" in caplog.text


def test_recall_finds_other_sessions_and_never_the_own_one(memory: memoranda.Memory) -> None:
    """It is silent about anything else."""
    store = MemorandaSessionStore(memory)
    asyncio.run(store.append({"project_key": "p", "session_id": "one"}, _ABOUT_THE_OVEN))
    asyncio.run(store.append({"project_key": "p", "session_id": "two"}, [_said("assistant", "It is Tuesday.", "3")]))
    found = recall(memory, _PROMPT, seconds=GIVE_UP)
    assert "thermostat" in found and "Tuesday" not in found
    assert recall(memory, _PROMPT, "claude:p/one", seconds=GIVE_UP) == ""
    assert recall(memory, "Write a haiku about submarines.", seconds=GIVE_UP) == ""
    memory.remember("The oven is broken.")
    assert "The oven is broken." in memory_prompt(memory)


def test_the_conformance_suite_of_the_sdk_passes(tmp_path: Path) -> None:
    """All of its contracts, those of the optional methods included."""
    testing = pytest.importorskip("claude_agent_sdk.testing", reason=_NO_SDK)
    opened: list[memoranda.Memory] = []

    def make() -> MemorandaSessionStore:
        opened.append(memoranda.open(tmp_path / str(len(opened))))
        return MemorandaSessionStore(opened[-1])

    asyncio.run(testing.run_session_store_conformance(make))
    for memory in opened:
        memory.close()


def test_the_hook_and_the_tools_work_as_the_sdk_calls_them(memory: memoranda.Memory) -> None:
    """A prompt gets what is relevant from another session, and nothing otherwise."""
    pytest.importorskip("claude_agent_sdk", reason=_NO_SDK)
    asyncio.run(MemorandaSessionStore(memory).append({"project_key": "p", "session_id": "one"}, _ABOUT_THE_OVEN))
    (hook,) = recall_hooks(memory, seconds=GIVE_UP)["UserPromptSubmit"][0].hooks

    def ask(prompt: str, session: str) -> Any:
        file = f"/home/ana/.claude/projects/p/{session}.jsonl"
        return asyncio.run(hook({"prompt": prompt, "session_id": session, "transcript_path": file}, None, {}))

    assert "thermostat" in ask(_PROMPT, "two")["hookSpecificOutput"]["additionalContext"]
    assert ask(_PROMPT, "one") == {} == ask("Write a haiku about submarines.", "two")
    assert memory_server(memory)["type"] == "sdk"


def test_the_sdk_records_resumes_and_recalls_with_a_scripted_model(tmp_path: Path) -> None:
    """The real program runs a conversation; a resume loads it from the store, in another directory."""
    sdk = pytest.importorskip("claude_agent_sdk", reason=_NO_SDK)
    from memoranda.models.model import Reply
    from memoranda.testing.scripted.server import ScriptedServer

    def answer(*_: Any) -> Reply:
        return Reply("Replace its thermostat, part 4711: that fixes error E17 of this oven.")

    def options(server: ScriptedServer, memory: memoranda.Memory, **more: Any) -> Any:
        variables = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "key",
            "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        }
        return sdk.ClaudeAgentOptions(
            session_store=MemorandaSessionStore(memory), hooks=recall_hooks(memory, seconds=GIVE_UP),
            mcp_servers={"memoranda": memory_server(memory)}, env=os.environ | variables, cwd=tmp_path, **more,
        )  # fmt: skip

    async def ask(question: str, chosen: Any) -> str:
        messages = [message async for message in sdk.query(prompt=question, options=chosen)]
        (result,) = [message for message in messages if isinstance(message, sdk.ResultMessage)]
        return str(result.session_id)

    with memoranda.open(tmp_path / "home") as memory, ScriptedServer(answer) as server:
        first = asyncio.run(ask("The oven of the bakery shows error E17 and stays cold.", options(server, memory)))
        found = memory.search("thermostat part")["results"]
        assert [hit["source"] for hit in found] == [SOURCE]
        assert asyncio.run(ask("And since when?", options(server, memory, resume=first))) == first
        assert len(memory.sessions.list_sessions_rich(source=SOURCE)) == 1
        asyncio.run(ask(_PROMPT, options(server, memory)))
        assert "<memory-context" in "".join(request.text for request in server.received[-3:])
