"""Finds earlier conversations that are relevant to a prompt, for the hook that a host runs on every prompt."""

from memoranda.app import Memory
from memoranda.db.orphaned_wal import database_exists
from memoranda.index.postings import Filters
from memoranda.recall.evidence import Evidence, excerpt, show_time
from memoranda.recall.query import parse
from memoranda.recall.relevance import relevant_hits
from memoranda.recall.search import Hit
from memoranda.safety.fence import build_memory_context_block
from memoranda.session_db import SessionDB
from memoranda.sessions.message_rows import text_of

_MAX_CONVERSATIONS = 2
# More than are shown, because the session itself and its sub-agents may be among the hits.
_MAX_HITS = 6
_MAX_CHARS = 3_000
_MAX_CONVERSATION_CHARS = 1_600
_MAX_MESSAGE_CHARS = 700
_MIN_PROMPT_CHARS = 8
_COMMAND_SIGNS = ("/", "!", "#")
_SOURCE = "earlier conversations"
_HOW_TO_READ_MORE = "More of a conversation: session_search with its session_id and around_message_id."


def find_evidence(memory: Memory, prompt: str, host: str, session_id: str) -> str:
    """Returns the relevant messages in one fenced block; "" for most prompts, to which nothing is relevant enough.

    The host's own session `session_id` is left out, because its model already has it in context.
    """
    prompt = prompt.strip()
    if len(prompt) < _MIN_PROMPT_CHARS or prompt.startswith(_COMMAND_SIGNS):
        return ""
    if not database_exists(memory.home.state_db):
        return ""
    db = memory.sessions
    filters = Filters(db.scope, excluded_sources=frozenset(memory.config.recall.hidden_sources), titles=False)
    hits = relevant_hits(db, prompt, filters, limit=_MAX_HITS)
    others = [hit for hit in hits if not is_own_session(hit, host, session_id)]
    excerpts = [text for hit in others[:_MAX_CONVERSATIONS] if (text := _format_conversation(db, hit, prompt))]
    if not excerpts:
        return ""
    text = "\n\n".join([*excerpts, _HOW_TO_READ_MORE])
    return build_memory_context_block(text, max_chars=_MAX_CHARS, source=_SOURCE)


def is_own_session(hit: Hit, host: str, session_id: str) -> bool:
    """Whether a hit is the host's session or one of its sub-agents, by the ids that imports give them."""
    return bool(session_id) and hit.session_id.startswith(f"{host}-{session_id}")


def _format_conversation(db: SessionDB, hit: Hit, prompt: str) -> str:
    """Returns when and where a conversation took place, and the messages around the match."""
    session = db.get_session(hit.session_id)
    evidence = Evidence(db.conversations)
    match = None if hit.message_id is None else evidence.find(hit.message_id)
    if session is None or match is None:
        return ""
    message = match.message
    offset = excerpt(text_of(message.content), parse(prompt)).at or 0
    window = evidence.around(match, offset, _MAX_CONVERSATION_CHARS)
    title = session["title"] or "a conversation"
    location = f"session_id {hit.session_id}, around_message_id {message.id}"
    lines = [f"{show_time(message.timestamp)}, {title} ({session['source']}; {location}):"]
    lines += [
        f"{neighbour['role']}: {neighbour['content'][:_MAX_MESSAGE_CHARS]}"
        for neighbour in window["messages"]
        if neighbour["content"]
    ]
    return "\n".join(lines)
