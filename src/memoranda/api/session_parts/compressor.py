"""Compresses a session: the session ends, and its conversation continues in a new one with a summary.

The order matters: the external memory may add to the summary, it is notified of the turns of the old session, one
transaction ends the old session and starts its continuation, and the external memory is notified of the new id. Two
processes never both compress: one holds the lease, and the other continues in the session that the first one created.
"""

import secrets
import threading
from typing import TYPE_CHECKING, Any

from memoranda.agent.compression.compressor import Compressor, NotCompressed
from memoranda.agent.compression.settings import CompressionSettings
from memoranda.agent.compression.trigger import CompressionProgress, TokenReading, context_tokens
from memoranda.agent.session_views import CompressibleSession, Compression
from memoranda.memory.record.rotation import LiveMessage, NoLease, NotRotated
from memoranda.models.model import ChatModel
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.processes import has_ended, process_identity

if TYPE_CHECKING:
    from memoranda.home.session_db import SessionDB


@dataclass(slots=True)
class ContextUsage:
    """How full a context is, by the last count of the model's provider."""

    window: int
    reserved: int = 0
    reading: TokenReading | None = None


class SessionCompressor:
    """Compresses one conversation, whichever session it is in now: Memoranda's own `ContextEngine`."""

    def __init__(self, settings: CompressionSettings, usage: ContextUsage) -> None:
        self.usage = usage
        self._settings = settings

    def on_session_start(self, session_id: str, **facts: Any) -> None:
        """Forget the last token count: it was of the context of another session."""
        self.usage.reading = None

    def is_due(self, session: CompressibleSession, db: "SessionDB") -> bool:
        """Whether the context is full, and compressing it may help."""
        used, limit = self._count_tokens(session, db.live_context(session.id)), self._limit()
        return self._settings.enabled and self._progress(session, db).is_due(used, limit, self.usage.window)

    def note(self, session: CompressibleSession, db: "SessionDB", reading: TokenReading) -> None:
        """Store the model's own token count, and whether it shows that the last compression was useless."""
        self.usage.reading = reading
        before = self._progress(session, db)
        after = before.after_reading(reading.tokens, self._limit(), self.usage.window)
        if after != before and (before != CompressionProgress() or after.useless):
            db.note_compression(session.id, after.to_json())

    def compress(
        self,
        session: CompressibleSession,
        db: "SessionDB",
        model: ChatModel | None,
        new_id: str,
        *,
        focus: str,
        force: bool,
    ) -> Compression:
        """Compress the context now, or say why not."""
        holder = f"{process_identity()}:{threading.get_ident()}:{secrets.token_hex(4)}"
        lease = db.take_compression_lease(session.id, holder, is_gone=_is_gone)
        if isinstance(lease, NoLease):
            return _follow_other_process(session, lease.successor)
        try:
            old, window, progress = session.id, self.usage.window, self._progress(session, db)
            context = db.live_context(old)
            result = Compressor(self._settings).compress(
                context,
                model=model,
                window=window,
                session_id=old,
                focus=focus,
                force=force,
                provider_notes=session.before_compression(),
            )
            if isinstance(result, NotCompressed):
                db.note_compression(old, progress.after_failure(self._count_tokens(session, context), window).to_json())
                return Compression(False, result.reason)
            session.flush_provider()
            columns = session.new_prompt_columns()
            rotated = db.rotate_session(old, new_id, result.context, last_seen=result.last_seen, **columns)
            if isinstance(rotated, NotRotated):
                return _follow_other_process(session, rotated.successor)
            session.continue_as(rotated.session_id)
            tokens_left = self._count_tokens(session, db.live_context(session.id))
            db.note_compression(session.id, progress.after_compression(window, tokens_left).to_json())
            return Compression(True, result.why, result.how, result.tokens_before, result.tokens_after)
        finally:
            db.release_compression_lease(lease)

    def _count_tokens(self, session: CompressibleSession, context: list[LiveMessage]) -> int:
        numbered = [(message.id, message.message) for message in context]
        return context_tokens(numbered, self.usage.reading, system=session.prompt, tools=session.tools)

    def _limit(self) -> int:
        return self._settings.limit(self.usage.window, self.usage.reserved)

    def _progress(self, session: CompressibleSession, db: "SessionDB") -> CompressionProgress:
        return CompressionProgress.from_json(db.compression_notes(session.id))


def _follow_other_process(session: CompressibleSession, successor: str | None) -> Compression:
    """Another process has compressed the conversation, or is about to."""
    if successor is None:
        return Compression(False, "Another process is compressing this conversation, or it has changed meanwhile.")
    session.continue_as(successor)
    return Compression(True, "Another process has compressed this conversation.")


def _is_gone(holder: str) -> bool:
    """Whether the process that holds a lease is known to have ended."""
    return has_ended(holder.partition(":")[0])
