"""Has Hindsight process items again that it accepted and could not process."""

import logging
import time
from collections.abc import Callable

from memoranda.errors import ProviderError
from memoranda.providers.vendors.hindsight.bank import FailedOperation, HindsightBank
from memoranda.providers.vendors.sent_record import SentRecord

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

    def __init__(self, bank: HindsightBank, sent: SentRecord, clock: Callable[[], float] = time.monotonic) -> None:
        self._bank = bank
        self._sent = sent
        self._clock = clock
        self._next_check = clock()

    def retry_if_due(self) -> None:
        """Retry failed items if the last check is long enough ago; a failure of the check itself is only logged."""
        if self._clock() < self._next_check:
            return
        self._next_check = self._clock() + _PAUSE_SECONDS
        try:
            self.retry()
        except ProviderError as error:
            _log.warning("Hindsight was not asked for items that it could not process: %s", error)

    def retry(self) -> list[FailedOperation]:
        """Retry failed items; returns those that failed too often, which a person has to look at."""
        given_up: list[FailedOperation] = []
        for operation in own_failures(self._bank):
            retries = int(self._sent.find(KIND, operation.id) or 0)
            if retries >= _MAX_RETRIES:
                given_up.append(operation)
                continue
            self._bank.retry(operation.id)
            self._sent.add(KIND, operation.id, str(retries + 1))
            _log.warning("Hindsight could not process %s and tries again: %s", operation.document_id, operation.error)
        if given_up:
            _log.error("%s", describe_failures(given_up))
        return given_up


def own_failures(bank: HindsightBank) -> list[FailedOperation]:
    """The failed items of a bank that we sent."""
    return [operation for operation in bank.failed_operations() if operation.document_id.startswith(DOCUMENT_PREFIX)]


def describe_failures(failures: list[FailedOperation]) -> str:
    """A sentence for a person about items that the server accepted and did not process."""
    return (
        f"Hindsight accepted {len(failures)} item(s) and could not process them; the last error: {failures[-1].error} "
        "Check the model that the server uses, then retry the failed operations in its control plane."
    )
