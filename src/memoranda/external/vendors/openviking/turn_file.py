"""A turn as a file: when it was said, the question and the answer; and the hits of a search as recalled items."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from memoranda.external.vendors.openviking.client import score_of
from memoranda.external.vendors.openviking.uris import OpenVikingUris, category_of
from memoranda.external.vendors.recalled_item import RecalledItem

_TIME_LINE = re.compile(r"\A(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\n\n")


def format_turn(user: str, assistant: str, time: float) -> str:
    """The content of a turn's file; the same for each attempt to deliver it."""
    return f"{_timestamp(time)}\n\nUser: {user.strip()}\n\nAssistant: {assistant.strip()}\n"


def format_delegation(task: str, result: str, time: float) -> str:
    return f"{_timestamp(time)}\n\nDelegated task: {task.strip()}\n\nResult: {result.strip()}\n"


def recalled_items(
    hits: Iterable[Mapping[str, Any]], uris: OpenVikingUris, min_score: float = 0.0
) -> list[RecalledItem]:
    """The hits that are files of this user with a sufficient score.

    Summaries of directories are no memories: without this, they take the first places of every search.
    """
    items: list[RecalledItem] = []
    for hit in hits:
        uri, text = str(hit.get("uri") or ""), str(hit.get("abstract") or "")
        if hit.get("level") not in (2, None) or not uris.contains(uri) or score_of(hit) < min_score:
            continue
        said = _TIME_LINE.match(text)
        time = said[1] if said else None
        items.append(RecalledItem(text[said.end() :] if said else text, time, score_of(hit), uri, category_of(uri)))
    return items


def _timestamp(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
