"""`Memory.forget`: which of the four subjects a caller names, and forgetting it with the stores that are open."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from memoranda.api.services import HomeServices
from memoranda.errors import SessionError
from memoranda.home.session_db import SessionDB
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record.scope import Scope
from memoranda.support.home import Home
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.forgetting.eraser import Eraser
from memoranda.upkeep.forgetting.report import ForgetReport, ForgetSubject, Subject
from memoranda.upkeep.forgetting.scope import open_record_of


def forget(
    services: HomeServices, user: str | None, subject: ForgetSubject, *, dry_run: bool = False, all_users: bool = False
) -> ForgetReport:
    """Forget a subject for a user of a home, or only list where it is."""
    if subject.user is not None and user not in (None, subject.user):
        raise SessionError("A user can forget only their own data.")
    eraser = Eraser(
        services.home,
        user if subject.user is None else subject.user,
        all_users=all_users,
        open_sessions=partial(_open_sessions, services),
    )
    if subject.session is not None:
        ids = [subject.session]
        return eraser.find_sessions(ids) if dry_run else eraser.forget_sessions(ids)
    if subject.user is not None:
        return eraser.find_user() if dry_run else eraser.forget_user()
    kind: Subject = "text" if subject.entry is None else "entry"
    texts = [subject.text or ""] if subject.entry is None else entry_texts(services.curated_for(user), subject.entry)
    matcher = TextMatcher(texts, whole_words=subject.whole_words)
    if not matcher:
        raise SessionError("The text to forget has no visible character.")
    return eraser.find_text(matcher, kind) if dry_run else eraser.forget_text(matcher, kind)


def entry_texts(store: MemoryStore, name: str) -> list[str]:
    """The text of the entry with a handle, or that alone contains a text, and its earlier versions.

    Raises SessionError if there is none, or more than one.
    """
    entries = [entry for target in store.storage.targets() for entry in store.view(target).entries]
    found = [entry.text for entry in entries if name in (entry.handle, entry.text)]
    found = found or [entry.text for entry in entries if name and name in entry.text]
    different = list(dict.fromkeys(found))
    if len(different) != 1:
        problem = "No entry has" if not different else f"{len(different)} entries have"
        raise SessionError(
            f"{problem} the handle or the part {name[:60]!r}. 'memoranda memory list' shows all entries."
        )
    texts = different
    for change in reversed(list(store.journal.changes())):
        for edit in change.edits:
            if edit.after in texts and edit.before is not None and edit.before not in texts:
                texts.append(edit.before)
    return texts


@contextmanager
def _open_sessions(services: HomeServices, home: Home, server_url: str) -> Iterator[SessionDB]:
    """The sessions of the open home, with whatever follows them; another profile or store is opened for this."""
    if home == services.home and server_url in ("", services.record_location):
        yield services.sessions_for(None).scoped(Scope.everyone())
        return
    with open_record_of(home, server_url) as db:
        yield db
