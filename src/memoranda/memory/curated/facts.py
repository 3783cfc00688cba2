"""Facts about entries: when each was written and confirmed, who wrote it where, what it is about, and when it expires.

MEMORY.md stays plain text that a person and other programs edit, so nothing of this is in the file. The journal has it:
each change says when, by whom, in which conversation and after which message it was made, and until when its entries
are valid. An entry whose wording a person changes keeps its facts. The category follows from the words by rules.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import astuple, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.journal import MemoryChange, MemoryJournal
from memoranda.memory.curated.memory_file import ENTRY_DELIMITER, handle
from memoranda.memory.curated.operations import key_of, rewrite_edits
from memoranda.memory.curated.relative_time import names_relative_time, with_day
from memoranda.memory.curated.settings import Target
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_later

Category = Literal["identity", "preference", "convention", "state", "other"]

NEVER = "never"
"""Instead of a date: the entry no longer expires."""

# At least this share of the words of the longer text must be in both, so that one counts as the other reworded.
_ALIKE = 0.5
_BY_HAND = frozenset({"outside", "edit"})
_RESTORES = frozenset({"undo", "move"})
_PERIOD = compile_later(r"(\d{1,4})\s*(d|days?|w|weeks?|m|months?|y|years?)")
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}
_WORD = compile_later(r"\w+")

# The first rule that matches decides. What is worded as a preference stays one, whatever else the text mentions.
_RULES: tuple[tuple[Category, str], ...] = (
    (
        "preference",
        r"prefer|\blikes?\b|dislike|\bloves?\b|\bhates?\b|favou?rite|\bwants?\b|would rather|\bappreciates?\b"
        r"|\benjoys?\b|bevorzug|\bmag\b|möchte|lieber|prefier|\bgusta|préfère|\baime\b|prefere|\bgosta\b|preferisce",
    ),
    (
        "identity",
        r"\bname is\b|\bis called\b|\bnamed\b|pronouns?\b|\be-?mail\b|\btime ?zone\b|\bbirthday\b|\bborn\b"
        r"|\blives? in\b|\bbased in\b|\bworks? (?:at|as|for)\b|\bnative (?:language|speaker)\b|\bspeaks\b|\ballerg"
        r"|\bis (?:an? |the )?[\w -]{0,30}(?:engineer|developer|designer|manager|student|teacher|researcher|founder)\b"
        r"|\bheißt\b|\bwohnt\b|\barbeitet (?:bei|als)\b|se llama|\bvive en\b|s'appelle|habite",
    ),
    (
        "state",
        r"\bcurrently\b|\bright now\b|\bfor now\b|\btemporar|\bas of\b|\bsince\b|\buntil\b|\bby \d|\bdeadline\b"
        r"|\bin progress\b|\bworking on\b|\bwaiting\b|\bis (?:broken|down|closed|frozen|blocked|on hold|on leave)\b"
        r"|\bno longer\b|\bmoved to\b|\bmigrat|\bswitched\b|\bversion \d|\bv\d+\.\d|\b\d{4}-\d\d-\d\d\b"
        r"|\bnext (?:week|month)|\bderzeit\b|\bmomentan\b|\bbis zum\b|\bseit\b|actualmente|\bhasta\b|actuellement"
        r"|jusqu",
    ),
    (
        "convention",
        r"\buses?\b|\balways\b|\bnever\b|\bmust\b|\bshould\b|\bconvention|\bstyle\b|\bformat|\bindent|\blint|\bbranch"
        r"|\bcommits?\b|\btests?\b|\bbuilds?\b|\bdeploy|\brun(?:s|ning)? (?:with|on|by|via)\b|\bnaming\b|\bmake \w"
        r"|\bnutzt\b|\bverwendet\b|\bimmer\b|\bnie\b|\busa\b|\bsiempre\b|\butilise\b|\btoujours\b",
    ),
)


@dataclass(frozen=True, slots=True)
class EntryFacts:
    """An entry with its facts; times are in seconds since 1970, `until` is its last day or "".

    `sources` are the untrusted ones that may have suggested it; what a person said has none.
    """

    target: Target
    entry: ScannedEntry
    written: float
    confirmed: float | None
    actor: str
    session: str
    message: int | None
    until: str
    sources: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The text as a reader sees it: with the day of writing, if it names a time by its distance from that day."""
        return with_day(self.entry.visible_text, self.written)

    @property
    def category(self) -> Category:
        return category_of(self.target, self.entry.text)

    @property
    def key(self) -> str:
        """What stands before the colon of "time zone: Europe/Berlin"; "" if the entry has no such form."""
        return key_of(self.entry.text)

    @property
    def expired(self) -> bool:
        return is_past(self.until)

    @property
    def history(self) -> dict[str, str]:
        """What the journal of another machine, or one without its history, must be told about the entry."""
        at, confirmed = _time_of(self.written), "" if self.confirmed is None else _time_of(self.confirmed)
        return {"at": at, "confirmed": confirmed, "actor": self.actor, "session": self.session}

    @property
    def checked_at(self) -> float:
        """When it was last written or confirmed."""
        return max(self.written, self.confirmed or 0.0)


