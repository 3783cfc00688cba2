"""Mirrors curated memory: keeps a fact for each entry, and changes or removes it with the entry.

A notification may be delivered twice, so every operation can be repeated. Only mirrored facts are changed or removed; a
fact that was stored separately stays, even with the same text.
"""

import logging

from memoranda.external.holographic.fact import Fact, FactError, Provenance, content_key
from memoranda.external.holographic.fact_store import MAX_CONTENT_CHARS, FactStore

_log = logging.getLogger(__name__)


def mirror(store: FactStore, action: str, target: str, content: str, old_text: str, origin: Provenance) -> None:
    """Applies the write of an entry (add, replace or remove) to its mirrored fact."""
    content = content.encode("utf-8", "replace").decode().strip()[:MAX_CONTENT_CHARS]
    if action == "add":
        _add(store, target, content, origin)
    elif action == "replace":
        old = _find_mirror(store, target, old_text)
        if old is None or not content:
            _add(store, target, content, origin)
        elif content_key(old.content) != content_key(content):
            try:
                store.update(old.fact_id, content=content)
            except FactError:
                # Another fact already has this text.
                store.remove(old.fact_id)
    elif action == "remove":
        old = _find_mirror(store, target, old_text or content)
        if old is not None:
            store.remove(old.fact_id)
    else:
        _log.warning("The memory write %r was not mirrored, because its action is unknown", action)


def _add(store: FactStore, target: str, content: str, origin: Provenance) -> None:
    if content:
        category = "user_pref" if target == "user" else "general"
        store.add(content, category=category, provenance=origin, mirror_of=target)


def _find_mirror(store: FactStore, target: str, text: str) -> Fact | None:
    """The mirrored fact of an entry; None if several match, which happens only after a missed write."""
    if not text:
        return None
    found = store.find_mirrored(target, text.encode("utf-8", "replace").decode())
    if len(found) > 1:
        _log.warning("%d facts mirror an entry with the same text; none of them was changed", len(found))
    return found[0] if len(found) == 1 else None
