"""Finds earlier conversations that are relevant to a prompt, for the hook that a host runs on every prompt.

A hook reads through a `PromptStore`. A `SessionDB` would also load the writing parts and start the thread that checks a
suspect index. A process that ends after one search gains nothing from either: the process that records the session
keeps the index complete.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from memoranda.integrations.hooks.events import HERMES, PLUGIN_HOSTS, SEARCH_TOOL
from memoranda.memory.record.conversations import Conversations
from memoranda.memory.record.feed import Feed, FeedSession
from memoranda.memory.record.record import open_record
from memoranda.memory.record.scope import Scope
from memoranda.search.index.generations import generations
from memoranda.search.index.postings import Filters
from memoranda.search.index.search_index import SearchIndex
from memoranda.search.legs.leg import MakeRescorers
from memoranda.search.recall_log import GIVEN, NOTHING, logged_id, mask_words
from memoranda.search.relevance import (
    MIN_WORDS,
    PromptRelevance,
    Relevance,
    RelevanceStore,
    clears_floor,
    judge_prompt,
    remove_operators,
)
from memoranda.search.search import Hit, Search
from memoranda.support.home import index_path, is_server_url, items_index_path, server_index_path, user_indexes_path
from memoranda.support.tool import JsonObject

if TYPE_CHECKING:
    from memoranda.safety.fence import Quote
    from memoranda.search.item_evidence import ItemEvidence

_MAX_CONVERSATIONS = 2
_MAX_ITEMS = 2
# More than are shown, because the session itself and its sub-agents may be among the hits.
_MAX_HITS = 6
_MAX_CHARS = 3_000
_MAX_CONVERSATION_CHARS = 1_600
_MAX_MESSAGE_CHARS = 700
_SOURCE = "earlier conversations"
_GAP = "…"
_HOW_TO_READ_MORE = "More of a conversation: {tool} with its session_id and around_message_id."


class PromptStore:
    """One user's conversations, and search over them."""

    def __init__(
        self,
        location: Path | str,
        scope: Scope,
        rescorers: Sequence[MakeRescorers] = (),
        *,
        index_directory: Path | None = None,
    ) -> None:
        """`location` is the path of the record, or the URL of its server; then the index is in `index_directory`.

        Where the node has indexes of single users only, it is that of the scope's user.
        """
        self.scope = scope
        self._engine = open_record(location)
        if is_server_url(location):
            assert index_directory is not None, "a server has no directory for the index"
            index = server_index_path(index_directory, location)
        else:
            index = index_path(Path(location))
        self._index_path = index
        self._feed = Feed(self._engine, Scope.everyone(), None)
        self.conversations = Conversations(self._engine, scope, None)
        self.index = self._user_index(index) or SearchIndex(index, self._feed)
        self.find = Search(self.index, rescorers=rescorers).find

    def _user_index(self, index: Path) -> SearchIndex | None:
        directory = user_indexes_path(index)
        if self.scope.all or not directory.is_dir() or generations(index):
            return None
        # Only nodes of large servers have them.
        from memoranda.search.index.user_indexes import UserIndexes  # noqa: PLC0415

        return UserIndexes(directory, self._engine).open(self.scope.user)

    def session(self, session_id: str) -> FeedSession | None:
        """Returns the session of a hit; the search has already limited hits to the scope."""
        return self._feed.feed_sessions([session_id]).get(session_id)

    def find_items(self, prompt: str) -> "list[ItemEvidence]":
        """Returns the notes and items that have words of a prompt, the best first."""
        # Most records have no items, and need not open another index.
        if not self._feed.has_items():
            return []
        from memoranda.memory.record.feed import ItemFeed  # noqa: PLC0415
        from memoranda.memory.record.items import Items  # noqa: PLC0415
        from memoranda.search.item_evidence import find_items  # noqa: PLC0415
        from memoranda.search.item_search import ItemSearch  # noqa: PLC0415

        items = Items(self._engine, self.scope, None)
        index = SearchIndex(items_index_path(self._index_path), ItemFeed(self._engine, Scope.everyone(), None))
        try:
            return find_items(ItemSearch(index, items, self.scope).search, prompt)
        finally:
            index.close()

    def close(self) -> None:
        self.index.close()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PromptEvidence(NamedTuple):
    """The fenced block for a prompt ("" for none), the reason in words, and the details of the decision."""

    text: str
    reason: str
    details: dict[str, Any]
    failure: str = ""
    """The outcome of a search that gave no answer; empty for all others."""

    @property
    def outcome(self) -> str:
        return self.failure or (GIVEN if self.text else NOTHING)


