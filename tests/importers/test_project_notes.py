"""What Claude Code and Codex noted about a project awaits approval for the memory of that project."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda
from memoranda.importers.coding_agents.claude_code import ClaudeCode
from memoranda.importers.coding_agents.codex import Codex
from memoranda.importers.importer import Importer
from memoranda.importers.reader_protocol import ConversationReader
from memoranda.importers.summary import ImportSummary
from memoranda.memory.curated.operations import Add
from memoranda.memory.curated.settings import project_target
from memoranda.support.projects import project_of

pytestmark = pytest.mark.slow


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[memoranda.Memory]:
    with memoranda.open(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    shop = tmp_path / "work" / "shop"
    shop.mkdir(parents=True)
    return shop


def _import(memory: memoranda.Memory, reader: ConversationReader, path: Path) -> ImportSummary:
    importer = Importer(memory.home.root, memory.sessions, curated=memory.curated)
    try:
        return importer.apply(reader, reader.scan(path))
    finally:
        importer.close()


def _proposed(memory: memoranda.Memory, directory: Path) -> list[str]:
    target = project_target(project_of(str(directory)) or "")
    waiting = [each for each in memory.curated.proposals.all() if each.target == target]
    return [item.content for each in waiting for item in each.operations if isinstance(item, Add)]


def test_notes_of_claude_code_are_proposed_for_their_project(
    memory: memoranda.Memory, shop: Path, tmp_path: Path
) -> None:
    """One entry per item, without the list of files; a second import proposes nothing; recall finds them as well."""
    folder = tmp_path / "claude" / "projects" / "-work-shop"
    (folder / "memory").mkdir(parents=True)
    line = {"type": "user", "sessionId": "s1", "uuid": "u1", "cwd": str(shop), "timestamp": "2026-05-01T10:00:00Z"}
    (folder / "s1.jsonl").write_text(json.dumps(line | {"message": {"role": "user", "content": "Hello"}}) + "\n")
    (folder / "memory" / "MEMORY.md").write_text(
        "# Memory\n\n- [Build](build.md) — how to build\n- Port 8080 is taken.\n"
    )
    notes = "---\nname: Build\ntype: project\n---\n\n# Build\n\n- Build with `make all`.\n- Tests need Redis.\n"
    (folder / "memory" / "build.md").write_text(notes)
    for _ in range(2):
        summary = _import(memory, ClaudeCode(), tmp_path / "claude")
        assert _proposed(memory, shop) == ["Port 8080 is taken.", "Build with `make all`.", "Tests need Redis."]
    assert not summary.proposals and memory.search("Redis")["results"]
    assert memory.entries() == () and all("shop" in each.target for each in memory.curated.proposals.all())


def test_memories_of_codex_are_proposed_for_their_projects(
    memory: memoranda.Memory, shop: Path, tmp_path: Path
) -> None:
    """By section; the history of tasks, and what belongs to no directory of this machine, is only found by recall."""
    (tmp_path / "codex" / "sessions").mkdir(parents=True)
    (tmp_path / "codex" / "memories").mkdir()
    (tmp_path / "codex" / "memories" / "MEMORY.md").write_text(
        f"# Task Group: the shop\nscope: releases\napplies_to: cwd={shop}; reuse_rule=safe\n\n"
        "## Task 1: fix the till\n\n### keywords\n\n- till, drawer\n\n"
        "## Reusable knowledge\n\n- Releases need a signed tag. [Task 1]\n\n"
        "# Task Group: elsewhere\nscope: x\napplies_to: cwd=/gone/away; reuse_rule=safe\n\n"
        "## Reusable knowledge\n\n- Uses Bun.\n"
    )
    summary = _import(memory, Codex(), tmp_path / "codex")
    assert _proposed(memory, shop) == ["Releases need a signed tag. [Task 1]"]
    assert len(memory.curated.proposals.all()) == 1 and not summary.problems
    assert memory.search("drawer")["results"]
