"""A home that a marker word has entered through every door, and an independent search for it in all bytes."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import memoranda
from memoranda.api.memory import Memory
from memoranda.importers.coding_agents.claude_code import ClaudeCode
from memoranda.importers.importer import Importer
from memoranda.integrations.hooks.log import HookLog
from memoranda.memory.curated.operations import Add
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record.rotation import KeptMessage, Summary
from memoranda.support.origin import Origin
from memoranda.upkeep.backup.archive import back_up
from tests.external.plugins import add_plugin, plain
from tests.importers import claude_code_lines as claude

# A service that is down: nothing is ever delivered to it.
DOWN = plain("down", "def sync_turn(self, *args, **facts):\n    raise RuntimeError('down')",
             "def on_memory_write(self, *args, **facts):\n    raise RuntimeError('down')")  # fmt: skip


def fill(root: Path, source: Path, marker: str) -> None:
    """Put the marker into everything that a home keeps, and other text beside it."""
    root.mkdir(parents=True, mode=0o700, exist_ok=True)
    add_plugin(root, "down", DOWN)
    (root / "config.yaml").write_text("memory:\n  providers: [holographic, down]\nprovider:\n  start_seconds: 5\n")
    write_transcript(source, marker)
    import_transcripts(root, source)
    with memoranda.open(root) as memory:
        _remember(memory, marker)
        _converse(memory, marker)
        back_up(root)
    _leave_files(root, marker)


def write_transcript(source: Path, marker: str) -> None:
    """A conversation of Claude Code, outside the home."""
    folder = source / "-home-ann-shop"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        claude.user("u1", f"Where does {marker} live?"),
        claude.assistant("a1", claude.text(f"In the cellar of {marker.title()}, beside the apples.")),
        {"type": "ai-title", "aiTitle": f"The cellar of {marker}", "sessionId": claude.SESSION},
    ]
    (folder / f"{claude.SESSION}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def import_transcripts(root: Path, source: Path) -> int:
    """Import the conversation; returns how many messages are new."""
    reader = ClaudeCode()
    with memoranda.open(root) as memory:
        importer = Importer(root, memory.sessions)
        try:
            return importer.apply(reader, reader.scan(source)).messages
        finally:
            importer.close()


def _remember(memory: Memory, marker: str) -> None:
    memory.remember("Likes pears.")
    memory.remember(f"The codename of the project is {marker}.")
    memory.remember(f"{marker.upper()} has a birthday in June.", "user")
    answer = memory.call("memory", {"action": "add", "target": "memory", "content": f"Short-lived: {marker}"})
    assert answer["success"], answer
    memory.call("memory", {"action": "remove", "target": "memory", "old_text": "Short-lived"})
    asking = MemoryStore(memory.home.memories(), CuratedSettings(write_approval="propose"))
    for text in (f"Proposed: {marker}", f"Refused: {marker}", "Proposed: plums"):
        asking.apply("memory", [Add(text)], Origin("agent"))
    asking.proposals.reject(next(item for item in asking.proposals.all() if "Refused" in repr(item)))


def _converse(memory: Memory, marker: str) -> None:
    with memory.session(source="test", model="some/model") as session:
        with session.turn(f"I always prefer {marker} over bananas") as turn:
            arguments = json.dumps({"path": f"/srv/{marker}.txt", "why": f"it says\n{marker}"})
            call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": arguments}}
            turn.record("assistant", tool_calls=[call], reasoning=f"They mean {marker}.")
            turn.record("tool", json.dumps({"found": f"“{marker}”"}), tool_name="read", tool_call_id="c1")
            turn.done(f"Noted: {marker}, and bananas.")
        name = session.id
    db = memory.sessions
    db.set_session_title(name, f"About {marker}")
    db.save_conversation_todos(name, json.dumps([{"content": f"Buy {marker}"}]))
    db.save_conversation_todos(name, json.dumps([{"content": "Buy bananas"}]))
    kept = db.get_messages(name)[-1]["id"]
    db.rotate_session(
        name,
        "continued",
        [Summary(f"They talked about {marker} and bananas."), KeptMessage(kept)],
        last_seen=db.last_message_id(),
        system_prompt=f"You know {marker}.",
    )
    db.note_compression("continued", json.dumps({"note": f"kept {marker}"}))
    assert memory.search(marker)["results"]
    db.index.catch_up()


def _leave_files(root: Path, marker: str) -> None:
    log = HookLog(root)
    log.begin("codex", "prompt", "abc", f"tell me about {marker} please")
    log.end("given", "it matches")
    (root / "logs" / "chat.log").write_bytes(f"10:00 error near {marker}\n10:01 all is well\n".encode())
    (root / "chat_history").write_text(f"what is {marker}?\nwhat about figs?\n")
    (root / "expansions.json").write_text(json.dumps({"0a": [marker, "grapes"], "0b": ["melons"]}))
    (root / "SOUL.md").write_text(f"You are kind.\nYour friend is {marker}.\n")
    turns = root / "host-turns" / "hermes"
    turns.mkdir(parents=True)
    (turns / "1.json").write_text(
        json.dumps({"session_id": "x", "messages": [{"role": "user", "content": f"{marker} and dates"}]})
    )
    skill = root / "skills" / "bake"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: bake\ndescription: Bakes.\n---\nAsk {marker} first.\nThen bake.\n")
    (root / "memories" / "MEMORY.md.bak.1700000000-0").write_text(f"An old note about {marker}.\n§\nOld: walnuts")
    (root / "state.db.damaged-1700000000").write_bytes(b"\0\1" + marker.encode() + b"\2 the rest")


def occurrences(root: Path, marker: str) -> dict[str, int]:
    """In which files the marker is, in any case, in plain bytes; archives are opened."""
    found: dict[str, int] = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        count = sum(part.lower().count(marker.lower().encode()) for part in _parts(path.read_bytes()))
        if count:
            found[path.relative_to(root).as_posix()] = count
    return found


def _parts(raw: bytes) -> Iterator[bytes]:
    yield raw
    if raw[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            yield from map(archive.read, archive.namelist())
