"""Deletes from a bank what this home has sent."""

from collections.abc import Collection

from memoranda.external.vendors.hindsight.client import HindsightClient
from memoranda.external.vendors.hindsight.retry_failed import DOCUMENT_PREFIX, KIND
from memoranda.external.vendors.sent_record import SentItem, SentRecord

# Only deleting the bank removes them.
_TRACES = "the prompts of Hindsight's own model calls, which the server deletes by itself (after a day by default)"


def delete_bank(bank: HindsightClient, sent: SentRecord) -> tuple[list[SentItem], list[str]]:
    """Delete everything: the bank, if it has only our documents, else our documents one by one.

    Returns the deleted items of the record, and descriptions of what remains.
    """
    documents = [str(document.get("id")) for document in bank.documents()]
    others = [document_id for document_id in documents if not document_id.startswith(DOCUMENT_PREFIX)]
    if not others:
        bank.delete()
        return _drop_retries(sent), []
    bank.delete_operations(lambda document_id: document_id.startswith(DOCUMENT_PREFIX))
    for document_id in documents:
        if document_id.startswith(DOCUMENT_PREFIX):
            bank.delete_document(document_id)
    return _drop_retries(sent), [f"{len(others)} documents of the bank {bank.bank_id} that others have stored", _TRACES]


def _drop_retries(sent: SentRecord) -> list[SentItem]:
    """What was sent, without the counts of retries, which are removed."""
    for item in sent.items(KIND):
        sent.remove(item)
    return [item for item in sent.items() if item.remote_id]


def delete_sessions(
    bank: HindsightClient, sent: SentRecord, session_ids: Collection[str]
) -> tuple[list[SentItem], list[str]]:
    """Delete the documents of sessions, with the facts and observations that came only from them."""
    items = [item for item in sent.items() if item.session_id in session_ids and item.remote_id]
    tagged = bank.documents([f"session:{session_id}" for session_id in session_ids])
    documents = {item.remote_id for item in items} | {str(document.get("id")) for document in tagged}
    own = {document_id for document_id in documents if document_id.startswith(DOCUMENT_PREFIX)}
    bank.delete_operations(own.__contains__)
    for document_id in sorted(own):
        bank.delete_document(document_id)
    return items, [_TRACES] if own else []
