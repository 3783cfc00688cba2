"""Hindsight as a vendor: one bank per user, one document per turn.

The tools have the names and the arguments that models and users know.
"""

import logging
import re
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.vendors.hindsight.client import (
    FIELDS,
    FailedOperation,
    HindsightClient,
    RetainedItem,
    bank_name,
    recall_options,
    split_list,
)
from memoranda.external.vendors.hindsight.embedded_server import describe_obstacle, start_if_missing
from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.sent_record import SentItem, SentRecord
from memoranda.external.vendors.texts import RecalledItem
from memoranda.external.vendors.vendor import Delivery, MemoryWrite, Turn, Vendor, text, tool
from memoranda.memory.record.message_rows import text_of
from memoranda.support.tool import JsonObject

_log = logging.getLogger(__name__)

_ABOUT = "# Hindsight memory"
_RECALL = "Memories of earlier conversations that match a message are added to it, with their kind and date."
_TOOLS = (
    "Use hindsight_recall to search these memories, hindsight_reflect for an answer that combines many of them, and "
    "hindsight_retain to store what should be remembered beyond this conversation."
)

_NOTHING_FOUND = "No memories match."

_DOCUMENT_PREFIX = "memoranda:"
_KIND = "retry"
_MAX_RETRIES = 3
_PAUSE_SECONDS = 300.0

# Only deleting the bank removes them.
_TRACES = "the prompts of Hindsight's own model calls, which the server deletes by itself (after a day by default)"

_WORD = re.compile(r"\w")
_TOOL_LIMIT = 20


