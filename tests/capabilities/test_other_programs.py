"""Memory from and for other programs: OpenClaw is migrated, and three hosts bring their past and get a memory."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.cli.imports import openclaw
from tests.capabilities.conversations import take_turn
from tests.cli.terminal import Terminal
from tests.importers import codex_rollouts, cursor_stores
from tests.importers.claude_code_lines import PRESENT, SESSION
from tests.importers.import_home import write_lines
from tests.importers.openclaw.material import OPENAI, contents, make_openclaw


@pytest.fixture
def user(tmp_path: Path) -> Path:
    directory = tmp_path / "user"
    directory.mkdir()
    return directory


@pytest.fixture
def terminal(tmp_path: Path, user: Path) -> Terminal:
    return Terminal(tmp_path / "home")


@pytest.mark.slow
def test_openclaw_is_migrated_after_a_preview(terminal: Terminal, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories are merged without duplicates, after a backup; secrets only on request; a second run changes nothing."""
    monkeypatch.setattr(openclaw, "find_openclaw_processes", list)
    missing = terminal.run("import", "openclaw", "--source", str(user / "nowhere"), "--yes")
    assert missing.exit_code == 2 and not terminal.home.exists()
    source = make_openclaw(user / ".openclaw")
    before = contents(source)
    assert "Nothing was written" in terminal.ok("import", "openclaw", "--dry-run") and not terminal.home.exists()
    terminal.ok("memory", "add", "Boat: The **Nordlicht** lies in berth 12.")
    workspace = user / "work"
    terminal.ok("import", "openclaw", "--yes", "--preset", "full", "--workspace-target", str(workspace))
    with memoranda.open(terminal.home) as memory:
        entries = "\n".join((*memory.entries(), *memory.entries("user")))
    assert entries.count("Nordlicht") == 1
    for text in ("Ordered a new genoa.", "Checked the bilge pump.", "Always answer in German."):
        assert text in entries
    assert "Ask before you sail." in (workspace / "AGENTS.md").read_text()
    assert list((terminal.home / "migration" / "openclaw").glob("*/archive"))
    assert any(zipfile.is_zipfile(path) for path in (terminal.home / "backups").iterdir())
    assert not (terminal.home / ".env").exists() or OPENAI not in (terminal.home / ".env").read_text()
    assert terminal.json("search", "anchor")["results"]
    again = terminal.json("import", "openclaw", "--yes")
    assert (again["applied"], again["migration"]["summary"]["planned"]) == (False, 0)
    terminal.ok("import", "openclaw", "--yes", "--migrate-secrets")
    assert OPENAI in (terminal.home / ".env").read_text()
    assert contents(source) == before
    terminal.ok("import", "openclaw", "cleanup", "--source", str(source), "--yes")
    assert not source.exists() and contents(source.with_name(".openclaw.pre-migration")) == before


def _found(terminal: Terminal, query: str) -> dict[str, Any]:
    hit: dict[str, Any] = terminal.json("search", query)["results"][0]
    return hit


def test_claude_code_brings_its_past_and_gets_a_memory(terminal: Terminal, user: Path) -> None:
    """Transcripts are searchable with the command that resumes them; the installation can be reverted."""
    write_lines(user / ".claude" / "projects" / "-home-ann-shop" / f"{SESSION}.jsonl", PRESENT)
    settings = user / ".claude" / "settings.json"
    settings.write_text('{"model": "opus"}\n')
    terminal.ok("import", "claude-code", "--yes")
    assert _found(terminal, "checkout connections")["resume"].endswith(f"claude --resume {SESSION}")
    terminal.ok("memory", "add", "Project uses pytest with xdist.")
    terminal.ok("install", "claude-code", "--yes")
    hooks = json.loads(settings.read_text())["hooks"]
    assert {"SessionStart", "UserPromptSubmit"} <= hooks.keys()
    assert "memoranda" in (user / ".claude.json").read_text()
    payload = {"session_id": "s1", "cwd": str(user), "hook_event_name": "SessionStart", "source": "startup"}
    given = terminal.ok("hook", "claude-code", "SessionStart", "--wait", input=json.dumps(payload))
    assert "Project uses pytest with xdist." in given
    with memoranda.open(terminal.home) as memory, memory.session(source="cli") as session:
        take_turn(session, "Which database does staging use?", "Staging uses the heron cluster, on port 5433.")
        # Other talk, by which words get their weights.
        take_turn(session, "Rename the parser module", "Renamed it to reader.py and fixed the imports.")
        take_turn(session, "Add a spinner to the page", "Added a spinner that shows while the list loads.")
        take_turn(session, "Why does the build fail?", "The lock file was stale; I regenerated it.")
        take_turn(session, "Write a release note", "Wrote one for version 2.4 with the three changes.")
    asked = {**payload, "hook_event_name": "UserPromptSubmit"}
    for prompt, relevant in (("Which port did the heron cluster have?", True), ("Write a haiku.", False)):
        text = json.dumps({**asked, "prompt": prompt, "session_id": f"s-{relevant}"})
        given = terminal.ok("hook", "claude-code", "UserPromptSubmit", "--wait", input=text)
        assert ("on port 5433" in given) is relevant, given
    terminal.ok("uninstall", "claude-code", "--yes")
    assert settings.read_text() == '{"model": "opus"}\n'


