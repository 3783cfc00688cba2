"""Reads what Zep and Graphiti remember from JSON files: episodes, facts with dates, and messages of threads.

A file is a page of Zep's API, or what Graphiti's own models write (`model_dump(mode="json")`), under the names
`episodes`, `edges` or `facts`, and `messages`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import chat_events, dicts_in, get_text, text_message
from memoranda.importers.notes import dated_text, note, notes_of
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadError, ReadEvent
from memoranda.importers.source_files import find_items, load_json

_PROGRAM = "zep"
_FIELDS = ("episodes", "edges", "facts", "messages")
_KEPT = (
    "name",
    "source_node_uuid",
    "target_node_uuid",
    "episodes",
    "expired_at",
    "valid_at",
    "invalid_at",
    "attributes",
)


class Zep:
    name = _PROGRAM

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the JSON files under a path; both keep their graph in a database server."""
        return find_items(path, (), lambda file: file.suffix == ".json", "graph")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the episodes and messages as sessions, and the facts as notes."""
        value = load_json(item)
        if isinstance(value, list):
            value = {_kind_of(value): value}
        if not isinstance(value, dict) or not any(isinstance(value.get(name), list) for name in _FIELDS):
            problem = f"not a page of Zep or Graphiti: a list of {', '.join(_FIELDS)} is expected"
            raise ReadError(Problem(item.file, None, problem))
        yield from _read_episodes(item, dicts_in(value.get("episodes")))
        yield from _read_messages(item, value, dicts_in(value.get("messages")))
        yield from _read_facts(item, [*dicts_in(value.get("edges")), *dicts_in(value.get("facts"))])


def _kind_of(values: list[Any]) -> str:
    first = next(iter(dicts_in(values)), {})
    return "facts" if "fact" in first else "messages" if "role" in first and "source" not in first else "episodes"


def _group(value: dict[str, Any], item: ImportItem) -> str:
    names = ("group_id", "graph_id", "user_id", "thread_id", "session_id")
    return next((found for name in names if (found := get_text(value, name))), item.file.stem)


def _read_episodes(item: ImportItem, episodes: list[dict[str, Any]]) -> Iterator[ReadEvent]:
    """Yield episodes in the order of what they tell, in one session per group."""
    for episode in sorted(episodes, key=lambda entry: (_group(entry, item), str(_time_of(entry)))):
        group, name, text = _group(episode, item), get_text(episode, "uuid"), get_text(episode, "content")
        if not name or not text:
            yield Problem(item.file, None, "an episode without uuid or content")
            continue
        yield ImportedConversation(group, f"Zep: {group}")
        role = {"user": "user", "tool": "tool", "function": "tool"}.get(str(episode.get("role_type")), "assistant")
        if not episode.get("role_type") and episode.get("source") == "message":
            # Graphiti has the speaker in the text.
            role = "user"
        more = {"tool_call_id": name} if role == "tool" else {}
        yield text_message(role, text, name, _time_of(episode), None, **more)


def _time_of(value: dict[str, Any]) -> Any:
    return value.get("valid_at") or value.get("created_at")


def _read_messages(item: ImportItem, page: dict[str, Any], messages: list[dict[str, Any]]) -> Iterator[ReadEvent]:
    if messages:
        thread = _group(page, item)
        yield ImportedConversation(thread, f"Zep: {thread}")
    for number, message in enumerate(messages):
        role = message.get("role_type") or message.get("role")
        yield from chat_events(
            {**message, "role": role}, get_text(message, "uuid") or f"{thread}:{number}", message.get("created_at")
        )


def _read_facts(item: ImportItem, facts: list[dict[str, Any]]) -> Iterator[ReadEvent]:
    for fact in sorted(facts, key=lambda entry: (_group(entry, item), str(entry.get("created_at")))):
        group, name, text = _group(fact, item), get_text(fact, "uuid"), get_text(fact, "fact")
        if not name or not text:
            yield Problem(item.file, None, "a fact without uuid or text")
            continue
        yield notes_of(_PROGRAM, group, f"Zep: facts of {group}")
        dated = dated_text(text, fact.get("valid_at"), fact.get("invalid_at"))
        yield note(group, name, dated, fact.get("created_at"), {key: fact.get(key) for key in _KEPT})