class EvidenceStore(RelevanceStore, Protocol):
    """The part of a store that is read for a prompt."""

    def session(self, session_id: str) -> FeedSession | None:
        """The session of a hit."""

    def find_items(self, prompt: str) -> "list[ItemEvidence]":
        """The notes and items that have words of a prompt, the best first."""


def find_evidence(
    location: Path | str,
    user: str | None,
    prompt: str,
    host: str,
    session_id: str,
    hidden_sources: frozenset[str],
    rescorers: Sequence[MakeRescorers] = (),
    *,
    index_directory: Path | None = None,
) -> PromptEvidence:
    """Returns the relevant messages in one fenced block; for most prompts nothing is relevant enough.

    The host's own session `session_id` is omitted, because its model already has it in context.
    """
    with PromptStore(location, Scope.of(user), rescorers, index_directory=index_directory) as store:
        filters = Filters(store.scope, excluded_sources=hidden_sources, titles=False)
        return find_evidence_in(store, prompt, filters, host, lambda hit: is_own_session(hit, host, session_id))


def find_evidence_in(
    store: EvidenceStore, prompt: str, filters: Filters, host: str, is_own: Callable[[Hit], bool]
) -> PromptEvidence:
    """Returns the same from a store that is open; `is_own` says which hits the model already has in context."""
    judged = judge_prompt(store, prompt, filters, limit=_MAX_HITS, is_own=is_own)
    hits = judged.hits
    others = [hit for hit in hits if not is_own(hit)]
    details = _describe(judged)
    chosen = others[:_MAX_CONVERSATIONS]
    excerpts = [(hit, quotes) for hit in chosen if (quotes := _quote_conversation(store, hit, prompt))]
    items = _relevant_items(store, judged, prompt)
    if not excerpts and not items:
        return PromptEvidence("", _reason_for_nothing(judged, hits), details)
    block = _build_block(items, [quotes for _, quotes in excerpts], host)
    shown = [{"session_id": hit.session_id, "message_id": hit.message_id} for hit, _ in excerpts]
    kinds = [item.kind for item in items]
    counts = ((len(shown), "conversation"), *((kinds.count(kind), kind) for kind in ("note", "item")))
    found = " and ".join(f"{count} {name}{'s' if count > 1 else ''}" for count, name in counts if count)
    return PromptEvidence(block, f"{found} cleared the floor", details | {"given": shown})


def _relevant_items(store: EvidenceStore, judged: PromptRelevance, prompt: str) -> "list[ItemEvidence]":
    """The notes and items that clear the floor of conversations, without notes that an entry replaced."""
    found = [item for item in store.find_items(remove_operators(prompt)) if not item.replaced]
    following = [item.score for item in found[1:]] + [0.0]
    return [
        item
        for item, after in zip(found, following, strict=False)
        if item.score > 0 and clears_floor(store, judged, item.text, max(0.0, 1 - after / item.score))
    ][:_MAX_ITEMS]


def _build_block(items: "list[ItemEvidence]", excerpts: "list[list[Quote]]", host: str) -> str:
    from memoranda.safety.fence import Quote, build_memory_context_block, screen_quotes  # noqa: PLC0415

    tool = SEARCH_TOOL if host in PLUGIN_HOSTS else "session_search"
    quotes = [Quote(item.kind, item.shown) for item in items] + [Quote("", "")] * bool(items)
    quotes += [quoted for excerpt in excerpts for quoted in (*excerpt, Quote("", ""))]
    quotes += [Quote("", _HOW_TO_READ_MORE.format(tool=tool))] * bool(excerpts)
    # Hermes fences what a provider recalls, and removes whole fences from it first.
    build = screen_quotes if host == HERMES else build_memory_context_block
    return build(quotes, max_chars=_MAX_CHARS, source=_SOURCE)


