"""What of curated memory may be shown: each entry scanned, each pair of neighbours too, minus what a person allowed.

A phrase can be split over two entries and still read as one in the rendered block, so the seams between entries
are scanned as well, with the rules alone (a learned judgement needs a whole text, not a seam).

Allowances lie in `allowed.json` beside the memory files: digest of the entry, finding, who, when.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda import safety
from memoranda.curated.entries import DELIMITER, digest, handle
from memoranda.curated.outcome import Origin
from memoranda.errors import StorageError
from memoranda.support.clock import now
from memoranda.support.files import write_private

# No phrase rule reaches further than this, so a longer stretch beside a seam cannot matter.
_SEAM_REACH = 400


@dataclass(frozen=True, slots=True)
class ScreenedEntry:
    """An entry with what the scanner says of it; `shown` is what anybody but its owner may see."""

    text: str
    findings: tuple[str, ...]

    @property
    def handle(self) -> str:
        return handle(self.text)

    @property
    def shown(self) -> str:
        if not self.findings:
            return self.text
        return (
            f"[blocked: {', '.join(self.findings)}. The text of this entry is not shown; "
            f'remove it with old_text "{self.handle}"]'
        )


class Screening:
    """Scans entries, remembers the verdicts for its lifetime, and knows what was allowed."""

    def __init__(self, allowances: Path) -> None:
        self._path = allowances
        self._verdicts: dict[str, tuple[str, ...]] = {}

    def findings(self, text: str, allowed: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """The ids of what the scanner finds in one text and nobody has allowed, sorted."""
        found = self._scan(text)
        return tuple(finding for finding in found if finding not in allowed | self._allowed(text)) if found else ()

    def seam_findings(self, entries: Sequence[str], index: int) -> tuple[str, ...]:
        """The ids of what only appears when the entry at `index` is read together with its neighbours."""
        before = DELIMITER.join(entries[max(0, index - 8) : index])[-_SEAM_REACH:]
        after = DELIMITER.join(entries[index + 1 : index + 9])[:_SEAM_REACH]
        entry = entries[index]
        start = len(before) + len(DELIMITER) if before else 0
        text = DELIMITER.join(part for part in (before, entry, after) if part)
        crossing = {
            finding.id
            for finding in safety.scan(text, learned=False)
            if finding.span[0] < start < finding.span[1] or finding.span[0] < start + len(entry) < finding.span[1]
        }
        return tuple(sorted(crossing))

    def screen(self, entries: Sequence[str]) -> list[ScreenedEntry]:
        """All entries with their findings, those of the seams between them included."""
        found = [set(self.findings(entry)) for entry in entries]
        for finding, first, last in _block_findings(entries):
            for index in range(first, last + 1):
                if finding not in self._allowed(entries[index]):
                    found[index].add(finding)
        return [ScreenedEntry(entry, tuple(sorted(ids))) for entry, ids in zip(entries, found, strict=True)]

    def allow(self, texts: Iterable[str | None], findings: Iterable[str], origin: Origin) -> None:
        """Record that a person accepts these findings wherever these texts have them. The caller holds the lock."""
        record = self._read()
        stamp = {"by": origin.actor, "at": now()}
        for text in texts:
            if text is not None:
                record.setdefault(digest(text), {}).update(dict.fromkeys(findings, stamp))
        write_private(self._path, json.dumps(record, indent=1, sort_keys=True).encode())

    def _scan(self, text: str) -> tuple[str, ...]:
        verdict = self._verdicts.get(text)
        if verdict is None:
            verdict = tuple(sorted({finding.id for finding in safety.scan(text)}))
            self._verdicts[text] = verdict
        return verdict

    def _allowed(self, text: str) -> frozenset[str]:
        return frozenset(self._read().get(digest(text), ()))

    def _read(self) -> dict[str, Any]:
        try:
            record = json.loads(self._path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise StorageError(
                f"{self._path} cannot be read ({error}), so nothing in it is allowed. Mend or delete it."
            ) from error
        if not isinstance(record, dict):
            raise StorageError(f"{self._path} does not hold a JSON object. Mend or delete it.")
        return record


def _block_findings(entries: Sequence[str]) -> list[tuple[str, int, int]]:
    """Findings in the joined text that reach over a seam: id, first entry, last entry."""
    if len(entries) < 2:
        return []
    starts: list[int] = []
    position = 0
    for entry in entries:
        starts.append(position)
        position += len(entry) + len(DELIMITER)
    result: list[tuple[str, int, int]] = []
    for finding in safety.scan(DELIMITER.join(entries), learned=False):
        first = _entry_at(starts, finding.span[0])
        last = _entry_at(starts, finding.span[1] - 1)
        if first < last:
            result.append((finding.id, first, last))
    return result


def _entry_at(starts: Sequence[int], position: int) -> int:
    return bisect_right(starts, position) - 1
