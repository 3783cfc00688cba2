"""Imported sessions carry the project that was worked on, and are found by it."""

import json
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.importers.coding_agents.claude_code import ClaudeCode
from memoranda.importers.coding_agents.codex import Codex
from memoranda.importers.importer import Importer
from memoranda.importers.sources import resume_command
from memoranda.search.tool import SessionSearchTool
from memoranda.support.projects import project_of
from tests.importers.claude_code_lines import SESSION, assistant, text, user
from tests.support.projects.repositories import git, make_repository

pytestmark = pytest.mark.slow

CODEX = "019a1d2e-5f60-7a81-9b2c-3d4e5f607182"


def transcript(directory: Path, where: Path, session: str = SESSION) -> None:
    lines = [
        user(f"u-{session}", "Why does the lock hang?", session=session, cwd=str(where)),
        assistant(f"a-{session}", text("It is taken twice."), session=session, cwd=str(where)),
    ]
    file = directory / "projects" / str(where).replace("/", "-") / f"{session}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def rollout(directory: Path, where: str, remote: str) -> None:
    meta = {"id": CODEX, "timestamp": "2026-03-01T10:00:00.000Z", "cwd": where, "originator": "codex_cli_rs",
            "cli_version": "0.166.0", "git": {"branch": "main", "repository_url": remote}}  # fmt: skip
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Mend the lock, please."}]}
    lines = [{"timestamp": meta["timestamp"], "type": "session_meta", "payload": meta},
             {"timestamp": meta["timestamp"], "type": "response_item", "payload": said}]  # fmt: skip
    file = directory / "sessions" / "2026" / "03" / "01" / f"rollout-2026-03-01T10-00-00-{CODEX}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_sessions_in_worktrees_clones_and_on_other_machines_are_found_as_one_project(tmp_path: Path) -> None:
    """From two programs, limited to the repository, each with the command that resumes it."""
    house = make_repository(tmp_path / "house", "first", origin="git@github.com:ana/house.git")
    git(house, "worktree", "add", "--quiet", str(tmp_path / "tree"), "-b", "feature")
    other = make_repository(tmp_path / "shed", "another first")
    second, third = SESSION[:-1] + "1", SESSION[:-1] + "2"
    transcript(tmp_path / "claude", house)
    transcript(tmp_path / "claude", tmp_path / "tree", second)
    transcript(tmp_path / "claude", other, third)
    rollout(tmp_path / "codex", "/another/machine/house", "https://token@github.com/ana/house")
    with SessionDB(tmp_path / "state.db") as db:
        engine = Importer(tmp_path, db)
        for reader, place in ((ClaudeCode(), "claude"), (Codex(), "codex")):
            engine.apply(reader, reader.scan(tmp_path / place))
        engine.close()
        ask = {"query": "lock", "limit": 10}
        results = SessionSearchTool(lambda: db, current_project=lambda: project_of(house)).call(
            {**ask, "project": "this"}
        )["results"]
        assert {result["session_id"]: result["project"] for result in results} == {
            f"claude-code-{SESSION}": project_of(house),
            f"claude-code-{second}": project_of(house),
            f"codex-{CODEX}": "github.com/ana/house",
        }
        commands = {
            result["session_id"]: resume_command(db.get_session(result["session_id"]) or {}) for result in results
        }
    assert commands == {
        f"claude-code-{SESSION}": f"cd {house} && claude --resume {SESSION}",
        f"claude-code-{second}": f"cd {tmp_path / 'tree'} && claude --resume {second}",
        f"codex-{CODEX}": f"cd /another/machine/house && codex resume {CODEX}",
    }
