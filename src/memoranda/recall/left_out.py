"""Why a search found nothing: because nobody said it, or because of what the search was limited to.

That takes further searches, so it is asked only when there is nothing else to say.
"""

from dataclasses import replace

from memoranda.index.postings import Filter
from memoranda.recall import guidance
from memoranda.recall.request import Request
from memoranda.recall.search import Found
from memoranda.recall.session_db import SessionDB
from memoranda.recall.sizes import repeated, some_of
from memoranda.tools import JsonObject

_NAME = 60
_NAMES = 300


def impossible(db: SessionDB, request: Request, projects: frozenset[str] | None) -> JsonObject | None:
    """What to say when a request is limited to something that there is not; None when it is not."""
    if projects is not None and not projects:
        return _blaming(guidance.NO_PROJECT, "project")
    if request.since is not None and request.until is not None and request.since > request.until:
        return _blaming(guidance.NO_TIME, "since", "until")
    if request.sources:
        known = db.statistics()["by_source"]
        if unknown := sorted(request.sources.difference(known)):
            there = ", ".join(some_of(known, _NAMES))
            said = guidance.NO_SOURCE.format(repeated(unknown[0], _NAME))
            return _blaming(f"{said} There are: {there}." if there else said, "source")
    return None


def why_nothing(db: SessionDB, request: Request, among: Filter, found: Found, current: str | None) -> JsonObject:
    """A `message` that says why nothing was found, and `left_out_by`, what to blame for it, if anything is."""
    if not found.terms:
        return {"message": guidance.NO_WORDS}
    if (said := impossible(db, request, among.projects)) is not None:
        return said
    if set(found.missing).issuperset(found.terms):
        return {"message": guidance.NOTHING}
    return _Search(db, request.query, current).blame(among)


class _Search:
    """One query, asked again with less to limit it."""

    def __init__(self, db: SessionDB, query: str, current: str | None) -> None:
        self._db = db
        self._query = query
        self._place = db.conversation_of(current) if current else None

    def blame(self, among: Filter) -> JsonObject:
        visible = Filter(among.scope)
        if not self._finds(visible, with_current=True):
            return {"message": guidance.NOTHING}
        given = _without_each(among)
        if alone := [name for name, each in given.items() if self._finds(each)]:
            return _blaming(guidance.LEFT_OUT.format(" or ".join(f"`{name}`" for name in alone)), *alone)
        if self._finds(replace(among, excluded_sources=frozenset())):
            hidden = ", ".join(some_of(sorted(among.excluded_sources), _NAMES))
            return _blaming(guidance.HIDDEN.format(hidden), "hidden_sources")
        if self._finds(replace(among, without=frozenset()), with_current=True):
            return _blaming(guidance.ONLY_IN_CONTEXT, "context")
        if given:
            return _blaming(guidance.LEFT_OUT.format(" and ".join(f"`{name}`" for name in given)), *given)
        return {"message": guidance.NOTHING}

    def _finds(self, among: Filter, *, with_current: bool = False) -> bool:
        """Whether anything is found; the title of the conversation that is going on counts only `with_current`."""
        here = None if with_current or self._place is None else self._place.conversation_id
        hits = self._db.find(self._query, among, limit=2).hits
        return any(hit.message_id is not None or hit.conversation_id != here for hit in hits)


def _without_each(among: Filter) -> dict[str, Filter]:
    """The filter without each of the things that were asked for, by the names of the arguments."""
    wider = {
        "since": replace(among, since=None),
        "until": replace(among, until=None),
        "role_filter": replace(among, roles=None, titles=True),
        "source": replace(among, sources=None),
        "project": replace(among, projects=None),
    }
    return {name: each for name, each in wider.items() if each != among}


def _blaming(message: str, *names: str) -> JsonObject:
    return {"message": message, "left_out_by": list(names)}
