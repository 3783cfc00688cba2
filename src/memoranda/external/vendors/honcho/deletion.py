"""Deletes what Honcho has received from a home for one user.

Other programs may use the same workspace, and even the same peers if the settings name them: only sessions and
conclusions of this home are deleted.
"""

from collections.abc import Collection

from memoranda.external.vendors.honcho.client import HonchoClient
from memoranda.external.vendors.honcho.names import HonchoNames
from memoranda.external.vendors.honcho.turn_messages import SOURCE
from memoranda.external.vendors.sent_record import SentItem

MARK = {"source": SOURCE}
"""The metadata by which sessions of Memoranda are found."""


def delete_sessions(
    client: HonchoClient, names: HonchoNames, sent: Collection[SentItem], session_ids: Collection[str]
) -> tuple[list[SentItem], list[str]]:
    """Delete some conversations and what was stored in them; returns what is gone, and what remains."""
    items = [item for item in sent if item.session_id in session_ids]
    stored = [item for item in items if item.kind != "turn"]
    _delete_conclusions(client, stored)
    if names.shares_session:
        return stored, [
            "the messages of these conversations: they share one session with all others, and Honcho deletes no single"
            " messages; forget without a session deletes everything",
            *_remaining(names),
        ]
    for session_id in session_ids:
        client.delete_session(names.session(session_id))
    return items, _remaining(names)


def delete_everything(
    client: HonchoClient, names: HonchoNames, sent: Collection[SentItem]
) -> tuple[list[SentItem], list[str]]:
    """Delete all sessions that Memoranda created for the user, with conclusions and cards of the two peers.

    What peers that other programs use know about themselves and each other stays.
    """
    for session in [str(row["id"]) for row in client.list_sessions(names.user, MARK)]:
        client.delete_session(session)
    _delete_conclusions(client, sent)
    for observer, observed in names.views():
        if observer in names.shared_peers and observed in names.shared_peers:
            continue
        for conclusion in [str(row["id"]) for row in client.list_conclusions(observer, observed)]:
            client.delete_conclusion(conclusion)
        if client.get_card(observer, observed):
            client.set_card(observer, observed, [])
    elsewhere = [
        f"what {peer} learned elsewhere, and its card: other programs may use it" for peer in names.shared_peers
    ]
    return list(sent), [*elsewhere, *_remaining(names)]


def _delete_conclusions(client: HonchoClient, items: Collection[SentItem]) -> None:
    for item in items:
        if item.kind != "turn" and item.remote_id:
            client.delete_conclusion(item.remote_id)


def _remaining(names: HonchoNames) -> list[str]:
    return [f"the names of the peers {names.user} and {names.assistant}: Honcho deletes no peers"]