class HindsightVendor(Vendor):
    """Turns become documents, from which the server extracts facts; recall searches these and what they add up to."""

    name = "hindsight"
    label = "Hindsight"
    fields = FIELDS
    guidance = (_ABOUT, _RECALL, _TOOLS)

    def open(self) -> None:
        settings = self.settings
        if settings["mode"] == "local_embedded":
            start_if_missing(self.scope.home, settings["api_url"], settings["server_program"])
        http = self.connect(settings["api_url"], settings["api_key"])
        self._client = HindsightClient(http, bank_name(self.scope, settings))
        self._retrier = FailedItemRetrier(self._client, self.sent)
        self._recall_options = recall_options(settings)
        self._missions_sent = not (settings["bank_mission"] or settings["bank_retain_mission"])
        self.recall_ahead = "always" if settings["recall_prefetch_method"] == "reflect" else "after_miss"

    @classmethod
    def missing_dependency(cls, settings: Mapping[str, Any]) -> str:
        if settings["mode"] == "cloud" and not settings["api_key"]:
            return "api_key (HINDSIGHT_API_KEY) is not set. 'memoranda provider setup hindsight' asks for it."
        return describe_obstacle(settings["server_program"]) if settings["mode"] == "local_embedded" else ""

    @property
    def mode(self) -> str:
        return str(self.settings["memory_mode"]) if self.settings["auto_recall"] else "tools"

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        return {"bank": bank_name(scope, settings)}

    def test_connection(self) -> str:
        version = self._client.version()
        self._client.check_access()
        report = f"Hindsight {version} at {self.settings['api_url']} answers; the bank is {self._client.bank_id}."
        return f"{report} {self._retrier.retry_all()}".strip()

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        query = query[: self.settings["recall_max_input_chars"]]
        # The server refuses a query without a word.
        return self._client.recall(query, self._recall_options, timeout=timeout)[:limit] if _WORD.search(query) else []

    def search_ahead(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        if self.settings["recall_prefetch_method"] != "reflect":
            return self.search(query, limit, timeout)
        answer = self._reflect(query[: self.settings["recall_max_input_chars"]], timeout)
        return [RecalledItem(answer, kind="reflection")] if answer else []

    def store_turn(self, turn: Turn) -> str | None:
        if not self.settings["auto_retain"]:
            return None
        names = {"user": self.settings["retain_user_prefix"], "assistant": self.settings["retain_assistant_prefix"]}
        spoken = [(names["user"], turn.user), (names["assistant"], turn.assistant)]
        if sum(message["role"] == "user" for message in turn.messages) > 1:
            # Several turns are one document, in the order in which they were said.
            said = [message for message in turn.messages if message["role"] in names]
            spoken = [(names[message["role"]], text_of(message.get("content"))) for message in said]
        document = "\n".join(f"{name}: {words}" for name, words in spoken if words.strip())
        if not document:
            return None
        item = self._item(turn, document, f"{_DOCUMENT_PREFIX}{turn.uuid}", self.settings["retain_context"])
        self._retain(item, turn, wait=not self.settings["retain_async"])
        self._retrier.retry_if_due()
        return item.document_id

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        """Mirror an entry as a document of its own; a replaced or removed entry is deleted with its facts."""
        if write.action in ("replace", "remove") and write.old_text:
            self._client.delete_document(f"{_DOCUMENT_PREFIX}{write.target}-{write.old_entry_id}")
        if write.action == "remove" or not write.content.strip():
            return None
        about = "the user" if write.target == "user" else "the assistant's work"
        # A later write of the entry finds the document by its name.
        document_id = f"{_DOCUMENT_PREFIX}{write.target}-{write.entry_id}"
        item = self._item(write, write.content, document_id, f"A note about {about}.")
        # Waits for the extraction, so that a later removal finds the document.
        self._retain(item, write, wait=True)
        return item.document_id

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        if session_ids is None:
            return _delete_bank(self._client, self.sent)
        return _delete_sessions(self._client, self.sent, session_ids)

    def _reflect(self, query: str, timeout: float) -> str:
        return self._client.reflect(query, self.settings["recall_budget"], timeout=timeout).strip()

    @tool(
        "hindsight_retain",
        "Store information in long-term memory. Hindsight extracts facts and links entities by itself.",
        ("content",),
        writes=True,
        content=text("The information to store, in full sentences that name who and what they are about."),
        context=text("A short label, such as 'user preference' or 'project decision'."),
        tags={"type": "array", "items": {"type": "string"}, "description": "Tags to add, such as 'project:atlas'."},
    )
    def _retain_tool(self, args: JsonObject, session_id: str) -> Any:
        delivery = Delivery(uuid.uuid4().hex, 1, time.time(), session_id)
        document_id, tags = f"{_DOCUMENT_PREFIX}{delivery.uuid}", tuple(args.get("tags", ()))
        self._retain(
            self._item(delivery, args["content"], document_id, args.get("context", ""), tags), delivery, repeat=True
        )
        self.sent.add("tool", delivery.key, document_id, session_id)
        return {"result": "Accepted. Hindsight extracts the facts in the background; they can be recalled in a moment."}

    @tool(
        "hindsight_recall",
        "Search long-term memory, by meaning, words, entities and time. Returns the best memories, numbered.",
        ("query",),
        query=text("What to search for."),
    )
    def _recall_tool(self, args: JsonObject, session_id: str) -> Any:
        items = self.search(args["query"], _TOOL_LIMIT, self.timeout)
        lines = (f"{number}. {_line(item)}" for number, item in enumerate(items, 1))
        return {"result": "\n".join(lines) or _NOTHING_FOUND}

    @tool(
        "hindsight_reflect",
        "Answer a question from all of long-term memory. Slower than hindsight_recall: a model reads many memories and "
        "writes the answer.",
        ("query",),
        query=text("The question."),
    )
    def _reflect_tool(self, args: JsonObject, session_id: str) -> Any:
        return {"result": self._reflect(args["query"], self.timeout) or _NOTHING_FOUND}

    def _item(
        self, delivery: Delivery, content: str, document_id: str, context: str, tags: tuple[str, ...] = ()
    ) -> RetainedItem:
        session = (f"session:{delivery.session_id}",) if delivery.session_id else ()
        # The server's model reads the metadata of each item, so there is little of it.
        metadata = {"source": self.settings["retain_source"], "session_id": delivery.session_id}
        return RetainedItem(
            content,
            document_id,
            context,
            delivery.iso_time,
            (*session, *split_list(self.settings["retain_tags"]), *tags),
            {name: value for name, value in metadata.items() if value},
            self.settings["observation_scopes"],
        )

    def _retain(self, item: RetainedItem, delivery: Delivery, *, wait: bool = False, repeat: bool = False) -> None:
        if not self._missions_sent:
            self._client.set_missions(self.settings["bank_mission"], self.settings["bank_retain_mission"])
            self._missions_sent = True
        self._client.retain(item, delivery.key, wait=wait, repeat=repeat)


class HindsightProvider(VendorProvider):
    vendor_class = HindsightVendor

    def limits(self) -> Mapping[str, Any]:
        every = self._open_vendor().settings["retain_every_n_turns"]
        return {**super().limits(), "turns_per_delivery": every}


class FailedItemRetrier:
    """Looks for failed items after a delivery, not more often than every five minutes.

    The server has tried each item four times by then, so the model or the database behind it was down for minutes. An
    item is retried three times here; the count is in the record of what was sent, and survives restarts.
    """

    def __init__(self, client: HindsightClient, sent: SentRecord, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._sent = sent
        self._clock = clock
        self._next_check = clock()

    def retry_if_due(self) -> None:
        """Retry failed items if the last check is long enough ago; a failure of the check itself is only logged."""
        if self._clock() < self._next_check:
            return
        self._next_check = self._clock() + _PAUSE_SECONDS
        try:
            self._retry_some()
        except ProviderError as error:
            _log.warning("Hindsight was not asked for items that it could not process: %s", error)

    def retry_all(self) -> str:
        """Retry every failed item, because a person asks, and report them in a sentence; empty if there is none."""
        failures = self._own_failures()
        for operation in failures:
            self._client.retry(operation.id)
        if not failures:
            return ""
        again = "They are processed again now; repeat this in a minute to see whether that worked."
        return f"{_describe_failures(failures)} {again}"

    def _retry_some(self) -> None:
        """Retry the failed items that were not retried too often, and log the others."""
        given_up: list[FailedOperation] = []
        for operation in self._own_failures():
            retries = int(self._sent.find(_KIND, operation.id) or 0)
            if retries >= _MAX_RETRIES:
                given_up.append(operation)
                continue
            self._client.retry(operation.id)
            self._sent.add(_KIND, operation.id, str(retries + 1))
            _log.warning("Hindsight could not process %s and tries again: %s", operation.document_id, operation.error)
        if given_up:
            _log.error("%s 'memoranda provider test hindsight' has them processed again.", _describe_failures(given_up))

    def _own_failures(self) -> list[FailedOperation]:
        found = self._client.failed_operations()
        return [operation for operation in found if operation.document_id.startswith(_DOCUMENT_PREFIX)]


def _describe_failures(failures: list[FailedOperation]) -> str:
    return (
        f"Hindsight accepted {len(failures)} item(s) and could not process them; check the model that it uses. "
        f"The last error: {failures[-1].error}"
    )


def _delete_bank(bank: HindsightClient, sent: SentRecord) -> tuple[list[SentItem], list[str]]:
    """Delete everything: the bank, if it has only our documents, else our documents one by one.

    Returns the deleted items of the record, and descriptions of what remains.
    """
    documents = [str(document.get("id")) for document in bank.documents()]
    others = [document_id for document_id in documents if not document_id.startswith(_DOCUMENT_PREFIX)]
    if not others:
        bank.delete()
        return _drop_retries(sent), []
    bank.delete_operations(lambda document_id: document_id.startswith(_DOCUMENT_PREFIX))
    for document_id in documents:
        if document_id.startswith(_DOCUMENT_PREFIX):
            bank.delete_document(document_id)
    return _drop_retries(sent), [f"{len(others)} documents of the bank {bank.bank_id} that others have stored", _TRACES]


def _drop_retries(sent: SentRecord) -> list[SentItem]:
    """What was sent, without the counts of retries, which are removed."""
    for item in sent.items(_KIND):
        sent.remove(item)
    return [item for item in sent.items() if item.remote_id]


def _delete_sessions(
    bank: HindsightClient, sent: SentRecord, session_ids: Collection[str]
) -> tuple[list[SentItem], list[str]]:
    """Delete the documents of sessions, with the facts and observations that came only from them."""
    items = [item for item in sent.items() if item.session_id in session_ids and item.remote_id]
    tagged = bank.documents([f"session:{session_id}" for session_id in session_ids])
    documents = {item.remote_id for item in items} | {str(document.get("id")) for document in tagged}
    own = {document_id for document_id in documents if document_id.startswith(_DOCUMENT_PREFIX)}
    bank.delete_operations(own.__contains__)
    for document_id in sorted(own):
        bank.delete_document(document_id)
    return items, [_TRACES] if own else []


def _line(item: RecalledItem) -> str:
    day = item.time[:10] if isinstance(item.time, str) else ""
    labels = ", ".join(filter(None, (item.kind, day)))
    return f"{' '.join(item.text.split())} ({labels})" if labels else " ".join(item.text.split())
