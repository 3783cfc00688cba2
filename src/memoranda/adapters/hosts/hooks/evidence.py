"""On a prompt: what was said earlier that bears on it, fenced; for most prompts nothing is."""

from memoranda.adapters.hosts.hooks import guidance
from memoranda.adapters.hosts.hooks.payload import Payload
from memoranda.app import Memory
from memoranda.db.orphaned_wal import database_exists
from memoranda.index.postings import Filters
from memoranda.recall.evidence import Evidence
from memoranda.recall.query import parse
from memoranda.recall.relevance import relevant_hits
from memoranda.recall.search import Hit
from memoranda.recall.session_db import SessionDB
from memoranda.recall.snippets import excerpt
from memoranda.recall.times import show_time
from memoranda.safety.fence import build_memory_context_block
from memoranda.sessions.message_rows import text_of

_MOST_CONVERSATIONS = 2
# The session itself may be among what is found, with its sub-agents.
_LOOKED_AT = 6
_MOST_CHARS = 3_000
_PER_CONVERSATION = 1_600
_LONGEST_MESSAGE = 700
_LEAST_PROMPT = 8


def evidence(memory: Memory, payload: Payload, host: str) -> str:
    """The fenced block for a prompt, or ""."""
    prompt = payload.prompt.strip()
    if len(prompt) < _LEAST_PROMPT or prompt.startswith(("/", "!", "#")) or not database_exists(memory.home.state_db):
        return ""
    db = memory.sessions
    filters = Filters(db.scope, excluded_sources=frozenset(memory.config.recall.hidden_sources), titles=False)
    hits = relevant_hits(db, prompt, filters, limit=_LOOKED_AT)
    others = [hit for hit in hits if not _is_of(hit, host, payload.session_id)]
    told = [text for hit in others[:_MOST_CONVERSATIONS] if (text := _told(db, hit, prompt))]
    if not told:
        return ""
    text = "\n\n".join([*told, guidance.GO_ON])
    return build_memory_context_block(text, most=_MOST_CHARS, source=guidance.EVIDENCE)


def _is_of(hit: Hit, host: str, session_id: str) -> bool:
    """Whether a hit is the session itself or one of its sub-agents, by the names that imports give them."""
    return bool(session_id) and hit.session_id.startswith(f"{host}-{session_id}")


def _told(db: SessionDB, hit: Hit, prompt: str) -> str:
    """One conversation: when and where it was, and the messages around the one that matches."""
    session = db.get_session(hit.session_id)
    evidence = Evidence(db)
    matched = None if hit.message_id is None else evidence.find(hit.message_id)
    if session is None or matched is None:
        return ""
    message = matched.message
    at = excerpt(text_of(message.content), parse(prompt)).at or 0
    around = evidence.around(matched, at, _PER_CONVERSATION)
    title = session["title"] or "a conversation"
    lines = [f"{show_time(message.timestamp)}, {title} ({session['source']}; session_id {hit.session_id}, "
             f"around_message_id {message.id}):"]  # fmt: skip
    lines += [f"{each['role']}: {each['content'][:_LONGEST_MESSAGE]}" for each in around["messages"] if each["content"]]
    return "\n".join(lines)
