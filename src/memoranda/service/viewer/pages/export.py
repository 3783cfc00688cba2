"""Export: a conversation as a file, for people or for `memoranda sessions import`."""

import json
import re
from collections.abc import Iterator

from memoranda.home.session_db import SessionDB
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.page import Download, Page, PageRequest
from memoranda.upkeep.transcripts.conversation import Conversation, read_conversations
from memoranda.upkeep.transcripts.html import render_html
from memoranda.upkeep.transcripts.markdown import render_markdown

_TYPES = {"md": "text/markdown", "html": "text/html", "jsonl": "application/x-ndjson"}
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_NAME_CHARS = 60


def show(request: PageRequest) -> Download:
    """The file; raises Problem 404 for a session that does not exist, or an unknown format."""
    file_format = request.query.get("format", "jsonl")
    db = request.memory.sessions if request.has_record else None
    found = None if db is None else next(read_conversations(db, [request.path["session"]]), None)
    if db is None or found is None or file_format not in _TYPES:
        raise Problem(404, "not_found", "There is no such conversation, or no such format.")
    name = _NO_FILE_NAME.sub("-", found.title)[:_MAX_NAME_CHARS].strip("-.") or "conversation"
    return Download(f"{name}.{file_format}", f"{_TYPES[file_format]}; charset=utf-8", _parts(db, found, file_format))


def _parts(db: SessionDB, conversation: Conversation, file_format: str) -> Iterator[bytes]:
    if file_format == "jsonl":
        for member in conversation.members:
            exported = db.export_session(member)
            if exported is not None:
                yield json.dumps(exported, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        return
    render = render_html if file_format == "html" else render_markdown
    for part in render([conversation]):
        yield part.encode("utf-8", "replace")


PAGE = Page("export", "/sessions/{session}/export", show, download=True)
