"""What an adapter adds to a prompt: the earlier conversations that are relevant to it, and curated memory."""

import logging
import threading
import time
from typing import TYPE_CHECKING

from memoranda.external.external_memory import guarded
from memoranda.integrations.hooks.prompt_evidence import PromptEvidence, find_evidence_in
from memoranda.integrations.memory_text import read_memory_text
from memoranda.memory.record.feed import Feed, FeedSession
from memoranda.memory.record.scope import Scope
from memoranda.search.index.postings import Filters
from memoranda.search.item_evidence import ItemEvidence, find_items
from memoranda.search.recall_log import ERROR, LATE, PROMPT, PromptPlace
from memoranda.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from memoranda.api.memory import Memory
    from memoranda.home.session_db import SessionDB
    from memoranda.memory.record.conversations import Conversations
    from memoranda.search.search import Hit, SearchResult

RECALL_SECONDS = 2.0
"""How long a turn waits for what is recalled; after that it goes without."""
_MIN_PROMPT_CHARS = 8
_log = logging.getLogger(__name__)


def memory_prompt(memory: "Memory") -> str:
    """What is remembered in MEMORY.md and USER.md, as a system prompt shows it; "" when nothing is.

    Read it once per conversation: a system prompt that changes would break the provider's prefix cache.
    """
    return read_memory_text(memory.services.curated_for(memory.user))


def recall(
    memory: "Memory",
    prompt: str,
    session_id: str = "",
    *,
    seconds: float = RECALL_SECONDS,
    meanwhile: "Callable[[], str]" = str,
) -> str:
    """The earlier conversations that are relevant to a prompt, in a fenced block; "" for most prompts.

    The conversation `session_id` is left out, because its model has it in context. A search that takes longer than
    `seconds` or fails recalls nothing: memory never blocks a reply. What `meanwhile` returns comes first; it is called
    while the search runs.
    """
    began = time.time()
    search = _begin_search(memory, prompt, session_id)
    first = meanwhile()
    found = search(began + seconds)
    services = memory.services
    if found is not None:
        services.recall_log(memory.user).add(
            PromptPlace(PROMPT, "sdk", services.stored_name(session_id) if session_id else ""),
            prompt,
            found.outcome,
            found.reason,
            began=began,
            details=found.details,
        )
    return "\n\n".join(filter(None, (first, found.text if found is not None else "")))


def _begin_search(memory: "Memory", prompt: str, session_id: str) -> "Callable[[float], PromptEvidence | None]":
    """Start a search in a thread; the function waits until a time for its result, None in a home without a record."""
    if not memory.services.has_record:
        return lambda _: None
    if len(prompt.strip()) < _MIN_PROMPT_CHARS:
        return lambda _: PromptEvidence("", f"the prompt has fewer than {_MIN_PROMPT_CHARS} characters", {})
    found: list[PromptEvidence] = []

    # The reply does without what cannot be found; the doctor finds what is wrong with a store.
    @guarded(None, "Recall for a prompt")
    def search() -> None:
        found.append(_find(memory, prompt, session_id))

    thread = threading.Thread(target=search, name="memoranda-recall", daemon=True)
    began = time.time()
    thread.start()

    def wait(end: float) -> PromptEvidence:
        thread.join(max(0.0, end - time.time()))
        if found:
            return found[0]
        if thread.is_alive():
            seconds = round(end - began, 2)
            _log.warning("Recall took longer than %g s and was left out of this turn.", seconds)
            return PromptEvidence("", f"no answer within {seconds:g} seconds", {}, LATE)
        return PromptEvidence("", "the search failed; the program's log says why", {}, ERROR)

    return wait


def _find(memory: "Memory", prompt: str, session_id: str) -> PromptEvidence:
    store = _ReadStore(memory.sessions)
    hidden = frozenset(memory.config.recall.hidden_sources)
    filters = Filters(Scope.of(memory.user), excluded_sources=hidden, titles=False)

    def is_own(hit: "Hit") -> bool:
        return bool(session_id) and (hit.session_id == session_id or hit.session_id.startswith(f"{session_id}/"))

    return find_evidence_in(store, prompt, filters, "", is_own)


@dataclass(frozen=True, slots=True)
class _ReadStore:
    """The part of an open store that the search for a prompt reads."""

    db: "SessionDB"

    @property
    def find(self) -> "Callable[..., SearchResult]":
        return self.db.find

    @property
    def conversations(self) -> "Conversations":
        return self.db.conversations

    def session(self, session_id: str) -> FeedSession | None:
        return Feed(self.db.engine, Scope.everyone(), None).feed_sessions([session_id]).get(session_id)

    def find_items(self, prompt: str) -> list[ItemEvidence]:
        return find_items(self.db.search_items, prompt)
