"""Scans memory entries and decides which may be shown; findings that a person allowed do not count.

A phrase or a command can be split over two entries and still read as one in the prompt. So the joined text is scanned
as well, by the phrase rules, and the seam between neighbours by all rules, whichever of the two comes first. The
entries of the other file are in the same prompt, so the seams to them are scanned too.

Scanning is the most expensive part of a load, so the scanner caches its findings for each text and for the last list
of entries. Where two lists differ in one part, it scans only that part and its surroundings again.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import accumulate, chain, pairwise
from operator import attrgetter

from memoranda import safety
from memoranda.memory.curated.memory_file import handle
from memoranda.memory.curated.operations import shared_ends
from memoranda.safety.allowances import Allowances
from memoranda.safety.dangerous_commands import find_credential_paths
from memoranda.safety.finding import Finding
from memoranda.safety.seams import scan_distant, scan_seams
from memoranda.support.lazy_dataclass import dataclass

# A phrase rule matches at most 200 letters, which is about this many characters with blanks.
_REACH = 240
# Replaces the delimiter while joined entries are scanned: a similar pause for a reader, and ASCII text stays ASCII.
_JOINT = "\n-\n"
_MAX_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class ScannedEntry:
    """An entry with its findings; `visible_text` is the text or, with findings, a placeholder."""

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
_SplitFindings = dict[str, set[str]]
_ScannedList = tuple[tuple[str, ...], list[ScannedEntry], bool]


class EntryScanner:
    """Scans the entries of one file and caches the findings for its lifetime."""

    def __init__(self, allowances: Allowances) -> None:
        self.allowances = allowances
        self._findings: dict[str, tuple[str, ...]] = {}
        # Entries with findings that involve their neighbours stay hidden when they are shown without them.
        self._hidden: dict[str, tuple[str, ...]] = {}
        # The last list of entries, the scanned entries before allowances, and whether any has findings. One value,
        # because threads may share a store.
        self._last: _ScannedList = ((), [], False)
        # Returns the entries of the other file, which the prompt shows together with these.
        self.other_entries: Callable[[], Sequence[str]] = lambda: ()
        self._last_split: tuple[tuple[str, ...], tuple[str, ...], _SplitFindings] = ((), (), {})

    def findings(self, text: str) -> tuple[str, ...]:
        """The sorted ids of findings in one text, by itself or with its neighbours, that no person has allowed."""
        found = self._hidden.get(text) or self._scan(text)
        return tuple(finding for finding in found if finding not in self.allowances.of(text)) if found else ()

    def scan_entries(self, entries: Sequence[str]) -> list[ScannedEntry]:
        """All entries with their findings, including those that span two entries of this file or of both files.

        The scanner remembers these findings, so that such an entry stays hidden when it is shown by itself. Of two
        entries in different files that form an attack together, the shorter one has the finding.
        """
        _, screened, flagged = self._scan_changed_part(tuple(entries))
        split = self._scan_split(tuple(entries))
        if split:
            screened = [
                ScannedEntry(entry.text, tuple(sorted({*entry.findings, *split.get(entry.text, ())})))
                for entry in screened
            ]
        elif not flagged:
            return screened
        self._hidden.update({entry.text: entry.findings for entry in screened if entry.findings})
        return [self._without_allowed(entry) if entry.findings else entry for entry in screened]

    def findings_in(self, entries: Sequence[str], texts: Set[str]) -> set[str]:
        """The ids of findings in some of these entries that no person has allowed."""
        _, screened, flagged = self._scan_changed_part(tuple(entries)) if texts else ((), [], False)
        matching = [entry for entry in screened if entry.findings and entry.text in texts] if flagged else []
        others = self.other_entries() if texts else ()
        pairs = [pair for text in sorted(texts) for other in others for pair in ((text, other), (other, text))]
        for pair, found in zip(pairs, scan_seams(pairs), strict=True):
            matching += [ScannedEntry(text, found) for text in pair if found and text in texts]
        for one, two, ids in _distant_pairs(entries, others) if texts else ():
            matching += [ScannedEntry(text, ids) for text in (one, two) if text in texts]
        return {finding for entry in matching for finding in self._without_allowed(entry).findings}

    def _scan(self, text: str) -> tuple[str, ...]:
        findings = self._findings.get(text)
        if findings is None:
            findings = _sorted_ids(text, safety.scan(text))
            self._findings[text] = findings
        return findings

    def _scan_together(self, entries: Sequence[str]) -> bool:
        """Scan unknown texts at once, which is much cheaper; False when no finding can span two of them."""
        unknown = [entry for entry in dict.fromkeys(entries) if entry not in self._findings]
        if len(unknown) < 2:
            return True
        verdicts = safety.scan_each(unknown)
        for entry, findings in zip(unknown, verdicts.findings, strict=True):
            self._findings[entry] = _sorted_ids(entry, findings)
        return verdicts.may_join or len(unknown) < len(set(entries))

    def _scan_changed_part(self, entries: tuple[str, ...]) -> _ScannedList:
        before, screened, flagged = self._last
        if entries == before:
            return self._last
        head, tail = shared_ends(before, entries)
        # Findings can change within reach of the changed part; to find them, twice the reach must be scanned.
        first, last = _boundary_within_reach(entries, head, -1), _boundary_within_reach(entries, len(entries) - tail, 1)
        start, end = _boundary_within_reach(entries, first, -1), _boundary_within_reach(entries, last, 1)
        joint_findings = _scan_neighbours(entries[start:end])[first - start : last - start]
        if self._scan_together(entries[start:end]):
            phrases = _scan_joined(entries[start:end])[first - start : last - start]
            joint_findings = [one | other for one, other in zip(joint_findings, phrases, strict=True)]
        fresh = [
            ScannedEntry(entry, tuple(sorted(joint.union(self._scan(entry)))) if joint else self._scan(entry))
            for entry, joint in zip(entries[first:last], joint_findings, strict=True)
        ]
        unchanged = len(entries) - last
        screened = [*screened[:first], *fresh, *screened[len(screened) - unchanged :]]
        has_findings = any(map(_FINDINGS, screened)) if flagged else any(map(_FINDINGS, fresh))
        self._last = (entries, screened, has_findings)
        return self._last

    def _scan_split(self, entries: tuple[str, ...]) -> _SplitFindings:
        """The entries that form an attack with one of the other file, with the ids of what they form."""
        others = tuple(self.other_entries())
        if (entries, others) != self._last_split[:2]:
            found: _SplitFindings = {}
            pairs = list(_pairs_across(entries, others))
            for (own, other), ids in zip(pairs, scan_seams(pairs), strict=True):
                shorter = min(own, other, key=lambda text: (len(text), text))
                if ids and shorter in entries:
                    found.setdefault(shorter, set()).update(ids)
            for own, other, ids in _distant_pairs(entries, others):
                shorter = min(own, other, key=lambda text: (len(text), text))
                if shorter in entries:
                    found.setdefault(shorter, set()).update(ids)
            self._last_split = (entries, others, found)
        return self._last_split[2]

    def _without_allowed(self, entry: ScannedEntry) -> ScannedEntry:
        allowed = self.allowances.of(entry.text)
        return ScannedEntry(entry.text, tuple(finding for finding in entry.findings if finding not in allowed))


def _sorted_ids(text: str, findings: Iterable[Finding]) -> tuple[str, ...]:
    """The ids of a text's findings, with those that only count in a memory."""
    return tuple(sorted({finding.id for finding in chain(findings, find_credential_paths(text))}))


