"""Reads the transcripts that Cursor writes for its own agents: `projects/<project>/agent-transcripts/<id>….jsonl`.

They have no times and no tool results, so they are read only for conversations that are in no database. Older versions
wrote plain text (`.txt`) with a line for the speaker.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import get_field, short_digest, text_message
from memoranda.importers.cursor.agent_messages import message_events
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadEvent, Skipped
from memoranda.importers.source_files import Line, read_bytes, read_json_lines, read_line_events

FORMAT = "transcript"
_SPEAKER = re.compile(r"^(user|assistant|A):\s*$", re.MULTILINE)
_QUERY = re.compile(r"</?user_query>")


def is_transcript(file: Path) -> bool:
    """Whether a file is a transcript: of a session, or of one of its sub-agents."""
    return file.suffix in (".jsonl", ".txt") and "agent-transcripts" in file.parts


def read_transcript(item: ImportItem) -> Iterator[ReadEvent]:
    """Yield the messages of a transcript."""
    yield _conversation(item.file)
    if item.file.suffix == ".txt":
        yield from _read_text(item)
        return
    # Messages have no ids, so each id is made from everything before it.
    chain = item.checkpoint.state if item.checkpoint and item.checkpoint.state else item.file.stem

    def line_events(line: Line) -> Iterator[ReadEvent]:
        nonlocal chain
        message = get_field(line.value, "message")
        if not isinstance(message, dict) or "content" not in message:
            yield Skipped(str(line.value.get("type") or "line without message")[:40])
            return
        chain = short_digest(chain, json.dumps(line.value, sort_keys=True))
        full_message: dict[str, Any] = {"role": line.value.get("role"), **message}
        yield from message_events(full_message, chain, line.value.get("timestamp"), line.number)

    yield from read_line_events(read_json_lines(item), line_events, lambda: chain)


def _conversation(file: Path) -> ImportedConversation:
    """Return the conversation of a file; transcripts of sub-agents are in a directory `subagents` of their session."""
    parent = file.parent.parent.name if file.parent.name == "subagents" else None
    return ImportedConversation(
        file.stem,
        parent_host_id=parent,
        relation="delegation" if parent else None,
        same_as=f"composer-{file.stem}",
        extra={"format": FORMAT},
    )


def _read_text(item: ImportItem) -> Iterator[ReadEvent]:
    raw = read_bytes(item)
    if isinstance(raw, Problem):
        yield raw
        return
    text = raw.decode("utf-8", "replace")
    pieces = _SPEAKER.split(text)
    if pieces[0].strip():
        yield Problem(item.file, 1, "text before the first speaker")
    chain, line = item.file.stem, pieces[0].count("\n") + 1
    for speaker, body in zip(pieces[1::2], pieces[2::2], strict=True):
        message = _QUERY.sub("", body).strip()
        chain = short_digest(chain, speaker, message)
        if message:
            yield text_message("user" if speaker == "user" else "assistant", message, chain, None, line)
        line += body.count("\n")
