"""`Memory.recall`: answers a question from every part of memory at once, also as a block for a prompt."""

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from memoranda.api.services import HomeServices
from memoranda.api.session import Session
from memoranda.errors import SessionError, StorageError
from memoranda.home.config import Config
from memoranda.memory.curated.facts import show_days
from memoranda.memory.curated.memory_file import handle
from memoranda.memory.curated.settings import ITEMS, NOTES, Target, file_name, is_project
from memoranda.memory.curated.store import MemoryStore
from memoranda.safety.fence import Quote, build_memory_context_block, fenced_text, speaker_of
from memoranda.search.continue_prompts import asks_what_was_done
from memoranda.search.excerpts import entries_matching
from memoranda.search.recall_log import GIVEN, NOTHING, QUESTION, PromptPlace
from memoranda.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from memoranda.home.session_db import SessionDB
    from memoranda.types import RecentAnswer, SearchAnswer

_log = logging.getLogger(__name__)

MAX_BLOCK_CHARS = 8_000
_LAST_CONVERSATIONS = 3
# The length of the fence itself, with the final newline.
_FENCE_CHARS = len(build_memory_context_block("x"))


class RecallableMemory(Protocol):
    """What recall needs of a `Memory`."""

    @property
    def config(self) -> Config: ...
    @property
    def services(self) -> HomeServices: ...
    @property
    def user(self) -> str | None: ...
    @property
    def curated(self) -> MemoryStore: ...
    @property
    def sessions(self) -> "SessionDB": ...
    def search(self, query: str = ..., *, limit: int | None = ..., project: str | None = ...) -> "SearchAnswer": ...
    def session(self, *, source: str = ...) -> Session: ...


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The answers of all parts of memory to one question."""

    entries: dict[Target, list[str]]
    recalled: str
    """The text that the external memory recalled."""
    search: dict[str, Any]
    """The answer of the search over past conversations."""
    skipped: tuple[str, ...] = ()
    """Which parts could not be read, and why."""
    recent: "RecentAnswer | None" = None
    """The last conversations, for a question about what was done."""

    @property
    def is_known(self) -> bool:
        return bool(any(self.entries.values()) or self.recalled or self.search["results"] or self.recent)

    def block(self, max_chars: int = MAX_BLOCK_CHARS) -> str:
        """What a prompt gets: what was done last, and a block with entries and conversations; "" for nothing."""
        latest = self.recent["text"] if self.recent and len(self.recent["text"]) <= max_chars else ""
        quotes = [Quote(file_name(target), entry) for target, entries in self.entries.items() for entry in entries]
        quotes += [Quote("external memory", self.recalled)] if self.recalled else []
        for hit in self.search["results"]:
            quotes += [Quote("", ""), Quote("", f"Conversation at {hit['when']} (session_id {hit['session_id']}):")]
            quotes += [Quote("title", hit["title"])] if hit["title"] else []
            messages = hit.get("messages") or [{"role": hit["matched_role"], "content": hit["snippet"]}]
            quotes += [Quote(speaker_of(each["role"], each.get("tool_name")), each["content"]) for each in messages]
        return latest + build_memory_context_block(quotes, max_chars=max_chars - len(latest) - _FENCE_CHARS)


def recall(
    memory: RecallableMemory,
    question: str,
    *,
    limit: int = 3,
    project: str | None = None,
    source: str = "library",
    session_id: str = "",
) -> RecallResult:
    """Ask the curated entries, the external memory if there is one, and every past conversation, and log the answer.

    `source` and `session_id` say in the log who asked, and for which conversation.
    """
    began = time.time()
    entries, skipped = related_entries(memory, question)
    recalled = ask_provider(memory, question)
    if memory.services.has_record:
        search: dict[str, Any] = _leave_out_unsure(memory.search(question, limit=limit, project=project))
    else:
        search = {"success": True, "mode": "discover", "results": [], "count": 0}
    result = RecallResult(entries, recalled, search, skipped, last_work(memory, question, project))
    log_recall(memory, question, result, began, source=source, session_id=session_id)
    return result


def last_work(memory: RecallableMemory, question: str, project: str | None) -> "RecentAnswer | None":
    """The last conversations of the time that a question names, if it asks what was done and there are any."""
    if not asks_what_was_done(question):
        return None
    from memoranda.api.recent import recent

    try:
        found = recent(memory.services, memory.user, project, _LAST_CONVERSATIONS, question)
    except SessionError:
        # It is about the project of this directory, and there is none: the search says so.
        return None
    return found if found["conversations"] else None


def _leave_out_unsure(answer: "SearchAnswer") -> dict[str, Any]:
    """The answer of a search without the results that probably do not answer: a prompt is better off without them."""
    results = [result for result in answer["results"] if result["confidence"] != "unsure"]
    return {**answer, "results": results, "count": len(results)}


def log_recall(
    memory: RecallableMemory,
    question: str,
    result: RecallResult,
    began: float,
    *,
    source: str,
    session_id: str = "",
) -> None:
    """Log what a question received from all parts of memory."""
    services = memory.services
    hits = result.search["results"]
    entries = [f"{file_name(target)}: {entry}" for target, texts in result.entries.items() for entry in texts]
    counts = ((len(entries), "entry", "entries"), (len(hits), "conversation", "conversations"))
    parts = [f"{count} {one if count == 1 else many}" for count, one, many in counts if count]
    parts += ["external memory"] if result.recalled else []
    parts += ["the last conversations"] if result.recent else []
    services.recall_log(memory.user).add(
        PromptPlace(QUESTION, services.stored_name(source), services.stored_name(session_id) if session_id else ""),
        question,
        GIVEN if result.is_known else NOTHING,
        ", ".join(parts) or "no part of memory knows about it",
        began=began,
        text="\n".join([*entries, *([result.recalled] if result.recalled else [])]),
        details={
            "given": [{"session_id": hit["session_id"], "message_id": hit.get("match_message_id")} for hit in hits]
        },
    )


def related_entries(memory: RecallableMemory, question: str) -> tuple[dict[Target, list[str]], tuple[str, ...]]:
    """The curated entries, notes and items that share words with a question, and which files could not be read."""
    entries: dict[Target, list[str]] = {}
    by_handle: dict[str, tuple[Target, str]] = {}
    skipped: list[str] = []
    for target in memory.curated.targets():
        try:
            valid = memory.curated.valid_entries(target)
            by_handle |= {handle(text): (target, text) for text in valid}
            found = show_days(entries_matching(question, valid), partial(memory.curated.facts, target))
            if found or not is_project(target):
                entries[target] = found
        except StorageError as error:
            entries[target] = []
            skipped.append(f"{file_name(target)} was skipped: {error}")
            _log.warning("%s", skipped[-1])
    if memory.services.has_record:
        from memoranda.search.item_evidence import find_items

        for item in find_items(memory.sessions.search_items, question):
            owner = item.note.owner if item.note else ""
            if not item.answers(question) or (is_project(owner) and owner not in memory.curated.targets()):
                continue
            target, text = NOTES if item.kind == "note" else ITEMS, item.shown
            if item.replaced:
                # What came in its place answers instead, if it is still there.
                target, text = by_handle.get(item.replaced, (target, ""))
            if text and text not in entries.get(target, ()):
                entries.setdefault(target, []).append(text)
    return entries, tuple(skipped)


def ask_provider(memory: RecallableMemory, question: str) -> str:
    """The text that the provider recalls, without the fence. The provider is not notified of a session."""
    if not memory.config.providers:
        return ""
    session = memory.session(source="recall")
    block = session.external.begin_turn(question, session.id, lambda: 1)
    session.external.close()
    return fenced_text(block)