@dataclass(frozen=True, slots=True)
class Use:
    """How often an entry was of use in conversations since it was written, and when last."""

    count: int
    last: float


NO_USE = Use(0, 0.0)


@dataclass(frozen=True, slots=True)
class _Known:
    written: float
    actor: str
    session: str
    message: int | None
    until: str = ""
    confirmed: float | None = None


def category_of(target: Target, text: str) -> Category:
    """What an entry is about; what the profile of a user says without a cue is part of who they are."""
    lowered = text.casefold()
    found = next((category for category, rule in _RULES if re.search(rule, lowered)), None)
    if target == "user" and found in (None, "convention"):
        return "identity"
    return found or "other"


def is_past(until: str) -> bool:
    """Whether the last day of an entry is over."""
    return bool(until) and until < date.today().isoformat()


def parse_until(text: str) -> str:
    """The last day as YYYY-MM-DD, from a date or a period such as 2w; NEVER for "never". Raises ValueError."""
    wanted = text.strip().casefold()
    if wanted in ("", NEVER):
        return wanted
    if period := _PERIOD.fullmatch(wanted):
        days = int(period[1]) * _DAYS[period[2][0]]
        return (date.today() + timedelta(days)).isoformat()
    try:
        return date.fromisoformat(wanted[:10]).isoformat()
    except ValueError:
        message = f"until must be a date such as 2027-01-31, a period such as 2w, or never; not {text[:40]!r}."
        raise ValueError(message) from None


def read_facts(
    journal: MemoryJournal, target: Target, entries: Sequence[ScannedEntry], modified: float
) -> list[EntryFacts]:
    """The facts of the entries that a file has now. What the journal does not know of is as old as the file."""
    history = _History()
    for change in journal.changes():
        history.add(change)
    texts = [entry.text for entry in entries]
    recorded = journal.entries_after(target) or []
    if recorded != texts:
        # Another program has changed the file since the last line.
        edits = rewrite_edits(recorded, texts)
        at = datetime.fromtimestamp(modified, UTC).isoformat()
        history.add(MemoryChange(0, target, "outside", "outside", "", edits, {}, at))
    unknown = _Known(modified, "outside", "", None)
    found = [(entry, history.known.get((target, entry.text), unknown)) for entry in entries]
    sources = journal.sources(target)
    return [
        EntryFacts(
            target, entry, known.written, known.confirmed, known.actor, known.session, known.message, known.until,
            sources.get(entry.handle, ()),
        )
        for entry, known in found
    ]  # fmt: skip


