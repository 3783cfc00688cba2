"""What another machine has forgotten is forgotten here by the path of `memoranda forget`: in every part of the home.

The text itself never travels. This machine finds it by comparing its own message with the one that has marks in place
of the text, and forgets only what explains the marks exactly. Until that is done, `home.db` has the text, encoded.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memoranda.support.home import Home
from memoranda.support.json_object import parse_json
from memoranda.support.text_matcher import MARK, TextMatcher
from memoranda.upkeep.forgetting.eraser import SYNC_NOTE, Eraser
from memoranda.upkeep.sync.run import Run

_MIN_CHARS = 3
_FORGET = "forget "


def removed_matcher(old: str, new: str) -> TextMatcher | None:
    """What was replaced with marks in a text; None if that is not certain, or too short to look for elsewhere."""
    pieces = new.split(MARK)
    count, chars = len(pieces) - 1, len(old) - sum(map(len, pieces))
    if not count or MARK in old or chars <= 0 or chars % count:
        return None
    start = len(pieces[0])
    text = old[start : start + chars // count]
    for whole_words in (True, False):
        matcher = TextMatcher([text], whole_words=whole_words)
        if matcher and matcher.shortest >= _MIN_CHARS and matcher.replace(old).value == new:
            return matcher
    return None


def hides(old: Any, new: Any) -> bool:
    """Return whether a text is another one with marks in place of some of it, so that it shows nothing more."""
    if not isinstance(old, str) or not isinstance(new, str) or MARK not in new or old == new:
        return False
    first, *middle, last = new.split(MARK)
    if len(first) + len(last) >= len(old) or not old.startswith(first) or not old.endswith(last):
        return False
    at, end = len(first), len(old) - len(last)
    for piece in middle:
        # Something stands before each piece in place of the mark.
        at = old.find(piece, at + 1, end) + len(piece) if old.find(piece, at + 1, end) >= 0 else end
    return at < end


def has_forgotten(old: Any, new: Any) -> bool:
    """Return whether a JSON value has marks in place of texts of another one."""
    return any(hides(*texts) for texts in _texts(old, new))


def note_removed_texts(run: Run, pairs: Iterable[tuple[Any, Any]]) -> None:
    """Make durable what is to be forgotten here, from values before and after; called before they are replaced."""
    texts = [pair for old, new in pairs for pair in _texts(old, new)]
    found = [matcher for old, new in texts if (matcher := removed_matcher(old, new)) is not None]
    for matcher in found:
        _note(run, matcher.texts[0], matcher.whole_words)
    if found:
        run.commit()


def note_removed_entry(run: Run, text: str) -> None:
    """Make durable that an entry is to be forgotten here."""
    if TextMatcher([text]).shortest >= _MIN_CHARS:
        _note(run, text, whole_words=False)
        run.commit()


def forget_here(run: Run) -> bool:
    """Forget the texts that were noted, in all parts of this home; whether there were any."""
    noted = {name: run.tables.value(f"{_FORGET}{name}") for name in run.tables.names(_FORGET)}
    if not noted:
        return False
    run.progress("Forgetting what another machine has forgotten")
    run.commit()
    for whole_words in (False, True):
        texts = [b64decode(text).decode() for text, whole in noted.items() if bool(whole) == whole_words]
        if texts:
            report = Eraser(Home(run.root)).forget_text(TextMatcher(texts, whole_words=whole_words))
            run.report.notes += [f"Not forgotten here yet: {problem}" for problem in report.problems]
            run.report.notes += [f"Not forgotten here: {place.area}, {place.where}" for place in report.left]
    run.reload()
    run.tables.drop_values(_FORGET)
    run.report.count(run.report.received, "forgotten texts", len(noted))
    run.must_rewrite()
    run.has_forgotten = True
    return True


def take_note(run: Run) -> None:
    """Write the bundles again if something was forgotten here since the last run, whatever it was."""
    note: Path = run.root / SYNC_NOTE
    if note.exists():
        run.must_rewrite()
        note.unlink(missing_ok=True)


def _note(run: Run, text: str, whole_words: bool) -> None:
    # Encoded, so that forgetting does not find it here before it is done everywhere else.
    name = b64encode(text.encode("utf-8", "surrogatepass")).decode()
    run.tables.set_value(f"{_FORGET}{name}", "whole words" if whole_words else "")


def _texts(old: Any, new: Any) -> Iterator[tuple[str, str]]:
    """The texts at the same places of two JSON values, also in texts that are JSON."""
    if isinstance(old, str) and isinstance(new, str):
        if MARK in new and old != new:
            inner = _parsed(old), _parsed(new)
            yield from _texts(*inner) if None not in inner else iter([(old, new)])
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in old.keys() & new.keys():
            yield from _texts(old[name], new[name])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from _texts(one, other)


def _parsed(text: str) -> Any:
    return parse_json(text) if text[:1] in ("{", "[") else None
