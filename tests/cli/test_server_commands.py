"""Every command works on a home whose record is on a server, or refuses with the reason."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import memoranda
from memoranda.cli.main import command as program
from memoranda.errors import ConfigError
from memoranda.integrations.hooks.events import HOSTS

REFUSED = {
    "backup": ["backup.zip"],
    "restore": ["backup.zip"],
    "sync run": ["."],
    "sync log": [],
    "sync conflicts": [],
    "sync resolve": ["1", "--keep", "mine"],
    "sessions vacuum": [],
}
"""Commands that refuse, with arguments that they would accept."""

WORKING = {
    "remember": ["Uses uv."],
    "recall": ["uv"],
    "memory add": ["Uses ruff."],
    "memory list": [],
    "memory log": [],
    "memory diff": ["1"],
    "memory pending": [],
    "memory stale": [],
    "memory confirm": ["Uses uv."],
    "memory replace": ["Uses uv.", "Uses uv and pip."],
    "memory remove": ["Uses ruff."],
    "memory move": ["Uses uv and pip.", "--to", "notes"],
    "memory undo": [],
    "memory reset": ["memory", "--yes"],
    "memory purge": ["--yes"],
    "search": ["depot"],
    "recent": [],
    "curate": [],
    "sessions list": [],
    "sessions show": ["s-one"],
    "sessions rename": ["s-one", "The depot"],
    "sessions archive": ["s-one"],
    "sessions unarchive": ["s-one"],
    "sessions export": ["s-one"],
    "sessions stats": [],
    "sessions prune": ["--older-than", "3000d", "--dry-run"],
    "sessions delete": ["s-one", "--yes"],
    "forget": ["--text", "Nothing has this text", "--yes"],
    "import jsonl": ["--source", "{conversation}", "--dry-run"],
    "skills list": [],
    "skills log": [],
    "server key list": [],
    "status": [],
    "semantic status": [],
    "usage": [],
    "provider list": [],
    "provider setup": ["holographic"],
    "provider use": ["holographic"],
    "provider test": [],
    "provider call": ["fact_store", '{{"action": "add", "content": "The depot is in Leeds."}}'],
    "provider ask": ["Where is the depot?"],
    "provider retry": [],
    "provider backfill": ["--yes"],
    "provider status": [],
    "provider forget": ["--yes"],
    "provider off": [],
    "config list": [],
    "config path": [],
    "config get": ["store.url"],
    "secret list": [],
    "profile list": [],
}
"""Commands that answer, with arguments; they run in this order on one home."""

ELSEWHERE = {
    # They start something, or change other programs or files of the node only, and have tests of their own.
    "doctor", "server migrate", "setup", "chat", "install", "uninstall", "mcp", "server serve", "view", "completion",
    "demo", "browse", "eval summaries", "semantic build", "semantic remove", "provider run",
    "memory allow", "memory approve", "memory edit", "memory reject", "sessions import",
    "server key create", "server key revoke", "server key audit", "server key disconnect", "server key programs",
    "server shards list", "server shards move", "import undo",
    "skills allow", "skills create", "skills purge", "skills remove", "skills show", "skills undo", "config set",
    "config unset", "secret remove", "secret set", "import openclaw cleanup", "hook status",
    *(f"hook {host}" for host in HOSTS),
    *(
        f"import {source}"
        for source in ("chatgpt", "claude", "claude-code", "codex", "cursor", "gemini-cli", "hermes", "opencode",
                       "langgraph", "mem0", "openai-agents", "aider", "claude-mem", "cline", "continue", "copilot-chat",
                       "letta", "obsidian", "roo", "zep", "llm", "open-webui", "librechat", "goose", "zed",
                       "copilot-cli", "lm-studio", "jan")
    ),
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home on a server, with one conversation."""
    monkeypatch.setenv("MEMORANDA_STORE", postgres_url)
    with memoranda.open(tmp_path / "home") as memory:
        memory.sessions.create_session("s-one", "cli")
        memory.sessions.append_message("s-one", "user", "Where is the depot?")
    line = '{"role": "user", "content": "An imported question", "timestamp": 1750000000}\n'
    (tmp_path / "conversation.jsonl").write_text(line)
    return tmp_path / "home"


@pytest.mark.slow
def test_every_command_is_known_to_work_or_to_refuse() -> None:
    """A new command must say what it does on a server."""
    listed = [*REFUSED, *WORKING, *ELSEWHERE]
    assert sorted(_leaves(program, [])) == sorted(listed)


@pytest.mark.slow
def test_commands_answer_on_a_server(home: Path) -> None:
    """None of them fails, and none answers from files."""
    failed = {}
    for name, arguments in WORKING.items():
        filled = [part.format(conversation=home.parent / "conversation.jsonl") for part in arguments]
        answer = CliRunner().invoke(program, [*name.split(), *filled, "--home", str(home)])
        if answer.exit_code:
            failed[name] = answer.output
    assert not failed, "\n".join(f"{name}: {output[-400:]}" for name, output in failed.items())
    assert not (home / "state.db").exists()
    assert not (home / "memories").exists()


def test_commands_that_need_files_refuse_with_the_reason(home: Path) -> None:
    """They name the server and say what to do instead, and change nothing."""
    for name, arguments in REFUSED.items():
        answer = CliRunner().invoke(program, [*name.split(), *arguments, "--home", str(home)])
        assert answer.exit_code == 1, f"{name}: {answer.output}"
        assert "The record is on postgresql://" in answer.output, name


def test_a_memory_in_files_of_one_machine_and_a_server_are_refused_together(home: Path) -> None:
    """Each node would have a part of it."""
    (home / "config.yaml").write_text("memory:\n  provider: byterover\n")
    with pytest.raises(ConfigError, match="directory of one machine"):
        memoranda.open(home)


def _leaves(command: click.Command, path: list[str]) -> Iterator[str]:
    context = click.Context(command)
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _leaves(found, [*path, name])
