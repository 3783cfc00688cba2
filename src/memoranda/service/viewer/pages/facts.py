"""Facts: what the holographic provider keeps, with its trust, and facts that contradict each other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError
from memoranda.external.holographic.contradictions import find_contradictions
from memoranda.external.holographic.fact_store import CATEGORIES, Fact, FactError, FactStore
from memoranda.external.holographic.user_facts import stored_facts
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_lists import find_recorded
from memoranda.service.viewer.page import Page, PageRequest, Redirect, View, page_url
from memoranda.service.viewer.text_diff import diff_words
from memoranda.support.canonical_text import digest

PAGE_SIZE = 50
_MAX_CONTRADICTIONS = 20
_MAX_FACTS = 5_000
_PROVIDER = "holographic"
_PATH = "/facts"


def read_facts(
    home: Path,
    user: str | None,
    *,
    category: str | None = None,
    words: str = "",
    skip: int = 0,
    compare: bool = False,
    server_url: str = "",
) -> dict[str, Any]:
    """The facts of a user, the newest first: those of a category, and those with all of some words, if such are given.

    `older` is how many to skip for the next page, 0 on the last one. `compare` finds those that contradict each other,
    which takes seconds for thousands of facts; without it, `contradictions` is None. `server_url` names the server that
    has them, if they are not in the home.
    """
    page: dict[str, Any] = {"facts": (), "total": 0, "older": 0, "contradictions": None, "problem": ""}
    try:
        with stored_facts(home, user, server_url) as store:
            if store is None:
                return page
            contradictions = find_contradictions(store, limit=_MAX_CONTRADICTIONS) if compare else None
            facts = [fact for fact in store.list_facts(category=category, limit=_MAX_FACTS) if _contains(words)(fact)]
    except StorageError as error:
        return page | {"problem": str(error)}
    older = skip + PAGE_SIZE if len(facts) > skip + PAGE_SIZE else 0
    page |= {"facts": facts[skip : skip + PAGE_SIZE], "total": len(facts), "older": older}
    if contradictions is not None:
        page["contradictions"] = [
            {"newer": pair.newer, "older": pair.older, "parts": diff_words(pair.older.content, pair.newer.content)}
            for pair in contradictions
        ]
    return page


def _contains(words: str) -> Callable[[Fact], bool]:
    wanted = words.casefold().split()
    return lambda fact: all(word in f"{fact.content} {' '.join(fact.entities)}".casefold() for word in wanted)


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
    if category and category not in CATEGORIES:
        raise Problem(404, "not_found", "There is no such category of facts.")
    in_use = _PROVIDER in memory.config.providers
    compared = [fact for pair in page["contradictions"] or () for fact in (pair["newer"], pair["older"])]
    recorded = find_recorded(request, (fact.provenance.session_id for fact in (*page["facts"], *compared)))
    view = {"page": page, "in_use": in_use, "category": category, "words": words[:200], "skip": skip}
    view |= {"categories": CATEGORIES, "can_write": request.may("curate"), "seen": digest}
    return View("facts.html", "Facts", view, recorded=recorded)


def change(request: PageRequest) -> Redirect:
    """Correct, rate or remove a fact; one that another program changed meanwhile stays as it is."""
    form, memory = request.form, request.memory
    action, number = form.get("action", ""), form.get("fact", "")
    with stored_facts(memory.home.root, request.user, memory.services.server_url) as store:
        fact = store.get(int(number)) if store and number.isdecimal() and len(number) < 10 else None
        if store is None or fact is None or fact.mirror_of:
            raise Problem(404, "not_found", "There is no such fact to change.")
        if digest(fact.content) != form.get("seen"):
            return Redirect(page_url(_PATH), "The fact was changed meanwhile, and stays as it is now.")
        try:
            done = _carry_out(store, fact, action, form.get("text", ""))
        except FactError as error:
            return Redirect(page_url(_PATH), f"{error} Nothing was changed.")
    request.audit(f"facts.{action}", f"fact {fact.fact_id}")
    return Redirect(page_url(_PATH), done)


def _carry_out(store: FactStore, fact: Fact, action: str, text: str) -> str:
    if action == "correct":
        store.update(fact.fact_id, content=text)
        return "Corrected. The provider uses the new text from now on."
    if action == "remove":
        store.remove(fact.fact_id)
        store.erase_removed()
        return "Removed, with what it left in the provider's files."
    if action not in ("trust", "doubt"):
        raise Problem(404, "not_found", "There is no such action.")
    before, rated = store.rate(fact.fact_id, helpful=action == "trust")
    return f"Its trust was {before:.0%} and is {rated.trust:.0%} now."


PAGE = Page("facts", _PATH, show, change, label="Facts")