class _History:
    """What the lines of a journal say about each entry."""

    def __init__(self) -> None:
        self.known: dict[tuple[Target, str], _Known] = {}
        self._by_handle: dict[tuple[Target, str], str] = {}

    def add(self, change: MemoryChange) -> None:
        at = seconds_of(change.at)
        if at is None:
            return
        old = [edit.before for edit in change.edits if edit.before is not None]
        new = [edit.after for edit in change.edits if edit.after is not None]
        fresh = [text for text in new if text not in old]
        by_hand = change.action in _BY_HAND
        gone = [text for text in old if text not in new]
        # Only these get anything from the entry that they reword.
        has_heirs = by_hand or any([self._has_last_day(change.target, text) for text in gone])
        ancestors = pair_alike(gone, fresh, by_hand) if has_heirs else {}
        for text in fresh:
            self._note(change, at, text, self.known.get((change.target, ancestors.get(text, ""))))
        if change.action == "confirm":
            self._update(change.target, change.note, confirmed=at)
        for name, facts in change.facts.items():
            self._update(change.target, name, **_read_history(facts))
        for name, until in change.until.items():
            self._update(change.target, name, until="" if until == NEVER else until)

    def _has_last_day(self, target: Target, text: str) -> bool:
        known = self.known.get((target, text))
        return known is not None and bool(known.until)

    def _note(self, change: MemoryChange, at: float, text: str, ancestor: _Known | None) -> None:
        known = _Known(at, change.actor, change.session, change.message, ancestor.until if ancestor else "")
        # Not from an equal text elsewhere, which may have another origin; what notes know is in the line.
        place = change.target if change.action == "undo" else change.note.removeprefix("from ")
        if change.action in _RESTORES and (place, text) in self.known:
            earlier = self.known[place, text]
            known = earlier if change.action == "undo" else replace(earlier, confirmed=at)
        elif change.action in _BY_HAND and ancestor is not None:
            known = replace(ancestor, confirmed=at)
        elif change.action in _BY_HAND or change.action == "found":
            known = self.known.get((change.target, text), known)
        self._by_handle[change.target, handle(text)] = text
        self.known[change.target, text] = known

    def _update(self, target: Target, name: str, **fields: Any) -> None:
        text = self._by_handle.get((target, name))
        if text is not None:
            self.known[target, text] = replace(self.known[target, text], **fields)


def _read_history(facts: Mapping[str, str]) -> dict[str, Any]:
    """The fields that `EntryFacts.history` describes; nothing if a person has edited them so that there is no time."""
    written = seconds_of(facts.get("at", ""))
    if written is None:
        return {}
    texts = {name: facts.get(name, "") for name in ("actor", "session")}
    return {"written": written, "confirmed": seconds_of(facts.get("confirmed", "")), **texts}


def pair_alike(old: Sequence[str], new: Sequence[str], only_one: bool = False) -> dict[str, str]:
    """Which of the new texts is which of the old ones reworded; with `only_one`, a single pair needs no like words."""
    if only_one and len(old) == len(new) == 1:
        return {new[0]: old[0]}
    left = {text: _words(text) for text in old}
    pairs: dict[str, str] = {}
    for text in new:
        words = _words(text)
        shares = [(len(words & others) / (max(len(words), len(others)) or 1), other) for other, others in left.items()]
        share, best = max(shares, default=(0.0, ""))
        if share >= _ALIKE:
            pairs[text] = best
            del left[best]
    return pairs


def _time_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def seconds_of(at: str) -> float | None:
    """The time of a change or a note; None if a person has edited it so that it is no time."""
    try:
        return datetime.fromisoformat(at.replace("Z", "+00:00")).astimezone(UTC).timestamp()
    except ValueError:
        return None


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def show_days(texts: Sequence[str], read: Callable[[], Iterable[EntryFacts]]) -> list[str]:
    """The texts of entries as a reader sees them (`EntryFacts.shown`); facts are read only if a text needs its day."""
    if not any(map(names_relative_time, texts)):
        return list(texts)
    shown = {each.entry.visible_text: each.shown for each in read()}
    return [shown.get(text, text) for text in texts]


def texts_expired(facts: Iterable[EntryFacts]) -> frozenset[str]:
    """The texts of the entries whose last day is over."""
    return frozenset(each.entry.text for each in facts if each.expired)


def choose_leaving(
    facts: Sequence[EntryFacts], uses: Mapping[str, Use], stay: Set[str | None], surplus: float
) -> list[EntryFacts]:
    """The entries of least use whose size is at least the surplus, or all that may leave; never those of `stay`.

    Expired ones first, then what untrusted text suggested, then those that conversations used least, and among these
    the oldest. Who the user is and what they prefer never leaves by itself.
    """
    may_leave = [
        each for each in facts if each.category not in ("identity", "preference") and each.entry.text not in stay
    ]
    may_leave.sort(
        key=lambda each: (
            not each.expired, not each.sources, *astuple(uses.get(each.entry.handle, NO_USE)), each.checked_at,
        )
    )  # fmt: skip
    leaving: list[EntryFacts] = []
    for each in may_leave:
        if surplus <= 0:
            break
        leaving.append(each)
        surplus -= len(each.entry.text) + len(ENTRY_DELIMITER)
    return leaving