def test_cursor_brings_its_past_and_gets_a_memory(terminal: Terminal, user: Path) -> None:
    """Its databases are read; an installation adds the server and hooks, and a rule for one project."""
    cursor_stores.write_editor(user / ".config" / "Cursor" / "User")
    terminal.ok("import", "cursor", "--yes")
    assert _found(terminal, "checkout deadlock")["source"] == "cursor"
    terminal.ok("install", "cursor", "--yes")
    assert "memoranda" in (user / ".cursor" / "mcp.json").read_text()
    assert "beforeSubmitPrompt" in (user / ".cursor" / "hooks.json").read_text()
    project = user / "project"
    project.mkdir()
    terminal.ok("install", "cursor", "--yes", "--project", str(project))
    assert (project / ".cursor" / "rules" / "memoranda.mdc").exists()
    terminal.ok("memory", "add", "Project uses pytest with xdist.")
    payload = {"conversation_id": "c1", "hook_event_name": "sessionStart", "workspace_roots": [str(project)]}
    given = terminal.ok("hook", "cursor", "sessionStart", "--wait", input=json.dumps(payload))
    assert "Project uses pytest with xdist." in given


def test_rules_of_cursor_apply_where_they_match(tmp_path: Path) -> None:
    """A rule with globs is in the prompt only where the directory has such files."""
    rules = tmp_path / "project" / ".cursor" / "rules"
    rules.mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()
    (rules / "always.mdc").write_text("---\nalwaysApply: true\n---\nBe brief.\n")
    (rules / "python.mdc").write_text("---\nglobs: src/**/*.py\n---\nUse type hints.\n")
    (tmp_path / "project" / "src").mkdir()
    (tmp_path / "project" / "web").mkdir()
    (tmp_path / "project" / "src" / "main.py").write_text("")
    (tmp_path / "project" / "web" / "main.ts").write_text("")
    with memoranda.open(tmp_path / "home") as memory:
        prompts = {name: memory.session(directory=tmp_path / "project" / name).prompt for name in ("src", "web")}
    assert all("Be brief." in prompt for prompt in prompts.values())
    assert ("Use type hints." in prompts["src"], "Use type hints." in prompts["web"]) == (True, False)


def test_codex_brings_its_past_and_gets_a_memory(terminal: Terminal, user: Path) -> None:
    """Rollouts are searchable with the command that resumes them; the installation adds the server and hooks."""
    write_lines(
        user
        / ".codex"
        / "sessions"
        / "2026"
        / "03"
        / "02"
        / f"rollout-2026-03-02T10-00-00-{codex_rollouts.SESSION}.jsonl",
        [codex_rollouts.meta(codex_rollouts.SESSION), *codex_rollouts.CONTEXT, *codex_rollouts.SAID],
    )
    terminal.ok("import", "codex", "--yes")
    assert codex_rollouts.SESSION in _found(terminal, "checkout deadlock")["resume"]
    terminal.ok("memory", "add", "Project uses pytest with xdist.")
    terminal.ok("install", "codex", "--yes")
    assert "memoranda" in (user / ".codex" / "config.toml").read_text()
    assert "UserPromptSubmit" in (user / ".codex" / "hooks.json").read_text()
    payload = {"session_id": "s1", "cwd": str(user), "hook_event_name": "SessionStart", "transcript_path": None}
    given = terminal.ok("hook", "codex", "SessionStart", "--wait", input=json.dumps(payload))
    assert "Project uses pytest with xdist." in given
