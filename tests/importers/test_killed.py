"""An import that is killed at any time continues where it was, and ends as if nothing had happened."""

import random
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memoranda.importers import item_import
from memoranda.importers.coding_agents.claude_code import ClaudeCode
from memoranda.importers.importer import Importer
from memoranda.memory.record.store import open_store
from tests.forked import Forked, Say, forking
from tests.importers.claude_code_lines import assistant, call, result, text, user
from tests.importers.import_home import Home, write_lines


def _import(root: Path, source: Path, say: Say) -> None:
    """Import in small batches, in a process of its own."""
    item_import._MAX_BATCH_MESSAGES = 7
    engine = Importer(root, open_store(root / "state.db"))
    say(b"begun\n")
    engine.apply(ClaudeCode(), ClaudeCode().scan(source))
    say(b"done\n")


def _session(number: int) -> list[dict[str, Any]]:
    lines = []
    for turn in range(60):
        name = f"{number}-{turn}"
        lines += [
            user(f"u{name}", f"question {name}"),
            assistant(f"c{name}", call(f"toolu_{name}", "Bash", command="ls")),
            user(f"r{name}", [result(f"toolu_{name}", f"output {name}")]),
            assistant(f"a{name}", text(f"answer {name}")),
        ]
    # A session in its own file repeats the first one's beginning, as forks do.
    return [*(_session(0)[:40] if number == 3 else []), *lines, {"type": "ai-title", "aiTitle": f"Talk {number % 2}"}]


def _said(home: Home) -> dict[str, Any]:
    return {
        name: (row["title"], row["parent_session_id"], row["message_count"], row["tool_call_count"],
               [(each["external_id"], each["content"], each["tool_name"]) for each in row["messages"]])
        for name, row in home.everything().items()
    }  # fmt: skip


@pytest.mark.slow
@forking
@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.torture), pytest.param(2, marks=pytest.mark.torture)]
)
def test_after_many_kills_the_result_is_the_same(tmp_path: Path, seed: int) -> None:
    """kill -9 in the middle of batches: nothing is lost, nothing is there twice, counters and titles are right."""
    source, dice = tmp_path / "source", random.Random(seed)
    for number in range(4):
        write_lines(source / f"session-{number}.jsonl", _session(number))
    root = tmp_path / "killed"
    root.mkdir()
    kills = 0
    for _ in range(40):
        process = Forked(partial(_import, root, source))
        said = process.heard()
        time.sleep(dice.uniform(0, 0.08))
        if said + process.kill() == b"begun\ndone\n":
            break
        kills += 1
    killed, whole = Home(root), Home(tmp_path / "whole")
    killed.take(ClaudeCode(), source)
    whole.take(ClaudeCode(), source)
    assert kills > 1
    assert _said(killed) == _said(whole)
    assert killed.take(ClaudeCode(), source).messages == 0
    assert killed.take(ClaudeCode(), source, rescan=True).messages == 0


@pytest.mark.slow
@forking
def test_two_imports_at_the_same_time_add_everything_once(tmp_path: Path) -> None:
    """A hook may import while a person does."""
    source, root = tmp_path / "source", tmp_path / "home"
    for number in range(3):
        write_lines(source / f"session-{number}.jsonl", _session(number))
    root.mkdir()
    both = [Forked(partial(_import, root, source)) for _ in range(2)]
    assert [process.rest() for process in both] == [b"begun\ndone\n"] * 2
    home, whole = Home(root), Home(tmp_path / "whole")
    whole.take(ClaudeCode(), source)
    told = {name: (sorted(said[4]), said[2]) for name, said in _said(home).items()}
    assert told == {name: (sorted(said[4]), said[2]) for name, said in _said(whole).items()}
