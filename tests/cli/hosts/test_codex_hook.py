"""The hooks answer Codex as they answer Claude Code, with the payloads and the rollouts of Codex 0.166."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.integrations.hooks.answers import answer_event, read_payload
from memoranda.integrations.hooks.capture import capture_transcript
from memoranda.integrations.hooks.home_config import HomeConfig
from memoranda.storage.files.journal import without_checksum
from tests.cli.terminal import Terminal

_ID = "01a1e28e-afdb-7d62-a732-63e077ba6649"
_AGENT = "01a1e28e-afdb-7d62-a732-63e077ba6650"
_TURNS = [
    ("Rename the parser module", "Renamed it to reader.py and fixed the imports."),
    ("Add a spinner to the page", "Added a spinner that shows while the list loads."),
    ("Why does the build fail?", "The lock file was stale; I regenerated it."),
    ("Which database does staging use?", "Staging uses the heron cluster, on port 5433."),
]


def _rollout(directory: Path, session_id: str, turns: list[tuple[str, str]], **meta: Any) -> Path:
    """Writes a rollout in which Codex gave its model the context of our hooks, in the developer's role."""
    lines: list[tuple[str, dict[str, Any]]] = [
        ("session_meta", {"id": session_id, "cwd": "/project", "cli_version": "0.166.0", **meta}),
        ("response_item", _message("developer", "What you remember about the user: likes tea.")),
    ]
    for prompt, reply in turns:
        lines += [("response_item", _message("user", prompt)), ("response_item", _message("assistant", reply))]
    file = directory / f"rollout-2026-11-16T04-12-44-{session_id}.jsonl"
    stamp = "2026-11-16T04:12:44.000Z"
    text = [json.dumps({"timestamp": stamp, "type": kind, "payload": payload}) + "\n" for kind, payload in lines]
    file.write_text("".join(text))
    return file


def _message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _payload(event: str, transcript: Path, **fields: Any) -> bytes:
    common = {"session_id": _ID, "turn_id": "t", "transcript_path": str(transcript), "cwd": "/project"}
    mode = {"model": "gpt-5.5", "permission_mode": "bypassPermissions"}
    return json.dumps({**common, "hook_event_name": event, **mode, **fields}).encode()


def test_codex_gets_memory_and_evidence_and_its_sessions_are_recorded(tmp_path: Path) -> None:
    """The context from our hooks is not recorded, and a session is not evidence for itself."""
    transcript = _rollout(tmp_path, _ID, _TURNS)
    with memoranda.open(tmp_path / "home") as memory:
        memory.remember("Project uses pytest with xdist.")
        assert capture_transcript(memory, transcript, "codex") is not None
        rows = memory.sessions.get_messages(f"codex-{_ID}")
        assert [row["content"] for row in rows] == [text for turn in _TURNS for text in turn]
        start = read_payload(_payload("SessionStart", transcript, source="startup"))
        config = HomeConfig(memory.home)
        assert "Project uses pytest with xdist." in answer_event(config, None, start, "codex").text
        prompt = {"prompt": "Which port did the heron cluster in staging have?"}
        own = read_payload(_payload("UserPromptSubmit", transcript, **prompt))
        assert answer_event(config, None, own, "codex").reason == "only this session itself is relevant"
        other = read_payload(_payload("UserPromptSubmit", transcript, session_id=_AGENT, **prompt))
        answer = json.loads(answer_event(config, None, other, "codex").text)["hookSpecificOutput"]
        assert answer.keys() == {"hookEventName", "additionalContext"}
        assert "Staging uses the heron cluster, on port 5433." in answer["additionalContext"]


@pytest.mark.slow
def test_a_sub_agent_is_recorded_when_it_stops(tmp_path: Path) -> None:
    """It is recorded from its own rollout, as a delegated session; the command prints nothing."""
    parent = _rollout(tmp_path, _ID, _TURNS[:1])
    source = {"subagent": {"thread_spawn": {"parent_thread_id": _ID, "depth": 1}}}
    agent = _rollout(tmp_path, _AGENT, [("Look for callers", "There are two callers.")], source=source)
    terminal = Terminal(tmp_path / "home")
    for payload in (
        _payload("Stop", parent, stop_hook_active=False, last_assistant_message="Renamed"),
        _payload("SubagentStop", parent, agent_transcript_path=str(agent), agent_id=_AGENT, agent_type="default"),
    ):
        event = json.loads(payload)["hook_event_name"]
        assert terminal.ok("hook", "codex", event, "--wait", input=payload.decode()) == ""
    with memoranda.open(tmp_path / "home") as memory:
        session = memory.sessions.get_session(f"codex-{_AGENT}")
        assert session is not None
        assert session["parent_session_id"] == f"codex-{_ID}"


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "note"), [("auto", "curated: contained"), ("propose", "proposes 1 change")])
def test_the_end_of_a_session_runs_the_curator_once_a_day_if_something_changed(
    tmp_path: Path, mode: str, note: str
) -> None:
    """The end of a turn does not; a run that changed nothing is remembered, too."""
    transcript, terminal = _rollout(tmp_path, _ID, _TURNS[:1]), Terminal(tmp_path / "home")
    old, new = "Staging is on 10.2.0.14.", "Staging is on 10.2.0.14. It has two disks."
    terminal.ok("config", "set", "curate.mode", mode)
    terminal.ok("remember", old)
    runs = []
    for event in ("SessionEnd", "SessionEnd", "Stop"):
        terminal.ok("hook", "codex", event, "--wait", input=_payload(event, transcript).decode())
        with memoranda.open(tmp_path / "home") as memory:
            runs.append([change.note for change in memory.curated.journal.changes() if change.actor == "curator"])
    assert runs == [["found nothing to tidy up"]] * 3
    journal = tmp_path / "home" / "memories" / "journal.jsonl"
    # As if the first run was two days ago.
    lines = [without_checksum(line) for line in journal.read_bytes().splitlines()]
    line = re.sub(rb'"at":"\d{4}', b'"at":"2020', lines.pop())
    journal.write_bytes(b"".join(each + b"\n" for each in (*lines, line)))
    terminal.ok("remember", new)
    for _ in range(2):
        terminal.ok("hook", "codex", "SessionEnd", "--wait", input=_payload("SessionEnd", transcript).decode())
    with memoranda.open(tmp_path / "home") as memory:
        notes = [change.note for change in memory.curated.journal.changes() if change.actor == "curator"]
        assert len(notes) == 2 and notes[1].startswith(note)
        assert memory.entries() == ((new,) if mode == "auto" else (old, new))
