"""Explains an empty search: either nothing matches, or the filters exclude it.

This takes further searches, so it runs only when there is no result.
"""

from dataclasses import replace

from memoranda.search import guidance
from memoranda.search.index.postings import Filters
from memoranda.search.request import SearchRequest, echo_input, echo_list
from memoranda.search.search import SearchResult
from memoranda.search.searchable_store import SearchableStore
from memoranda.support.tool import JsonObject

_MAX_NAME_CHARS = 60
_MAX_NAMES_CHARS = 300


def impossible_filter(
    db: SearchableStore, request: SearchRequest, projects: frozenset[str] | None
) -> JsonObject | None:
    """The explanation for filters that nothing can pass; None if something can."""
    if projects is not None and not projects:
        return _blame(guidance.NO_PROJECT, "project")
    if request.since is not None and request.until is not None and request.since > request.until:
        return _blame(guidance.NO_TIME, "since", "until")
    if request.sources:
        known = db.usage.statistics()["by_source"]
        if unknown := sorted(request.sources.difference(known)):
            names = ", ".join(echo_list(known, _MAX_NAMES_CHARS))
            explanation = guidance.NO_SOURCE.format(echo_input(unknown[0], _MAX_NAME_CHARS))
            return _blame(f"{explanation} There are: {names}." if names else explanation, "source")
    return None


def explain_empty(
    db: SearchableStore, request: SearchRequest, filters: Filters, result: SearchResult, current: str | None
) -> JsonObject:
    """A `message` that says why nothing was found, and `left_out_by`, the filters that caused it, if any did."""
    if not result.terms:
        return {"message": guidance.NO_WORDS}
    if (explanation := impossible_filter(db, request, filters.projects)) is not None:
        return explanation
    if set(result.missing).issuperset(result.terms):
        return {"message": guidance.NOTHING}
    return _Retry(db, request.query, current).find_cause(filters)


class _Retry:
    """Repeats one query with fewer filters."""

    def __init__(self, db: SearchableStore, query: str, current: str | None) -> None:
        self._db = db
        self._query = query
        self._current = db.conversations.conversation_of(current) if current else None

    def find_cause(self, filters: Filters) -> JsonObject:
        visible = Filters(filters.scope)
        if not self._finds(visible, with_current=True):
            return {"message": guidance.NOTHING}
        wider = _widen_each(filters)
        if single := [name for name, filters_without in wider.items() if self._finds(filters_without)]:
            return _blame(guidance.LEFT_OUT.format(" or ".join(f"`{name}`" for name in single)), *single)
        if self._finds(replace(filters, excluded_sources=frozenset())):
            hidden = ", ".join(echo_list(sorted(filters.excluded_sources), _MAX_NAMES_CHARS))
            return _blame(guidance.HIDDEN.format(hidden), "hidden_sources")
        if self._finds(replace(filters, without=frozenset()), with_current=True):
            return _blame(guidance.ONLY_IN_CONTEXT, "context")
        if wider:
            return _blame(guidance.LEFT_OUT.format(" and ".join(f"`{name}`" for name in wider)), *wider)
        return {"message": guidance.NOTHING}

    def _finds(self, filters: Filters, *, with_current: bool = False) -> bool:
        """Whether the query finds anything; the title of the current conversation counts only `with_current`."""
        current = None if with_current or self._current is None else self._current.conversation_id
        hits = self._db.find(self._query, filters, limit=2).hits
        return any(hit.message_id is not None or hit.conversation_id != current for hit in hits)


def _widen_each(filters: Filters) -> dict[str, Filters]:
    """For each filter of the request, by the name of its argument, the filters without it."""
    wider = {
        "since": replace(filters, since=None),
        "until": replace(filters, until=None),
        "role_filter": replace(filters, roles=None, titles=True),
        "source": replace(filters, sources=None),
        "project": replace(filters, projects=None),
    }
    return {name: filters_without for name, filters_without in wider.items() if filters_without != filters}


def _blame(message: str, *names: str) -> JsonObject:
    return {"message": message, "left_out_by": list(names)}
