"""The parts of a home that are written to: how each stores a text, durably when it returns, and which texts it has."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from langgraph.checkpoint.base import empty_checkpoint

from memoranda.api.memory import Memory
from memoranda.home import config
from memoranda.integrations.frameworks.langgraph import MemorandaSaver
from memoranda.memory.skills.skill_text import with_front_matter
from memoranda.memory.skills.write_result import SkillReceipt
from memoranda.support.home import Home
from memoranda.support.origin import PERSON
from tests.external.plugins import add_plugin, plain
from tests.timing import GIVE_UP
from tests.torture.workload import prepare

_SESSION, _NAMESPACE, _PROVIDER = "struck", ("struck",), "keeper"
_ALL = 1_000_000
# A provider with one file, beside the home, to which it adds every turn that it gets.
_KEEPER = plain(
    _PROVIDER,
    "def initialize(self, session_id, **facts):\n    self.file = str(facts['hermes_home']) + '.kept'",
    "def sync_turn(self, user_content, assistant_content, **facts):\n"
    "    import json\n"
    "    with open(self.file, 'a') as file:\n"
    "        file.write(json.dumps(user_content) + '\\n')\n"
    "        file.flush()\n"
    "        os.fsync(file.fileno())",
)


@dataclass(frozen=True)
class Part:
    """`write` returns when a text is stored, `read` gives every text that is."""

    write: Callable[[Memory, str], object]
    read: Callable[[Memory], list[str]]


def new_home(root: Path) -> Path:
    """A home with room for everything, and a provider."""
    prepare(root)
    add_plugin(root, _PROVIDER, _KEEPER)
    config.set_value(Home.at(root), "memory.provider", _PROVIDER)
    return root


def _append(memory: Memory, text: str) -> None:
    if memory.sessions.get_session(_SESSION) is None:
        memory.sessions.create_session(_SESSION, "cli")
    memory.sessions.append_message(_SESSION, "user", text)


def _messages(memory: Memory) -> list[str]:
    if memory.sessions.get_session(_SESSION) is None:
        return []
    return [str(row["content"]) for row in memory.sessions.get_messages(_SESSION)]


def _remember(memory: Memory, text: str) -> None:
    assert memory.remember(text)["success"]


def _create_skill(memory: Memory, text: str) -> None:
    name = text.replace(" ", "-")
    result = memory.services.skills_for(None).create(name, with_front_matter(name, text, "1. Wait."), PERSON)
    assert isinstance(result, SkillReceipt), result


def _skills(memory: Memory) -> list[str]:
    return [skill.description for skill in memory.services.skills_for(None).catalogue().skills]


def _put_checkpoint(memory: Memory, text: str) -> None:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"text": text}
    place = {"configurable": {"thread_id": _SESSION, "checkpoint_ns": ""}}
    MemorandaSaver(memory).put(place, checkpoint, {"source": "loop", "step": 1}, {})  # type: ignore[arg-type]


def _checkpoints(memory: Memory) -> list[str]:
    found = MemorandaSaver(memory).list({"configurable": {"thread_id": _SESSION}})
    return [each.checkpoint["channel_values"]["text"] for each in found]


def _complete_turn(memory: Memory, text: str) -> None:
    with memory.session(source="cli") as session, session.turn(text) as turn:
        turn.done("Noted.")


def _delivered(memory: Memory) -> list[str]:
    """What the provider has, after everything that waited was delivered; a turn may arrive twice after a kill."""
    with memory.session(source="cli") as session:
        group = session.external._group
        assert group is not None
        assert all(manager.drain(GIVE_UP) for manager in group.managers), "the outbox does not become empty"
    file = memory.home.root.with_name(f"{memory.home.root.name}.kept")
    return list(dict.fromkeys(map(json.loads, file.read_text().splitlines()))) if file.exists() else []


PARTS = {
    "record": Part(_append, _messages),
    "curated": Part(_remember, lambda memory: list(memory.entries("memory"))),
    "skills": Part(_create_skill, _skills),
    "items": Part(
        lambda memory, text: memory.items.put(_NAMESPACE, text, {"text": text}),
        lambda memory: [item.key for item in memory.sessions.items.list_items(_NAMESPACE, limit=_ALL)],
    ),
    "checkpoints": Part(_put_checkpoint, _checkpoints),
    "outbox": Part(_complete_turn, _delivered),
}
