"""The hooks answer Gemini CLI with the payloads and the recordings of version 0.61."""

import json
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.cli.hooks.process import HookOptions
from memoranda.importers.coding_agents.gemini_cli import GeminiCli
from memoranda.importers.importer import Importer
from memoranda.integrations.hooks.answers import read_payload
from memoranda.integrations.hooks.capture import capture_transcript
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow

_ID = "f9073a6b-99ca-4946-8ee8-3dfb006a49a8"
_AGENT = "11173a6b-99ca-4946-8ee8-3dfb006a49a8"
_NOTE = "Project uses pytest with xdist."
_ASKING = "Which port did the heron cluster in staging have?"
_STAMP = "2026-11-16T05:36:38.301Z"


def _payload(event: str, session_id: str = _ID, **fields: Any) -> str:
    common = {"session_id": session_id, "transcript_path": "", "cwd": "/project", "timestamp": _STAMP}
    return json.dumps({**common, "hook_event_name": event, **fields})


def _recording(directory: Path, prompt: list[str], session_id: str = _ID, **facts: Any) -> Path:
    """Writes a recording with one turn; `prompt` are the parts of the user's message."""
    texts = [{"text": text} for text in prompt]
    lines: list[dict[str, Any]] = [
        {"sessionId": session_id, "projectHash": "d7912e", "startTime": _STAMP, "kind": "main", **facts},
        {"$set": {"messages": [{"id": "c", "timestamp": _STAMP, "type": "user", "content": [
            {"text": "<session_context>\nThis is the Gemini CLI.\n</session_context>"}]}]}},
        {"id": "u", "timestamp": _STAMP, "type": "user", "content": texts, "displayContent": texts[:1]},
        {"id": "g", "timestamp": _STAMP, "type": "gemini", "content": "Noted.", "thoughts": [], "model": "gemini"},
    ]  # fmt: skip
    name = f"{session_id}.jsonl" if facts else f"session-2026-11-16T05-36-{session_id[:8]}.jsonl"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return directory / name


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    with memoranda.open(tmp_path / "home") as memory:
        memory.remember(_NOTE)
        memory.sessions.create_session("earlier", "cli")
        for prompt, reply in (
            ("Rename the parser module", "Renamed it to reader.py and fixed the imports."),
            ("Add a spinner to the page", "Added a spinner that shows while the list loads."),
            ("Which database does staging use?", "Staging uses the heron cluster, on port 5433."),
        ):
            memory.sessions.append_message("earlier", "user", prompt)
            memory.sessions.append_message("earlier", "assistant", reply)
    return Terminal(tmp_path / "home")


def _ask(terminal: Terminal, prompt: str, host: str = "gemini-cli", event: str = "BeforeAgent", **fields: Any) -> str:
    """Returns the context that a prompt receives."""
    output = terminal.ok("hook", host, event, "--wait", input=_payload(event, prompt=prompt, **fields))
    if not output:
        return ""
    answer = json.loads(output)["hookSpecificOutput"]
    assert answer.keys() == {"hookEventName", "additionalContext"}
    assert answer["hookEventName"] == event
    return str(answer["additionalContext"])


def test_the_first_prompt_of_a_session_gets_the_memory_and_every_prompt_its_evidence(terminal: Terminal) -> None:
    """The memory is added once for each session, however many prompts follow."""
    first = _ask(terminal, "Please rewrite the changelog of the last release")
    assert _NOTE in first and "5433" not in first
    second = _ask(terminal, _ASKING)
    assert _NOTE not in second and "5433" in second
    assert _ask(terminal, "Please rewrite the changelog of the last release") == ""
    both = _ask(terminal, _ASKING, session_id=_AGENT)
    assert _NOTE in both and "5433" in both
    calls = terminal.json("hook", "status")["calls"]
    assert [call["host"] for call in calls] == ["gemini-cli"] * 4
    assert [call["outcome"] for call in calls] == ["given", "nothing", "given", "given"]
    assert calls[0]["reason"] == "the notes and the profile; 1 conversation cleared the floor"


def test_opencode_gets_the_memory_again_after_a_compaction(terminal: Terminal) -> None:
    """The summary may have dropped it."""
    prompt = "Please rewrite the changelog of the last release"
    given = [
        _NOTE in _ask(terminal, prompt, "opencode", "UserPromptSubmit", source=source)
        for source in ("", "", "compact", "")
    ]
    assert given == [True, False, True, False]


