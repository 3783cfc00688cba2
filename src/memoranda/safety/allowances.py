"""The scanner findings that a person accepted.

One JSON document stores them: by digest of the text, each finding with who allowed it and when. It fails closed: a
file that cannot be read allows nothing, and the doctor reports it.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from memoranda.errors import StorageError
from memoranda.storage.files.named_texts import Document
from memoranda.support.canonical_text import digest
from memoranda.support.health_issues import HealthIssue
from memoranda.support.origin import Origin, utc_timestamp


class Allowances:
    """The accepted findings of some texts; the caller holds the lock of the texts' store when it changes them."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def check(self) -> Iterator[HealthIssue]:
        """The issue of a document that is damaged, for the doctor."""
        try:
            self._read()
        except StorageError as error:
            yield HealthIssue("error", self._document.path, str(error), "repair or delete the file")

    def of(self, text: str) -> frozenset[str]:
        """The findings that a person has allowed in a text."""
        try:
            return frozenset(self._read().get(digest(text), ()))
        except StorageError:
            return frozenset()

    def allow(self, texts: Iterable[str | None], findings: Iterable[str], origin: Origin) -> None:
        """Record that a person accepts these findings wherever these texts have them."""
        record = self._read()
        at = utc_timestamp()
        accepted = {finding: {"by": origin.actor, "at": at} for finding in findings}
        for text in texts:
            if text is not None:
                record.setdefault(digest(text), {}).update(accepted)
        self._write(record)

    def revoke(self, text: str) -> bool:
        """Revoke everything that was allowed for a text; False when nothing was."""
        record = self._read()
        if record.pop(digest(text), None) is None:
            return False
        self._write(record)
        return True

    def _write(self, record: dict[str, dict[str, Any]]) -> None:
        self._document.write(json.dumps(record, indent=1, sort_keys=True).encode())

    def _read(self) -> dict[str, dict[str, Any]]:
        """The allowed findings by digest of the text; raises StorageError when the document is damaged."""
        path = self._document.path
        try:
            record = json.loads(self._document.read())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise StorageError(
                f"{path} cannot be read ({error}), so nothing in it is allowed. Repair or delete it."
            ) from error
        if not isinstance(record, dict) or not all(isinstance(findings, dict) for findings in record.values()):
            raise StorageError(f"{path} has the wrong structure, so nothing in it is allowed. Repair or delete it.")
        return record
