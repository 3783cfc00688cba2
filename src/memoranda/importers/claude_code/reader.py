"""Reads the transcripts of Claude Code, one file per session or sub-agent, as versions 1.0 to 2.1 write them.

The name of a file is the session's id, by which `claude --resume` takes it up again. Sub-agents have files of their
own (`agent-<id>.jsonl`, beside the session's or below it) or, in older versions, lines among the others that are marked
as a side chain; either way they become sessions of their own, delegated by the one they worked for.
"""

import json
import shlex
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.claude_code.messages import Entry, given_by, title_of
from memoranda.importers.reader_protocol import Checkpoint, ImportedConversation, ImportItem, ReadEvent, Skipped
from memoranda.importers.resume_command import in_directory
from memoranda.importers.source_files import Line, find_files, item_at, read_json_lines, read_line_events

_SIDE = "-agent-"
_UNKNOWN_AGENT = "sidechain"
_MOST_AWAITED = 200
# A summary names the message that it reaches to; it belongs here when that message was read lately.
_REMEMBERED = 500
_MADE_UP = "<synthetic>"
_FACTS = {"directory": "cwd", "version": "version", "git_branch": "gitBranch", "parent": "sessionId"}
_LONGEST_FACT = 4096


class ClaudeCode:
    """The reader of Claude Code's transcripts."""

    name = "claude-code"

    def scan(self, where: Path | None) -> Sequence[ImportItem]:
        """The transcripts below its directory; sessions first, the oldest first, so that parents precede branches."""
        if where is None:
            places = [Path.home() / ".claude" / "projects", Path.home() / ".config" / "claude" / "projects"]
        elif single := item_at(where, _what(where)):
            return [single]
        else:
            places = [where / "projects" if (where / "projects").is_dir() else where]
        found = [item for place in places for item in find_files(place, _is_transcript, "session")]
        named = [ImportItem(item.file, item.size, item.modified_at, _what(item.file)) for item in found]
        return sorted(named, key=lambda item: (item.label != "session", item.modified_at, str(item.file)))

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """The messages of a transcript as they were written."""
        transcript = _Transcript(item)
        return read_line_events(read_json_lines(item), transcript.given, transcript.state)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """A session can be taken up in the directory where it took place; a sub-agent's, by its session."""
        session = host_id.split(_SIDE, maxsplit=1)[0]
        command = f"claude --resume {shlex.quote(session)}"
        return in_directory(command, directory)


def _is_transcript(file: Path) -> bool:
    return file.suffix == ".jsonl" and file.name != "history.jsonl"


def _what(file: Path) -> str:
    return "sub-agent" if file.name.startswith("agent-") else "session"


@dataclass(slots=True)
class _Known:
    """What the lines so far have said of the session; it goes on from a mark with the same knowledge."""

    facts: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)
    rank: int = 0

    @classmethod
    def at(cls, mark: Checkpoint | None) -> "_Known":
        kept = json.loads(mark.state) if mark and mark.state else {}
        return cls(kept.get("facts", {}), kept.get("calls", {}), kept.get("rank", 0))

    def state(self) -> str:
        while len(self.calls) > _MOST_AWAITED:
            del self.calls[next(iter(self.calls))]
        return json.dumps({"facts": self.facts, "calls": self.calls, "rank": self.rank})


class _Transcript:
    """One file, line by line."""

    def __init__(self, item: ImportItem) -> None:
        self._file = item.file
        self._is_agent = _what(item.file) == "sub-agent"
        self._known = _Known.at(item.checkpoint)
        self._recent: deque[Any] = deque(maxlen=_REMEMBERED)
        self._said: tuple[Any, ...] = ()

    def state(self) -> str:
        return self._known.state()

    def given(self, line: Line) -> Iterator[ReadEvent]:
        entry = line.value
        self._recent.append(entry.get("uuid"))
        named = self._learn(entry)
        for each in given_by(line, self._known.calls):
            if not isinstance(each, Skipped) or named:
                # Said when there is something to say: before a message, and when the title is another one.
                yield from self._conversation(entry)
            yield each

    def _learn(self, entry: Entry) -> bool:
        """Take over what a line says of the session; whether that is a new title."""
        facts = self._known.facts
        message = entry.get("message")
        model = message.get("model") if isinstance(message, dict) else None
        values = {name: entry.get(field) for name, field in _FACTS.items()}
        values["model"] = model if model != _MADE_UP else None
        for name, value in values.items():
            if name not in facts and isinstance(value, str) and 0 < len(value) <= _LONGEST_FACT:
                facts[name] = value
        if "started_at" not in facts and (at := parse_timestamp(entry.get("timestamp"))) is not None:
            facts["started_at"] = at
        found = title_of(entry)
        if found is None or found[1] < self._known.rank or self._is_agent:
            return False
        if found[1] == 1 and entry.get("leafUuid") not in self._recent:
            # Written here, but about another session.
            return False
        facts["title"], self._known.rank = found
        return True

    def _conversation(self, entry: Entry) -> Iterator[ImportedConversation]:
        """The conversation that a line belongs to, unless that was said already."""
        facts = self._known.facts
        side = entry.get("isSidechain") is True and not self._is_agent
        agent = entry.get("agentId") if side else None
        said = (side, agent, *map(facts.get, ("title", "model", "directory")))
        if said == self._said:
            return
        self._said = said
        host_id, parent = self._file.stem, None
        if self._is_agent:
            parent = str(facts.get("parent") or self._file.parent.parent.name)
            host_id = f"{parent}{_SIDE}{self._file.stem.removeprefix('agent-')}"
        elif side:
            parent, host_id = host_id, f"{host_id}{_SIDE}{agent if isinstance(agent, str) else _UNKNOWN_AGENT}"
        yield ImportedConversation(
            host_id,
            None if parent else facts.get("title"),
            facts.get("model"),
            facts.get("directory"),
            parse_timestamp(entry.get("timestamp")) if side else facts.get("started_at"),
            parent,
            "delegation" if parent else None,
            ClaudeCode.name,
            {f"claude_code_{name}": facts[name] for name in ("version", "git_branch") if name in facts},
        )