def is_own_session(hit: Hit, host: str, session_id: str) -> bool:
    """Whether a hit is the host's session or one of its sub-agents, by the ids that imports give them."""
    return bool(session_id) and hit.session_id.startswith(f"{host}-{logged_id(session_id)}")


def _reason_for_nothing(judged: PromptRelevance, hits: list[Hit]) -> str:
    if hits:
        return "only this session itself is relevant"
    if not judged.result.hits:
        return "no conversation has its words"
    if any(relevance.hit.asked and relevance.clears for relevance in judged.measured):
        return "it was asked before, but not answered"
    return "nothing cleared the floor"


def _describe(judged: PromptRelevance) -> dict[str, Any]:
    """Describes the decision for `memoranda hook status --why`."""
    kind, result = judged.kind, judged.result
    details: dict[str, Any] = {
        "floor": {
            "asks_about_the_past": kind.about_past,
            "question": kind.question,
            "personal": kind.personal,
            "points_at_something": kind.here,
            "how_to": kind.how_to,
            "points": 0,
            "words": MIN_WORDS,
        },
        "candidates": [_describe_candidate(relevance) for relevance in judged.measured],
        "words": [mask_words(term) for term in result.terms[:20]],
        "found_nowhere": [mask_words(term) for term in result.missing[:20]],
    }
    return details | ({"note": result.note} if result.note else {})


def _describe_candidate(relevance: Relevance) -> dict[str, Any]:
    return {
        "session_id": relevance.hit.session_id,
        "message_id": relevance.hit.message_id,
        "share": round(relevance.share, 3),
        "words": relevance.words,
        "points": round(relevance.points, 2),
        "measures": {name: round(value, 2) for name, value in relevance.measures.items()},
        "clears": relevance.clears,
        "of_another": relevance.another,
    }


def _quote_conversation(store: EvidenceStore, hit: Hit, prompt: str) -> "list[Quote]":
    """Returns when and where a conversation took place, its best messages, and those around the match."""
    from memoranda.memory.record.message_rows import text_of  # noqa: PLC0415
    from memoranda.safety.fence import Quote  # noqa: PLC0415
    from memoranda.search.evidence import Evidence  # noqa: PLC0415
    from memoranda.search.excerpts import best_match  # noqa: PLC0415
    from memoranda.search.query import parse  # noqa: PLC0415
    from memoranda.search.request import show_time  # noqa: PLC0415

    session = store.session(hit.session_id)
    evidence, query = Evidence(store.conversations), parse(prompt)
    chosen = hit.message_id and evidence.choose(hit.message_id, hit.messages, query, fixed=bool(hit.asked))
    if session is None or not chosen:
        return []
    message = chosen.anchor.message
    offset = best_match(text_of(message.content), query)
    shown = evidence.show(chosen, offset, query, _MAX_CONVERSATION_CHARS, bookends=False)
    location = f"session_id {hit.session_id}, around_message_id {message.id}"
    head = [Quote("", f"Conversation in {session.source} at {show_time(message.timestamp)} ({location}):")]
    return [*head, Quote("title", session.title or ""), *_quote_messages(shown)]


def _quote_messages(shown: JsonObject) -> "list[Quote]":
    """Returns the messages in their order; "…" stands between the window and other matches."""
    from memoranda.safety.fence import Quote, speaker_of  # noqa: PLC0415

    window, others = shown["messages"], shown.get("other_matches", [])
    first = window[0]["id"] if window else 0
    earlier = [entry for entry in others if entry["id"] < first]
    later = [entry for entry in others if entry["id"] > first]
    groups = [
        [
            Quote(speaker_of(entry["role"], entry.get("tool_name")), entry["content"][:_MAX_MESSAGE_CHARS])
            for entry in entries
            if entry["content"]
        ]
        for entries in (earlier, window, later)
    ]
    return [quoted for group in groups if group for quoted in (Quote("", _GAP), *group)][1:]