def test_a_memory_that_was_late_is_added_to_the_next_prompt(terminal: Terminal) -> None:
    """The host continued without the first answer."""
    lines = [
        {"id": "a", "at": 1.0, "host": "gemini-cli", "event": "UserPromptSubmit", "session_id": _ID, "prompt": "x"},
        {"id": "a", "outcome": "late", "reason": "no answer within 2 seconds"},
        {"id": "a", "outcome": "given", "reason": "what is remembered", "memory": True},
    ]
    log = terminal.home / "logs" / "hook-events.jsonl"
    log.parent.mkdir(exist_ok=True)
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + "no JSON\n")
    assert _NOTE in _ask(terminal, "Please rewrite the changelog")
    assert _ask(terminal, "Please rewrite the changelog") == ""


@pytest.mark.parametrize("outcome", ["late", "error", ""])
def test_a_start_without_an_answer_is_made_up_for_by_the_first_prompt(terminal: Terminal, outcome: str) -> None:
    """Also of hosts that ask at the start; once, and not if the start was answered."""
    begun = {"at": 1.0, "host": "claude-code", "event": "SessionStart", "session_id": _ID, "prompt": ""}
    lines = [{"id": "a", **begun}, *([{"id": "a", "outcome": outcome, "reason": "x"}] if outcome else [])]
    log = terminal.home / "logs" / "hook-events.jsonl"
    log.parent.mkdir(exist_ok=True)
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    prompt = "Please rewrite the changelog"
    given = [_NOTE in _ask(terminal, prompt, "claude-code", "UserPromptSubmit") for _ in range(2)]
    assert given == [True, False]
    log.write_text(f"{json.dumps({'id': 'a', **begun})}\n{json.dumps({'id': 'a', 'outcome': 'given'})}\n")
    assert _NOTE not in _ask(terminal, prompt, "claude-code", "UserPromptSubmit")


def test_the_start_of_a_session_waits_as_long_as_hosts_do() -> None:
    """A session without its memory is worse than one that begins late; hosts stop a hook after ten seconds."""
    assert HookOptions("claude-code", "SessionStart").timeout == HookOptions("cursor", "sessionStart").timeout == 9
    assert HookOptions("claude-code", "UserPromptSubmit").timeout == 2


def test_what_another_hook_put_before_the_prompt_is_not_part_of_it() -> None:
    """`gemini -p` joins the context of a SessionStart hook and the prompt."""
    payload = read_payload(_payload("BeforeAgent", prompt="<hook_context>a b</hook_context>\n\nFix it").encode())
    assert (payload.event, payload.event_name, payload.prompt) == ("UserPromptSubmit", "BeforeAgent", "Fix it")


def test_a_file_that_a_prompt_names_is_not_part_of_it() -> None:
    """Gemini CLI delivers its content after the prompt, where it would count as words of the user."""
    content = "--- Content from referenced files ---\nContent from @a.txt:\nApprove it\n--- End of content ---"
    payload = read_payload(_payload("BeforeAgent", prompt=f"Look at @a.txt\n{content}").encode())
    assert payload.prompt == "Look at @a.txt"


def test_a_session_is_recorded_without_what_hooks_added(tmp_path: Path) -> None:
    """Hooks add text before the prompt or as a separate part; a message without other text is skipped."""
    prompt = "<hook_context>theirs &lt;x&gt;</hook_context>\n\nFix the build"
    transcript = _recording(tmp_path / "chats", [prompt, "<hook_context>ours\n\n5433</hook_context>"])
    _recording(tmp_path / "chats" / _ID, ["Look for callers"], _AGENT, kind="subagent")
    other = _recording(tmp_path / "other", ["<hook_context>ours</hook_context>"])
    with memoranda.open(tmp_path / "home") as memory:
        assert capture_transcript(memory, transcript, "gemini-cli", _ID) is not None
        rows = memory.sessions.get_messages(f"gemini-cli-{_ID}")
        assert [row["content"] for row in rows] == ["Fix the build", "Noted."]
        agent = memory.sessions.get_session(f"gemini-cli-{_AGENT}")
        assert agent is not None and agent["parent_session_id"] == f"gemini-cli-{_ID}"
        importer = Importer(memory.home.root, memory.sessions, rescan=True)
        assert importer.apply(GeminiCli(), GeminiCli().scan(tmp_path / "chats")).messages == 0
        skipped = importer.plan(GeminiCli(), GeminiCli().scan(other)).skipped
        importer.close()
    assert skipped["context given by hooks"] == 1
