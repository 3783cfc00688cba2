"""Searches the user's own history for a topic of a recent conversation, to show that search works."""

import re
from collections.abc import Iterator
from typing import Any

from memoranda.cli.search import add_first_words, add_resume_commands
from memoranda.home.session_db import SessionDB
from memoranda.search.settings import RecallSettings
from memoranda.search.tool import SessionSearchTool

_MAX_TOPICS = 8
_MAX_WORDS = 8
_MAX_HITS = 3
# Programs put tags, file paths and commands into first messages; none of them is a topic.
_NOT_A_TOPIC = re.compile(r"<[^>]*>|^\s*/\S+|https?://\S+|\[redacted:[^\]]*\]")
_WORD = re.compile(r"[^\W\d_][\w'-]*")
_OPERATORS = frozenset({"AND", "OR", "NOT", "NEAR"})
_MIN_WORDS = 2
_MIN_UNSPACED_CHARS = 4


def search_own_history(db: SessionDB, settings: RecallSettings) -> dict[str, Any] | None:
    """Returns the answer to a search for a recent topic, with the words in `query`; None without a usable topic.

    It prefers a topic of several conversations: a search that finds only its own conversation shows little.
    """
    tool = SessionSearchTool(lambda: db, settings)
    best: dict[str, Any] | None = None
    for topic in _recent_topics(db):
        answer = tool.call({"query": topic, "limit": _MAX_HITS})
        if not answer["success"] or not answer.get("results"):
            continue
        answer["query"] = topic
        if best is None or answer["sessions_matched"] > 1:
            best = answer
        if answer["sessions_matched"] > 1:
            break
    if best is not None:
        add_resume_commands(best, db)
        add_first_words(best, db)
    return best


def _recent_topics(db: SessionDB) -> Iterator[str]:
    rows = db.list_sessions_rich(limit=_MAX_TOPICS, order_by_last_active=True)
    topics = (find_topic(row["title"] or row["preview"] or "") for row in rows)
    return (topic for topic in topics if topic)


def find_topic(text: str) -> str:
    """Returns the first few words of a title or a message, without markup; "" when there are too few."""
    words = _WORD.findall(_NOT_A_TOPIC.sub(" ", text))[:_MAX_WORDS]
    # AND, OR and NOT would be operators of the query.
    topic = " ".join(word.lower() if word in _OPERATORS else word for word in words)
    # Chinese and Japanese do not separate words, so one run of characters is already a topic.
    is_unspaced = any(len(word) >= _MIN_UNSPACED_CHARS and not word.isascii() for word in words)
    return topic if len(words) >= _MIN_WORDS or is_unspaced else ""
