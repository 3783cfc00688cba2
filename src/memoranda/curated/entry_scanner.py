"""What of curated memory may be shown: each entry scanned, and the seams between entries, minus what a person allowed.

A phrase can be split over two entries and still read as one in the rendered block, so the joined text is scanned as
well, by the phrase rules (a command or a learned judgement needs a whole text, not a seam).

Scanning is the dearest part of a load, so verdicts are kept: of each text, and of the last list of entries. Where
two lists differ only in some place, only that place and its surroundings are scanned again.
"""

from bisect import bisect_right
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from pathlib import Path

from memoranda import safety
from memoranda.curated.entry_format import handle
from memoranda.curated.operations import shared_ends
from memoranda.safety.allowances import Allowances

# A phrase rule reaches over at most 200 letters, so with its blanks hardly further than this.
_REACH = 240
# What stands for the delimiter while seams are scanned: as small a pause to a reader, and it keeps ASCII text ASCII.
_SEAM = "\n-\n"
_MOST_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class ScannedEntry:
    """An entry with what the scanner says of it; `visible_text` is what everyone but its owner may see."""

    text: str
    findings: tuple[str, ...]

    @property
    def handle(self) -> str:
        return handle(self.text)

    @property
    def visible_text(self) -> str:
        if not self.findings:
            return self.text
        return (
            f"[blocked: {', '.join(self.findings)}. The text of this entry is not shown; "
            f'remove it with old_text "{self.handle}"]'
        )


_FINDINGS = attrgetter("findings")
_Screened = tuple[tuple[str, ...], list[ScannedEntry], bool]


class EntryScanner:
    """Scans the entries of one file, remembers the verdicts for its lifetime, and knows what was allowed."""

    def __init__(self, allowances: Path) -> None:
        self.allowances = Allowances(allowances)
        self._verdicts: dict[str, tuple[str, ...]] = {}
        # Entries that were found wanting beside their neighbours stay hidden when they are shown without them.
        self._hidden: dict[str, tuple[str, ...]] = {}
        # The last list of entries, their verdicts with nothing allowed yet, and whether there are any findings; one
        # value, because threads may share a store.
        self._last: _Screened = ((), [], False)

    def findings(self, text: str) -> tuple[str, ...]:
        """The ids of what was found in one text, alone or beside its neighbours, and nobody has allowed; sorted."""
        found = self._hidden.get(text) or self._scan(text)
        return tuple(finding for finding in found if finding not in self.allowances.of(text)) if found else ()

    def screen(self, entries: Sequence[str]) -> list[ScannedEntry]:
        """All entries with their findings, those of the seams between them included.

        What is found in entries that are really there is remembered, so that it stays hidden when shown by itself.
        """
        _, screened, flagged = self._screen_what_changed(tuple(entries))
        if not flagged:
            return screened
        self._hidden.update({entry.text: entry.findings for entry in screened if entry.findings})
        return [self._without_allowed(entry) if entry.findings else entry for entry in screened]

    def findings_in(self, entries: Sequence[str], texts: Set[str]) -> set[str]:
        """The ids of what is found in some texts when they stand among these entries, and nobody has allowed."""
        _, screened, flagged = self._screen_what_changed(tuple(entries)) if texts else ((), [], False)
        if not flagged:
            return set()
        meant = [self._without_allowed(entry) for entry in screened if entry.findings and entry.text in texts]
        return {finding for entry in meant for finding in entry.findings}

    def _scan(self, text: str) -> tuple[str, ...]:
        verdict = self._verdicts.get(text)
        if verdict is None:
            verdict = tuple(sorted({finding.id for finding in safety.scan(text)}))
            self._verdicts[text] = verdict
        return verdict

    def _scan_ahead(self, entries: Sequence[str]) -> bool:
        """Scan unknown texts together, far cheaper than one by one; False when no seam between them can matter."""
        unknown = [entry for entry in dict.fromkeys(entries) if entry not in self._verdicts]
        if len(unknown) < 2:
            return True
        verdicts = safety.scan_each(unknown)
        for entry, findings in zip(unknown, verdicts.findings, strict=True):
            self._verdicts[entry] = tuple(sorted({finding.id for finding in findings}))
        return verdicts.may_join or len(unknown) < len(set(entries))

    def _screen_what_changed(self, entries: tuple[str, ...]) -> _Screened:
        before, screened, flagged = self._last
        if entries == before:
            return self._last
        head, tail = shared_ends(before, entries)
        # Verdicts can change within reach of the changed place; to judge those, twice the reach must be read.
        first, last = _reaching(entries, head, -1), _reaching(entries, len(entries) - tail, 1)
        start, end = _reaching(entries, first, -1), _reaching(entries, last, 1)
        seams = [frozenset[str]()] * (last - first)
        if self._scan_ahead(entries[start:end]):
            seams = _scan_joined(entries[start:end])[first - start : last - start]
        fresh = [
            ScannedEntry(entry, tuple(sorted(seam.union(self._scan(entry)))) if seam else self._scan(entry))
            for entry, seam in zip(entries[first:last], seams, strict=True)
        ]
        kept = len(entries) - last
        screened = [*screened[:first], *fresh, *screened[len(screened) - kept :]]
        still = any(map(_FINDINGS, screened)) if flagged else any(map(_FINDINGS, fresh))
        self._last = (entries, screened, still)
        return self._last

    def _without_allowed(self, entry: ScannedEntry) -> ScannedEntry:
        allowed = self.allowances.of(entry.text)
        return ScannedEntry(entry.text, tuple(finding for finding in entry.findings if finding not in allowed))


def _reaching(entries: Sequence[str], index: int, step: int) -> int:
    """The boundary that lies at least a rule's reach before (-1) or behind (1) the one at `index`."""
    covered = 0
    while covered < _REACH and 0 <= index + min(step, 0) < len(entries):
        covered += len(entries[index + min(step, 0)]) + len(_SEAM)
        index += step
    return index


def _scan_joined(entries: Sequence[str]) -> list[frozenset[str]]:
    """For each entry the ids of findings in the joined text that touch it.

    One scan names only so many findings, so what was found is blanked and the rest scanned again; a text that does
    not come to an end that way is blocked as a whole.
    """
    findings = safety.scan_phrases(_SEAM.join(entries)) if len(entries) > 1 else ()
    if not findings:
        return [frozenset()] * len(entries)
    found: list[set[str]] = [set() for _ in entries]
    rest = list(entries)
    starts = list(accumulate((len(entry) + len(_SEAM) for entry in entries), initial=0))
    for _ in range(_MOST_ROUNDS):
        for finding in findings:
            first = bisect_right(starts, finding.span[0]) - 1
            last = min(bisect_right(starts, finding.span[1] - 1), len(entries)) - 1
            for index in range(first, last + 1):
                found[index].add(finding.id)
                rest[index] = " " * len(entries[index])
        findings = safety.scan_phrases(_SEAM.join(rest))
        if not findings:
            return [frozenset(ids) for ids in found]
    return [frozenset({*ids, "hidden_text"}) for ids in found]
