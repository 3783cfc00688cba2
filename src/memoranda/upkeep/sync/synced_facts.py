"""Facts of the Holographic provider as things to synchronise, each named by the digest of its text.

They travel whether or not the provider is switched on here: who switches it on later has them. How often a fact was
returned is each machine's own; the store makes vectors and links from the text.
"""

import math
from contextlib import closing
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError
from memoranda.external.holographic.fact_store import CATEGORIES, MAX_CONTENT_CHARS, FactStore, content_key
from memoranda.external.holographic.user_facts import (
    NUMBERS,
    TEXTS,
    facts_path,
    put_fact,
    read_facts,
    remove_fact,
    stored_facts,
)
from memoranda.support.canonical_text import unstorable_character
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.things import State
from memoranda.upkeep.sync.versions import digest_of

_MAX_TEXT_CHARS = 10_000
_MAX_NAMES = 1_000


class Facts:
    """The facts of the owner of one home."""

    name = "fact"
    noun = "facts"

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, run: Run) -> dict[str, State]:
        with stored_facts(self._root, None) as store:
            return {} if store is None else read_facts(store)

    def write(self, run: Run, name: str, state: State) -> str:
        try:
            with closing(FactStore(facts_path(self._root, ""))) as store:
                if state is None:
                    remove_fact(store, name)
                else:
                    put_fact(store, name, state)
        except StorageError as error:
            return str(error)
        return ""

    def combine(self, earlier: State, later: State) -> State:
        return None if earlier is None or later is None else later

    def digest(self, state: State) -> str:
        """Without the entities: which of them a text mentions depends on those that a store knows."""
        return digest_of({field: value for field, value in state.items() if field != "entities"})

    @staticmethod
    def check(name: str, state: State) -> None:
        if state is None:
            return
        if set(state) != {*TEXTS, *NUMBERS, "entities"} or state["category"] not in CATEGORIES:
            raise ValueError("a fact")
        if not all(_is_text(state[field]) for field in TEXTS) or not all(_is_number(state[field]) for field in NUMBERS):
            raise ValueError("a field of a fact")
        if not 0 < len(state["content"]) <= MAX_CONTENT_CHARS or content_key(state["content"]) != name:
            raise ValueError("the content of a fact")
        names = state["entities"]
        if names is not None and not (
            isinstance(names, list) and len(names) <= _MAX_NAMES and all(map(_is_text, names))
        ):
            raise ValueError("the entities of a fact")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT_CHARS and unstorable_character(value) is None


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and abs(value) < 2**53
    )
