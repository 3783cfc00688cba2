"""What two machines must agree on: the one function that says whether two homes have identical contents."""

import re
from pathlib import Path
from typing import Any

from memoranda.api.memory import Memory
from memoranda.external.holographic.user_facts import read_facts, stored_facts
from memoranda.memory.record.message_rows import strip_references

_READ = r"state\.db|memories/(?:MEMORY|USER)\.md|projects/[^/]+/MEMORY\.md|memories/pending/.*|skills/[^.].*"
# Each machine has its own: settings and secrets, caches, queues, histories of writing, locks and logs.
_LOCAL = (
    r"config\.yaml|\.env|state\.marker\.json|state\.index.*|\.turns/.*|sync\.forgotten|home\.db|holographic\.cache/.*"
    r"|memories/(?:journal\.jsonl|journal\.marker\.json|allowed\.json|forgotten\.json|.*\.bak\..*)|skills/\..*|logs/.*|.*\.lock|.*/\.lock"
)
_COMPANION = r"(?:-wal|-shm|-journal)?"
_COSTS = ("estimated_cost_usd", "actual_cost_usd")


def home_contents(memory: Memory) -> dict[str, Any]:
    """All of a home but what is each machine's own: ids, the order of messages and entries, and `_LOCAL`."""
    root = memory.home.root
    unknown = [name for name in _files(root) if not re.fullmatch(f"(?:{_READ}|{_LOCAL}){_COMPANION}", name)]
    assert not unknown, f"say whether these files are synchronised: {unknown}"
    return {
        "sessions": _sessions(memory),
        "items": _items(memory),
        "entries": {
            target: sorted(entry.text for entry in memory.curated.view(target).entries)
            for target in sorted(memory.curated.storage.targets())
        },
        "facts of entries": {
            (target, each.entry.text): each.history | {"until": each.until}
            for target in memory.curated.storage.targets()
            for each in memory.curated.facts(target)
        },
        "proposals": memory.curated.proposals.read_texts(),
        "skills": _skills(root / "skills"),
        "facts": _facts(root),
    }


def _files(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]


def _sessions(memory: Memory) -> dict[str, Any]:
    db: Any = memory.sessions
    found = {}
    for session_id in db.synced_rows.fingerprints():
        head, fields = db.synced_rows.read_session(session_id)
        row = db.get_session(session_id)
        counts = {name: row[name] for name in ("message_count", "own_message_count", "conversation_id", "successor_id")}
        costs = {name: None if row[name] is None else round(row[name], 9) for name in _COSTS}
        messages = sorted(
            (fields["timestamp"], fields["role"], str(_without_ids(fields)), flags[:2])
            for _, fields, _, flags in db.synced_rows.read_messages(session_id)
        )
        found[session_id] = {**head, **fields, **counts, **costs, "messages": messages}
    return found


def _without_ids(fields: dict[str, Any]) -> Any:
    return strip_references(fields.get("content"), is_summary=bool(fields.get("is_summary")))


def _items(memory: Memory) -> dict[Any, Any]:
    db: Any = memory.sessions
    return {
        (tuple(item["item"]["namespace"]), item["item"]["key"]): [
            (version["event"], version["updated_at"], version.get("value")) for version in item["item"]["versions"]
        ]
        for item in db.item_transfer.iter_export()
    }


def _skills(directory: Path) -> dict[str, Any]:
    files = [name for name in _files(directory) if not name.startswith(".")] if directory.is_dir() else []
    return {name: ((directory / name).read_bytes(), (directory / name).stat().st_mode & 0o100) for name in files}


def _facts(root: Path) -> dict[str, Any]:
    with stored_facts(root, None) as store:
        return {} if store is None else {key: fact for key, fact in read_facts(store).items()}