def _boundary_within_reach(entries: Sequence[str], index: int, step: int) -> int:
    """The boundary at least a rule's reach before (step -1) or after (step 1) the one at `index`."""
    covered = 0
    while covered < _REACH and 0 <= index + min(step, 0) < len(entries):
        covered += len(entries[index + min(step, 0)]) + len(_JOINT)
        index += step
    return index


def _pairs_across(entries: Sequence[str], others: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each entry of one file with the first and the last of the other file, in both orders."""
    if not entries or not others:
        return
    for one, two in ((entries, others), (others, entries)):
        for text in dict.fromkeys(one):
            for end in dict.fromkeys((two[0], two[-1])):
                yield text, end
                yield end, text


def _distant_pairs(entries: Sequence[str], others: Sequence[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Entries of both files that form an attack, although others are between them."""
    texts = (*entries, *others)
    return ((texts[pair.first], texts[pair.second], pair.ids) for pair in scan_distant(texts))


def _scan_neighbours(entries: Sequence[str]) -> list[frozenset[str]]:
    """For each entry the ids of what it forms together with the one before or after it."""
    found: list[set[str]] = [set() for _ in entries]
    pairs = list(pairwise(entries))
    for index, ids in enumerate(scan_seams([*pairs, *((after, before) for before, after in pairs)])):
        for number in (index % len(pairs), index % len(pairs) + 1):
            found[number].update(ids)
    return [frozenset(ids) for ids in found]


def _scan_joined(entries: Sequence[str]) -> list[frozenset[str]]:
    """For each entry the ids of findings in the joined text that touch it.

    One scan reports a limited number of findings, so found passages are blanked and the rest is scanned again. A text
    that still has findings after the last round is blocked as a whole.
    """
    findings = safety.scan_phrases(_JOINT.join(entries)) if len(entries) > 1 else ()
    if not findings:
        return [frozenset()] * len(entries)
    found: list[set[str]] = [set() for _ in entries]
    rest = list(entries)
    starts = list(accumulate((len(entry) + len(_JOINT) for entry in entries), initial=0))
    for _ in range(_MAX_ROUNDS):
        for finding in findings:
            first = bisect_right(starts, finding.span[0]) - 1
            last = min(bisect_right(starts, finding.span[1] - 1), len(entries)) - 1
            for index in range(first, last + 1):
                found[index].add(finding.id)
                rest[index] = " " * len(entries[index])
        findings = safety.scan_phrases(_JOINT.join(rest))
        if not findings:
            return [frozenset(ids) for ids in found]
    return [frozenset({*ids, "hidden_text"}) for ids in found]
