"""Joins pages of `session_search` for people and programs, which may list more than a model."""

from collections.abc import Callable, Mapping
from typing import Any

from memoranda.search.request import MAX_RESULTS
from memoranda.support.tool import JsonObject

MAX_LISTED = 50


def search_pages(call: Callable[[Mapping[str, Any]], JsonObject], arguments: Mapping[str, Any]) -> JsonObject:
    """Calls the tool; for more conversations than fit one answer, until `limit` are listed or there are no more."""
    limit: int = arguments["limit"]
    answer = call({**arguments, "limit": min(limit, MAX_RESULTS)})
    while limit > MAX_RESULTS and answer.get("cursor") and 0 < len(answer.get("results", ())) < limit:
        left = limit - len(answer["results"])
        page = call({**arguments, "limit": min(left, MAX_RESULTS), "cursor": answer["cursor"]})
        if not page["success"] or not page["results"]:
            # The cursor of what is listed already stays, so that a caller can continue from there.
            break
        del answer["cursor"]
        results = [*answer["results"], *page["results"]]
        # Each page has its own note about missing summaries.
        notes = dict.fromkeys(each["note"] for each in (answer, page) if "note" in each)
        answer |= {"note": " ".join(notes)} if notes else {}
        answer |= {"cursor": page["cursor"]} if "cursor" in page else {}
        answer |= {"results": results, "count": len(results)}
    return answer
