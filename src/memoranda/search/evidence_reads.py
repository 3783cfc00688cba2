"""Reads the evidence of all hits of a search at once, where the record is on a server."""

from collections.abc import Collection, Sequence

from memoranda.memory.record.conversations import Conversations, EndsShape, ReadAhead, WindowShape
from memoranda.search.evidence import BOOKEND, CONVERSATION_ROLES, WINDOW, weigh_messages
from memoranda.search.query import Query
from memoranda.search.relevance import MEASURED_WINDOW
from memoranda.search.search import Hit


def read_evidence(
    store: Conversations, hits: Sequence[Hit], query: Query, in_context: Collection[int], *, by_time: bool
) -> Conversations:
    """The conversations to take the evidence of these hits from, inside `one_view`.

    In a file that is the store itself. `by_time`: no other message of a session replaces the best match.
    """
    if not store.batches_reads:
        return store
    ahead, without = ReadAhead(store), frozenset(in_context)
    ahead.read_facts([hit.session_id for hit in hits])
    anchors = {hit.message_id for hit in hits if hit.message_id is not None}
    ranked = {number for hit in hits if len(hit.messages) > 1 for number, _ in hit.messages}
    messages = ahead.read_messages(anchors | ranked)
    if not by_time:
        anchors |= {
            weighed.order[0]
            for hit in hits
            if hit.message_id is not None
            and len(hit.messages) > 1
            and not hit.asked
            and (weighed := weigh_messages(hit.messages, messages, query)).by_speaker
        }
    ahead.read_windows(
        anchors,
        (MEASURED_WINDOW, WindowShape(WINDOW, CONVERSATION_ROLES, without)),
        EndsShape(BOOKEND, CONVERSATION_ROLES, without),
    )
    return ahead
