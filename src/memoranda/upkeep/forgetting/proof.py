"""Proves that something is forgotten: searches every store again, and reads every byte of the home.

The bytes of a file may still have the text although no row has it: in free pages, or in a log that another program is
reading. Where another user has the same text, its bytes are in the same files; they are not counted as left.
"""

import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.forgetting.byte_search import ByteSearch, search_home
from memoranda.upkeep.forgetting.home_files import COMPANIONS
from memoranda.upkeep.forgetting.report import ForgetPlace
from memoranda.upkeep.forgetting.scope_contents import ScopeContents

_VACUUM_SECONDS = 20.0
_MIN_EVIDENCE = 4
_SHARED = ("state.", "checkpoints.db", "home.db")
_IN_FREE_SPACE = (
    "in free pages or the log of the file, which another program is reading; run the command again when it has ended"
)
_OTHERS = "Other users have the same text; what belongs to them was not changed."

_INDEX = re.compile(r"(?:state|server-\w+)\.index\.db\.")
_ITEM_INDEX = re.compile(r"(?:state|server-\w+)\.index\.items\.db\.")
_USER_INDEX = re.compile(r"[0-9a-f]{40}\.index\.db\.")

OpenScope = tuple[ScopeContents, SessionDB | None]


@dataclass(slots=True)
class Proof:
    """What was read, and what is left."""

    left: list[ForgetPlace] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: int = 0
    bytes: int = 0


def prove(opened: Sequence[OpenScope], matcher: TextMatcher, words: Sequence[str]) -> Proof:
    """Search everything again; a file whose rows no longer have the text is rewritten if its bytes have it."""
    proof = Proof()
    for contents, _ in opened:
        proof.left += [place for place in contents.find(matcher) if place.area != "outside"]
    for root in _roots(opened):
        found = _search(root, opened, matcher, words)
        proof.files += found.files
        proof.bytes += found.bytes
        proof.problems += found.unreadable
        others = _others_have(opened, matcher)
        explained = _explained(proof.left)
        for name, count in found.found.items():
            if matcher.shortest < _MIN_EVIDENCE and _is_shared(name):
                # So few bytes are in numbers and ids by chance; there, only the rows count.
                continue
            if _is_ours(root / name, opened) and not (others and _is_shared(name)) and _owner_of(name) not in explained:
                proof.left.append(ForgetPlace("bytes", name, count, "keep", _IN_FREE_SPACE))
        proof.left += [ForgetPlace("index", name, 1, "keep", _IN_FREE_SPACE) for name in found.stale_words]
        if others and opened[0][0].scope.user is None:
            proof.notes.append(_OTHERS)
    return proof


def prove_deleted(opened: Sequence[OpenScope], passages: Sequence[str], session_ids: Sequence[str]) -> Proof:
    """Check that sessions are gone from the record, and that no file has their lines, except as part of others."""
    proof = Proof()
    matcher = TextMatcher(passages)
    for _, db in opened:
        existing = [each for each in session_ids if db is not None and db.get_session(each) is not None]
        proof.left += [ForgetPlace("record", f"session {each}", 1, "keep", "it still exists") for each in existing]
    for root in _roots(opened):
        found = search_home(root, passages)
        proof.files += found.files
        proof.bytes += found.bytes
        proof.problems += found.unreadable
        repeated = _is_in_record(opened, matcher)
        for name, count in found.found.items():
            if not _is_ours(root / name, opened):
                continue
            if _is_shared(name) and not repeated:
                proof.left.append(ForgetPlace("bytes", name, count, "keep", _IN_FREE_SPACE))
            elif not _is_shared(name):
                proof.notes.append(f"{name} has lines of the conversation; it is not a part of it, and stays.")
        if repeated:
            proof.notes.append("Other conversations repeat lines of it; they stay.")
    return proof


def _is_in_record(opened: Sequence[OpenScope], matcher: TextMatcher) -> bool:
    return bool(matcher) and any(
        db is not None
        and (
            db.scoped(Scope.everyone()).passages.find(matcher)
            or db.scoped(Scope.everyone()).item_passages.find(matcher)
        )
        for _, db in opened
    )


def _search(root: Path, opened: Sequence[OpenScope], matcher: TextMatcher, words: Sequence[str]) -> ByteSearch:
    """Read every byte; where something is left in free space, rewrite the files and read again."""
    found = search_home(root, matcher.texts, words, whole_words=matcher.whole_words)
    if not found.found and not found.stale_words:
        return found
    for contents, db in opened:
        contents.queue.erase_removed()
        if db is None:
            continue
        names = [name.rpartition("/")[2] for name in (*found.found, *found.stale_words)]
        if any(_ITEM_INDEX.match(name) for name in names):
            db.item_index.compact()
        if any(_USER_INDEX.match(name) for name in names):
            db.remove_user_indexes()
        if any(_INDEX.match(name) for name in names):
            db.scoped(Scope.everyone()).index.compact()
        if any(name.startswith("state.db") for name in found.found) and not _others_have(opened, matcher):
            db.engine.vacuum(max_seconds=_VACUUM_SECONDS)
            db.empty_log()
    return search_home(root, matcher.texts, words, whole_words=matcher.whole_words)


def _others_have(opened: Sequence[OpenScope], matcher: TextMatcher) -> bool:
    """Whether rows of users outside the scopes have the text."""
    databases = {id(db): db for _, db in opened if db is not None}
    for db in databases.values():
        scopes = [contents.scope for contents, other in opened if other is db]
        users = {scope.user for scope in scopes}
        everyone = db.scoped(Scope.everyone())
        for passage in everyone.passages.find(matcher):
            row = everyone.get_session(passage.session_id)
            if row is not None and row["user_id"] not in users:
                return True
        if any(passage.user_id not in users for passage in everyone.item_passages.find(matcher)):
            return True
    all_users = {contents.scope.user for contents, _ in opened}
    return any(contents.others_have(matcher, all_users) for contents, _ in opened)


def _roots(opened: Sequence[OpenScope]) -> list[Path]:
    """The directories to read: profiles are below the first one, if that is the default profile."""
    roots = list(dict.fromkeys(contents.scope.home.root for contents, _ in opened))
    return [root for root in roots if not any(other != root and root.is_relative_to(other) for other in roots)]


def _is_ours(path: Path, opened: Sequence[OpenScope]) -> bool:
    """Whether a file belongs to one of the scopes, or is a database of all users."""
    for contents, _ in opened:
        scope = contents.scope
        if path.is_relative_to(scope.home.root) and (scope.owns(path) or _is_shared(path.name)):
            return True
    return False


def _is_shared(name: str) -> bool:
    """Whether a file contains rows of several users."""
    base = _owner_of(name).rpartition("/")[2]
    return base.startswith(_SHARED) or base.endswith(".zip")


def _owner_of(name: str) -> str:
    """The file that a log or another file of SQLite belongs to."""
    for ending in COMPANIONS:
        name = name.removesuffix(ending)
    return name


def _explained(left: Sequence[ForgetPlace]) -> set[str]:
    """The files that are listed as left already."""
    names = {place.where for place in left}
    return names | ({"state.db"} if any(place.area in ("record", "items") for place in left) else set())
