"""One session in the record: its row, the user's messages in its context, and what its provider has yet to receive.

Recalled memory that a model repeats is removed from its messages before they are recorded.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memoranda.api.services import HomeServices
from memoranda.memory.record.message_rows import is_own
from memoranda.safety.fence import strip_recalled_blocks
from memoranda.support.json_texts import map_texts

if TYPE_CHECKING:
    from memoranda.home.session_db import SessionDB
    from memoranda.memory.record.rotation import LiveMessage


class SessionRecord:
    """The row of a session, and reads of its messages; `id` changes when the conversation continues."""

    def __init__(self, services: HomeServices, session_id: str, user: str | None) -> None:
        self.id = session_id
        # Whether the session has a row, and whether that row is open: neither ended nor still to be created.
        self.exists = self.is_open = False
        self._services = services
        self._user = user

    @property
    def db(self) -> "SessionDB":
        """The session store of this session's user."""
        return self._services.sessions_for(self._user)

    def load(self) -> dict[str, Any] | None:
        """Read the row; None when the session has none yet."""
        row = self.db.get_session(self.id) if self._services.has_record else None
        if row is not None:
            self.exists, self.is_open = True, row.get("ended_at") is None
        return row

    def create(self, source: str, **columns: Any) -> None:
        """Create the row, or reopen the existing one."""
        db = self.db
        db.create_session(self.id, source, **columns)
        db.reopen_session(self.id)
        self.exists = self.is_open = True

    def end(self, reason: str) -> None:
        """End the session if its row is open."""
        if self.is_open:
            self.db.end_session(self.id, reason)
            self.is_open = False

    def continuation(self) -> str | None:
        """The session that continues this one, because another process compressed the conversation; else None."""
        latest = self.db.get_compression_tip(self.id) if self.exists else None
        return latest if latest != self.id else None

    def context(self) -> "list[LiveMessage]":
        """The messages that are sent to the model."""
        return self.db.live_context(self.id) if self.exists else []

    def spoken_context(self, after: int, limit: int) -> list[dict[str, Any]]:
        """The newest messages that are sent to the model as `Rotation.spoken_context` reads them.

        `is_own` says whether they are the user's own words.
        """
        row = self.load()
        spoken = self.db.rotation.spoken_context(self.id, after, limit) if row is not None else []
        return [message | {"is_own": is_own(message, row)} for message in spoken]

    def context_size(self) -> int:
        """How many messages are sent to the model."""
        row = self.load()
        return row["message_count"] if row else 0

    def user_messages(self) -> "list[LiveMessage]":
        """The user's messages in the context; a summary has the same role but is not the user's."""
        return _user_messages(self.context())

    def count_turns(self) -> int:
        """How many questions the user has asked in the whole conversation; copies of a question count once."""
        return len(
            {
                message["copy_of"] or message["id"]
                for session_id in self.db.get_compression_lineage(self.id)
                for message in self.db.get_messages(session_id, include_inactive=True)
                if message["role"] == "user" and not message["is_summary"]
            }
        )

    def last_undoable(self) -> "LiveMessage | None":
        """The user message that begins the last turn after the latest summary: undoing more would undo the summary."""
        context = self.context()
        summaries = [index for index, message in enumerate(context) if message.is_summary]
        questions = _user_messages(context[summaries[-1] + 1 :] if summaries else context)
        return questions[-1] if questions else None

    def completed_turns(self) -> list[dict[str, Any]]:
        """The messages of completed turns that this session itself recorded, for the provider.

        Copies and summaries are left out: the provider received the originals with an earlier session.
        """
        if not self.is_open:
            return []
        from memoranda.external.outbox.recorded_turns import completed_messages

        messages = self.db.get_messages(self.id)
        return completed_messages(
            [message for message in messages if message["copy_of"] is None and not message["is_summary"]]
        )


def _user_messages(context: "Sequence[LiveMessage]") -> "list[LiveMessage]":
    return [message for message in context if message.message["role"] == "user" and not message.is_summary]


def strip_recall(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message without recalled memory in its text, reasoning or calls; only the model's messages change."""
    if message.get("role") != "assistant":
        return message
    clean = {**message, "content": map_texts(message.get("content"), strip_recalled_blocks)}
    for name in ("reasoning", "reasoning_content"):
        if name in clean:
            clean[name] = map_texts(clean[name], strip_recalled_blocks)
    details = clean.get("reasoning_details")
    if details is not None and map_texts(details, strip_recalled_blocks) != details:
        # The vendor signed the details, and accepts all of them or none.
        del clean["reasoning_details"]
    if isinstance(clean.get("tool_calls"), list):
        clean["tool_calls"] = [_strip_call(call) for call in clean["tool_calls"]]
    return clean


def _strip_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(arguments, str):
        return call
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        clean = strip_recalled_blocks(arguments)
    else:
        stripped = map_texts(parsed, strip_recalled_blocks)
        clean = arguments if stripped == parsed else json.dumps(stripped, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": clean}}
