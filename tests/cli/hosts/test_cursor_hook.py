"""The hooks answer Cursor with the payloads that its documentation describes; Cursor itself was not run."""

import json
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.importers.coding_agents.cursor import Cursor
from memoranda.importers.importer import Importer
from memoranda.importers.summary import ImportSummary
from memoranda.integrations.hooks.answers import read_payload
from memoranda.integrations.hooks.capture import capture_transcript
from tests.cli.terminal import Terminal
from tests.importers import cursor_stores as stores

pytestmark = pytest.mark.slow

_ID = stores.COMPOSER
_TALK = [("user", "Which database does staging use?"), ("assistant", "Staging uses the heron cluster, on port 5433.")]


def _payload(event: str, **fields: Any) -> str:
    common = {"conversation_id": _ID, "generation_id": "g", "model": "composer-2", "cursor_version": "3.24.18"}
    paths = {"workspace_roots": ["/project"], "user_email": None, "transcript_path": None}
    return json.dumps({**common, **paths, "hook_event_name": event, **fields})


def _transcript(user: Path, talk: list[tuple[str, str]] = _TALK) -> Path:
    file = user / ".cursor" / "projects" / "project" / "agent-transcripts" / _ID / f"{_ID}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"role": role, "message": {"content": [{"type": "text", "text": text}]}} for role, text in talk]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def _import(memory: memoranda.Memory) -> ImportSummary:
    """Imports everything that the user has in Cursor."""
    importer = Importer(memory.home.root, memory.sessions)
    try:
        return importer.apply(Cursor(), Cursor().scan(None))
    finally:
        importer.close()


def test_cursor_gets_memory_at_the_start_and_evidence_with_a_prompt(tmp_path: Path) -> None:
    """The hooks answer in the documented form, and do not stop the prompt."""
    with memoranda.open(tmp_path / "home") as memory:
        memory.remember("Project uses pytest with xdist.")
        memory.sessions.create_session("earlier", "cli")
        for role, text in (("user", "Rename the parser"), ("assistant", "Renamed it to reader.py."), *_TALK):
            memory.sessions.append_message("earlier", role, text)
    terminal = Terminal(tmp_path / "home")

    def call(event: str, **fields: Any) -> Any:
        output = terminal.ok("hook", "cursor", event, "--wait", input=_payload(event, **fields))
        return json.loads(output) if output else None

    start = call("sessionStart", session_id=_ID, is_background_agent=False, composer_mode="agent")
    assert start["continue"] is True and "Project uses pytest with xdist." in start["additional_context"]
    asking = call("beforeSubmitPrompt", prompt="Which port did the heron cluster in staging have?", attachments=[])
    assert asking["continue"] is True and "5433" in asking["additional_context"]
    assert call("beforeSubmitPrompt", prompt="Please rewrite the changelog of the last release") is None
    assert call("stop", status="completed", loop_count=0) is None


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_hooks_of_another_host_that_cursor_runs_do_nothing(host: str) -> None:
    """Cursor reads the settings of Claude Code if the user allows it; its own hooks answer already."""
    raw = _payload("SessionStart", transcript_path="/x.jsonl").encode()
    ignored = read_payload(raw, "SessionStart", host)
    assert (ignored.event, ignored.transcript) == ("", "")
    assert read_payload(raw, "SessionStart", "cursor").event == "SessionStart"


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return tmp_path / "user"


def test_a_conversation_of_the_editor_is_recorded_once(user: Path, tmp_path: Path) -> None:
    """Its transcript is recorded after each answer; an import that finds it in the editor's database adds nothing."""
    transcript = _transcript(user)
    with memoranda.open(tmp_path / "home") as memory:
        summary = capture_transcript(memory, transcript, "cursor", _ID)
        assert summary is not None and summary.sessions == {f"cursor-{_ID}": "new"}
        _transcript(user, [*_TALK, ("user", "Thanks"), ("assistant", "You are welcome.")])
        grown = capture_transcript(memory, transcript, "cursor", _ID)
        assert grown is not None and (grown.messages, grown.sessions) == (2, {f"cursor-{_ID}": "grown"})
        stores.write_editor(user / ".config" / "Cursor" / "User")
        imported = _import(memory)
        assert (imported.messages, imported.sessions[f"cursor-composer-{_ID}"]) == (0, "unchanged")
        texts = [row["content"] for row in memory.sessions.get_messages(f"cursor-{_ID}")]
    assert texts == [text for _, text in _TALK] + ["Thanks", "You are welcome."]


def test_a_conversation_that_was_imported_continues_from_the_editor_s_database(user: Path, tmp_path: Path) -> None:
    """Its transcript has the same messages under other ids."""
    stores.write_editor(user / ".config" / "Cursor" / "User")
    transcript = _transcript(user)
    with memoranda.open(tmp_path / "home") as memory:
        assert _import(memory).sessions == {f"cursor-composer-{_ID}": "new"}
        summary = capture_transcript(memory, transcript, "cursor", _ID)
        assert summary is not None and summary.sessions == {f"cursor-composer-{_ID}": "unchanged"}


def test_a_chat_of_the_command_line_is_recorded_from_its_database(user: Path, tmp_path: Path) -> None:
    """An import adds nothing; nor does one that finds the database only after a transcript was recorded."""
    cursor = stores.write_transcript(user / ".cursor")
    (transcript,) = cursor.rglob(f"{stores.AGENT}.jsonl")
    with memoranda.open(tmp_path / "home") as memory:
        first = capture_transcript(memory, transcript, "cursor", stores.AGENT)
        assert first is not None and first.sessions == {f"cursor-{stores.AGENT}": "new"}
        stores.write_agent(cursor)
        assert _import(memory).messages == 0
    with memoranda.open(tmp_path / "other") as memory:
        summary = capture_transcript(memory, transcript, "cursor", stores.AGENT)
        assert summary is not None and summary.messages > len(stores.TRANSCRIPT)
        assert _import(memory).messages == 0
