"""Facts: what the holographic provider keeps, with its trust, and facts that contradict each other."""

from dataclasses import dataclass

from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_links import find_recorded
from memoranda.service.viewer.external.facts import FactPage, read_facts
from memoranda.service.viewer.page import Page, PageRequest, View

_PROVIDER = "holographic"


@dataclass(frozen=True, slots=True)
class FactsView:
    """What the page shows; `in_use` says whether the provider is configured."""

    page: FactPage
    in_use: bool
    category: str
    words: str
    skip: int


def show(request: PageRequest) -> View:
    """The page; raises Problem 404 for an unknown category."""
    category, words, skip = request.query.get("category", ""), request.query.get("words", ""), request.number("skip", 0)
    memory = request.memory
    page = read_facts(
        memory.home.root,
        request.user,
        category=category or None,
        words=words[:200],
        skip=skip,
        compare=bool(request.query.get("compare")),
        server_url=memory.services.server_url,
    )
    if category and category not in page.categories:
        raise Problem(404, "not_found", "There is no such category of facts.")
    in_use = _PROVIDER in memory.config.providers
    compared = [fact for pair in page.contradictions or () for fact in (pair.newer, pair.older)]
    recorded = find_recorded(request, (fact.provenance.session_id for fact in (*page.facts, *compared)))
    view = FactsView(page, in_use, category, words[:200], skip)
    return View("facts.html", "Facts", view, recorded=recorded)


PAGE = Page("facts", "/facts", show, label="Facts")
