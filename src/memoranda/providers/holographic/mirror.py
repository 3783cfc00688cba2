"""Copies of the entries of curated memory, which follow what happens to the entries.

A delivery may come twice, so everything here can be done twice. Only copies are ever changed or removed: a fact that
was stored by itself stays, though it says the same.
"""

import logging

from memoranda.providers.holographic.fact import Fact, FactError, Provenance, content_key
from memoranda.providers.holographic.fact_store import LONGEST_CONTENT, FactStore

_log = logging.getLogger(__name__)


def mirror(store: FactStore, action: str, target: str, content: str, old_text: str, origin: Provenance) -> None:
    """Do to the copy what was done to the entry: add, replace or remove."""
    content = content.encode("utf-8", "replace").decode().strip()[:LONGEST_CONTENT]
    if action == "add":
        _add(store, target, content, origin)
    elif action == "replace":
        old = _copy(store, target, old_text)
        if old is None or not content:
            _add(store, target, content, origin)
        elif content_key(old.content) != content_key(content):
            try:
                store.update(old.fact_id, content=content)
            except FactError:
                # Another fact says it already.
                store.remove(old.fact_id)
    elif action == "remove":
        old = _copy(store, target, old_text or content)
        if old is not None:
            store.remove(old.fact_id)
    else:
        _log.warning("a memory write %r is not mirrored", action)


def _add(store: FactStore, target: str, content: str, origin: Provenance) -> None:
    if content:
        category = "user_pref" if target == "user" else "general"
        store.add(content, category=category, provenance=origin, mirror_of=target)


def _copy(store: FactStore, target: str, text: str) -> Fact | None:
    """The copy of the entry that a text is from. Several are possible only when a write was missed: then none."""
    if not text:
        return None
    found = store.find_mirrored(target, text.encode("utf-8", "replace").decode())
    if len(found) > 1:
        _log.warning("%d facts are copies of an entry with the same text; they stay as they are", len(found))
    return found[0] if len(found) == 1 else None
