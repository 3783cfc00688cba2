"""Has Hindsight process items again that it accepted and could not process."""

import logging
import time
from collections.abc import Callable

from memoranda.errors import ProviderError
from memoranda.external.vendors.hindsight.client import FailedOperation, HindsightClient
from memoranda.external.vendors.sent_record import SentRecord

_log = logging.getLogger(__name__)

DOCUMENT_PREFIX = "memoranda:"
KIND = "retry"
_MAX_RETRIES = 3
_PAUSE_SECONDS = 300.0


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
        return (
            f"{_describe(failures)} They are processed again now; repeat this in a minute to see whether that worked."
        )

    def _retry_some(self) -> None:
        """Retry the failed items that were not retried too often, and log the others."""
        given_up: list[FailedOperation] = []
        for operation in self._own_failures():
            retries = int(self._sent.find(KIND, operation.id) or 0)
            if retries >= _MAX_RETRIES:
                given_up.append(operation)
                continue
            self._client.retry(operation.id)
            self._sent.add(KIND, operation.id, str(retries + 1))
            _log.warning("Hindsight could not process %s and tries again: %s", operation.document_id, operation.error)
        if given_up:
            _log.error("%s 'memoranda provider test hindsight' has them processed again.", _describe(given_up))

    def _own_failures(self) -> list[FailedOperation]:
        found = self._client.failed_operations()
        return [operation for operation in found if operation.document_id.startswith(DOCUMENT_PREFIX)]


def _describe(failures: list[FailedOperation]) -> str:
    return (
        f"Hindsight accepted {len(failures)} item(s) and could not process them; check the model that it uses. "
        f"The last error: {failures[-1].error}"
    )
