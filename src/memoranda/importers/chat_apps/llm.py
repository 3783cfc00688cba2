"""Reads the log of llm, Simon Willison's command line, from its `logs.db`.

Since 0.32 a thread is a chain of messages that are stored once for all threads; a turn is one call of a model, and
names the last message of its chain. Earlier versions wrote one row for each response. A conversation that an older
version started and a newer one continued is in both: the chain repeats it, and the rows have the times.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import call_parts, part_events, text_message, tool_result_message
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, ReadEvent
from memoranda.importers.source_databases import find_databases, read_database, rows, tables
from memoranda.importers.source_files import settings_directories
from memoranda.support.json_object import parse_object

_TABLES = {"responses": ("id", "conversation_id", "prompt", "response"), "turns": ("id", "thread_id")}
_FOLDER = "io.datasette.llm"
_RESPONSES = (
    "SELECT r.id, coalesce(r.conversation_id, r.id), c.name, r.model, r.prompt, r.response, r.datetime_utc"
    " FROM responses r LEFT JOIN conversations c ON c.id = r.conversation_id ORDER BY 2, r.id"
)
_TURNS = (
    "SELECT t.thread_id, h.name, t.model, t.parent_message_hash, t.tip_message_hash, t.datetime_utc"
    " FROM turns t JOIN threads h ON h.id = t.thread_id ORDER BY t.thread_id, t.id"
)
_FRAGMENTS = (
    "SELECT f.content FROM prompt_fragments p JOIN fragments f ON f.id = p.fragment_id"
    ' WHERE p.response_id = ? ORDER BY p."order"'
)


class Llm:
    name = "llm"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the databases under a path, or the one in llm's own directory."""
        directories = [path] if path is not None else [base / _FOLDER for base in settings_directories()]
        return [item for directory in directories for item in find_databases(directory, _TABLES, "log")]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        return read_database(item, "llm", _TABLES, lambda connection: _Log(connection).events())

    def resume_command(self, host_id: str, directory: str | None) -> str:
        return f"llm chat --cid {host_id}"


class _Log:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tables = tables(connection)
        self._told: set[str] = set()

    def events(self) -> Iterator[ReadEvent]:
        if "responses" in self._tables:
            yield from self._responses()
        if "turns" in self._tables:
            yield from self._turns(frozenset(self._told))

    def _conversation(self, host_id: str, title: str | None, model: str | None) -> ImportedConversation:
        # The first name is the one of the older version; the newer one names it again after its own first prompt.
        is_new = host_id not in self._told
        self._told.add(host_id)
        return ImportedConversation(host_id, title if is_new else None, model)

    def _responses(self) -> Iterator[ReadEvent]:
        for response, conversation, title, model, prompt, answer, at in rows(self._connection, _RESPONSES):
            yield self._conversation(str(conversation), title, model)
            yield from self._results(response, at)
            asked = "\n".join([*self._fragments(response), *([prompt] if prompt else [])])
            if asked.strip():
                yield text_message("user", asked, f"{response}/prompt", at)
            parts = [*self._reasoning(response), *([{"type": "text", "text": answer}] if answer else [])]
            yield from part_events("assistant", [*parts, *self._calls(response)], f"{response}/answer", at)

    def _reasoning(self, response: str) -> Iterator[dict[str, Any]]:
        if "reasoning" in self._tables["responses"]:
            query = "SELECT reasoning FROM responses WHERE id = ? AND reasoning <> ''"
            yield from (
                {"type": "thinking", "thinking": text} for (text,) in rows(self._connection, query, (response,))
            )

    def _fragments(self, response: str) -> list[str]:
        if "prompt_fragments" not in self._tables:
            return []
        return [str(text) for (text,) in rows(self._connection, _FRAGMENTS, (response,))]

    def _calls(self, response: str) -> Iterator[dict[str, Any]]:
        if "tool_calls" in self._tables:
            query = "SELECT id, tool_call_id, name, arguments FROM tool_calls WHERE response_id = ? ORDER BY id"
            for number, call_id, tool, arguments in rows(self._connection, query, (response,)):
                yield from call_parts((str(call_id or number), str(tool), arguments), None)

    def _results(self, response: str, at: Any) -> Iterator[ReadEvent]:
        if "tool_results" in self._tables:
            query = "SELECT id, tool_call_id, name, output FROM tool_results WHERE response_id = ? ORDER BY id"
            for number, call_id, tool, output in rows(self._connection, query, (response,)):
                call = (str(call_id or number), str(tool or ""))
                yield tool_result_message(call, str(output or ""), f"{response}/result{number}", at)

    def _turns(self, older: frozenset[str]) -> Iterator[ReadEvent]:
        """Yield what each turn added to its thread; `older` conversations began with an earlier version."""
        thread, seen = None, set[str]()
        for host_id, title, model, parent, tip, at in rows(self._connection, _TURNS):
            if host_id != thread:
                thread, seen = host_id, set()
            yield self._conversation(str(host_id), title, model)
            for name, role in self._new_messages(parent, tip, seen, host_id in older):
                seen.add(name)
                parts = [self._part(*row) for row in self._parts(name)]
                # The result of a tool is a part, which says itself whose it is.
                yield from part_events("user" if role == "tool" else str(role), parts, f"{host_id}:{name}", at)

    def _new_messages(self, parent: str, tip: str, seen: set[str], own_only: bool) -> list[tuple[str, str]]:
        """Return the messages that end in `tip`, back to one that was seen.

        With `own_only` they start with what the model was asked in this turn, which ends in `parent`.
        """
        found: list[tuple[str, str]] = []
        name: str | None = tip
        before_parent = False
        while name is not None and name not in seen and len(found) < 1_000_000:
            query = "SELECT parent_hash, role FROM messages WHERE hash = ?"
            row = self._connection.execute(query, (name,)).fetchone()
            if row is None or (own_only and before_parent and row[1] not in ("user", "tool")):
                break
            before_parent = before_parent or name == parent
            found.append((name, row[1]))
            name = row[0]
        return found[::-1]

    def _parts(self, message: str) -> Iterator[tuple[Any, ...]]:
        query = "SELECT type, tool_name, text, payload FROM parts WHERE message_hash = ? ORDER BY position"
        return rows(self._connection, query, (message,))

    def _part(self, kind: str, tool: str | None, text: str | None, payload: str | None) -> dict[str, Any]:
        value = parse_object(payload or "{}") or {}
        call_id, tool = str(value.get("tool_call_id") or ""), tool or ""
        if kind == "tool_call":
            return call_parts((call_id, tool, value.get("arguments")), None)[0]
        if kind == "tool_result":
            return {"type": "tool_result", "tool_use_id": call_id, "name": tool, "content": value.get("output")}
        if text is None and isinstance(value.get("text_ref"), list):
            text = "".join(self._referenced(piece) for piece in value["text_ref"] if isinstance(piece, dict))
        return {"type": kind, "text": text or value.get("text") or ""}

    def _referenced(self, piece: dict[str, Any]) -> str:
        if "literal" in piece:
            return str(piece["literal"])
        query = "SELECT content FROM fragments WHERE id = ?"
        row = self._connection.execute(query, (piece.get("fragment"),)).fetchone()
        return str(row[0]) if row else ""
