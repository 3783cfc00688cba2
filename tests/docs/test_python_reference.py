"""The reference of the Python API names everything that is public, and its types hold."""

import asyncio
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

import pytest

import memoranda
from memoranda import errors, types
from memoranda.testing.scripted.model import ScriptedModel
from tests.docs import python_reference, reference
from tests.docs.pages import ROOT

pytestmark = pytest.mark.slow

PAGES = sorted((ROOT / "docs" / "reference").glob("python*.md"))
EXAMPLE = Path(__file__).with_name("typed_example.py")


def _section(name: str) -> str:
    text = "".join(page.read_text() for page in PAGES)
    return text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


async def _async_instances(home: Path) -> dict[str, Any]:
    async with memoranda.open_async(home) as memory, memory.session() as session, session.turn("Hello") as turn:
        agent = await memory.agent(ScriptedModel([]))
        return {"AsyncMemory": memory, "AsyncSession": session, "AsyncTurn": turn, "AsyncAgent": agent}


def _instances(home: Path) -> dict[str, Any]:
    memory = memoranda.open(home)
    session = memory.session()
    return asyncio.run(_async_instances(home)) | {
        "Memory": memory,
        "Session": session,
        "Turn": session.turn("Hello"),
        "Agent": memory.agent(ScriptedModel([])),
        "Tool": memory.tools[0],
    }


@pytest.mark.parametrize("name", python_reference.CLASSES)
def test_every_public_member_is_described(tmp_path: Path, name: str) -> None:
    """In the table of its class, attributes of an instance included."""
    table = "".join(line for line in _section(name).splitlines(True) if line.startswith("| `"))
    members = [member for member in dir(_instances(tmp_path)[name]) if not member.startswith("_")]
    assert [member for member in members if f"`{member}" not in table] == []


def test_every_public_class_has_its_signatures_in_the_reference() -> None:
    """Of each class that the package offers, errors and modules excepted."""
    offered = {name.lower() for name in memoranda.__all__ if inspect.isclass(getattr(memoranda, name))}
    assert offered - {"memorandaerror"} <= {marker for parts in reference.MARKED.values() for marker, _ in parts}


def test_every_exception_is_in_the_tree() -> None:
    """At its own line; a former name is not."""
    defined = [name for name, found in vars(errors).items() if inspect.isclass(found) and found.__name__ == name]
    assert [name for name in defined if f" {name} " not in f" {_section('Exceptions')} ".replace("\n", " ")] == []


def _unknown(value: Any, shape: Any, path: str = "") -> list[str]:
    """The keys of an answer that its shape does not have, and the required ones that it lacks."""
    if get_origin(shape) is NotRequired:
        return _unknown(value, get_args(shape)[0], path)
    if get_origin(shape) is list and isinstance(value, list):
        return [each for item in value for each in _unknown(item, get_args(shape)[0], f"{path}[]")]
    if not is_typeddict(shape):
        return []
    hints = get_type_hints(shape, include_extras=True)
    wrong = [f"{path}.{key}" for key in value if key not in hints]
    wrong += [f"{path}.{key} missing" for key in shape.__required_keys__ if key not in value]
    return wrong + [each for key in value if key in hints for each in _unknown(value[key], hints[key], f"{path}.{key}")]


def test_the_answers_have_the_keys_of_their_shapes(tmp_path: Path) -> None:
    """A search in every mode, a receipt, a refusal, and the messages of a conversation."""
    with memoranda.open(tmp_path, summarize=lambda instructions, transcript: "A summary.") as memory:
        session = memory.session(directory=tmp_path / "project")
        with session.turn("How did we fix the deadlock?") as turn:
            call: Any = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            turn.record("assistant", None, tool_calls=[call], reasoning="Let me look.")
            turn.record("tool", "The locks. " * 500, tool_call_id="c", tool_name="look")
            messages = turn.messages
            turn.done("We took the locks in one order. " * 100)
        found = memory.search("deadlock", why=True)
        hit = found["results"][0]["match_message_id"]
        searches: list[Any] = [found, memory.search("zebra unicorn", since="2d"), memory.search("", limit=1)]
        read: list[Any] = [
            memory.search(session_id=session.id),
            memory.search(session_id=session.id, around_message_id=hit, window=1),
        ]
        writes: list[Any] = [memory.remember("A fact."), memory.remember("A fact."), memory.remember("x" * 5000)]
        writes.append(memory.call("memory", {"target": "memory", "action": "remove", "old_text": "fact"}))
    assert [each["mode"] for each in (*searches, *read)] == ["discover", "discover", "browse", "read", "scroll"]
    assert _unknown(searches, list[types.SearchAnswer]) == []
    assert _unknown(read, list[types.ConversationAnswer]) == []
    assert _unknown(writes, list[types.MemoryAnswer]) == []
    assert _unknown(messages, list[types.ChatMessage]) == []


@pytest.mark.torture
def test_the_types_hold_for_a_caller_with_strict_checks(tmp_path: Path) -> None:
    """The example has no error; a misspelt option, key and wrong type are errors where it says so.

    `make lint` checks the same file, with the settings of this repository instead of none.
    """
    arguments = ["-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".cache" / "mypy"), str(EXAMPLE)]
    checked = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert checked.returncode == 0, checked.stdout


def test_the_typed_example_runs(tmp_path: Path) -> None:
    """It is no fiction: what it reads is there."""
    ran = subprocess.run(
        [sys.executable, str(EXAMPLE), str(tmp_path)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "titles": 1,
        "saved": True,
        "roles": ["user", "assistant"],
        "streamed": ["1 message", "1", "2"],
        "ordered": True,
    }
