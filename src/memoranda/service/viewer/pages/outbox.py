"""Outbox: what external memories have not received yet, why a delivery failed, and a button that tries again."""

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from memoranda.errors import StorageError
from memoranda.external.outbox.outbox import Outbox
from memoranda.service.viewer.conversation_lists import find_recorded
from memoranda.service.viewer.page import Page, PageRequest, Redirect, Reply, View, page_url

PAGE_SIZE = 50
_PATH = "/outbox"


def read_outbox(outbox: Outbox, user: str | None, configured: Sequence[str], after: int = 0) -> dict[str, Any]:
    """What waits for the providers of a user: the backlog of each, and one page of the jobs in order."""
    scope = user or ""
    try:
        jobs = outbox.list_jobs(scope, PAGE_SIZE + 1, after=after)
        names = dict.fromkeys([*configured, *(job.provider for job in jobs)])
        backlogs = {name: outbox.backlog(name, scope) for name in names}
    except StorageError as error:
        return {"providers": (), "jobs": (), "problem": str(error)}
    return {
        "providers": [
            {"name": name, "backlog": backlog, "configured": name in configured} for name, backlog in backlogs.items()
        ],
        "jobs": jobs[:PAGE_SIZE],
        # Where the next page begins.
        "later": jobs[PAGE_SIZE - 1].id if len(jobs) > PAGE_SIZE else 0,
        "now": time.time(),
        "problem": "",
    }


def _open_outbox(request: PageRequest) -> "closing[Outbox]":
    return closing(Outbox(request.memory.home.root, server_url=request.memory.services.server_url))


def show(request: PageRequest) -> View:
    with _open_outbox(request) as outbox:
        page = read_outbox(outbox, request.user, request.memory.config.providers, request.number("after", 0))
    recorded = find_recorded(request, (job.session_id for job in page["jobs"]))
    return View("outbox.html", "Outbox", {"page": page, "can_write": request.may("curate")}, recorded=recorded)


def retry(request: PageRequest) -> Reply:
    """Let deliveries that were given up be tried again."""
    provider = request.form.get("provider", "")
    with _open_outbox(request) as outbox:
        count = outbox.retry_failed(provider, request.user or "")
    request.audit("outbox.retry", provider[:80])
    noun = "delivery" if count == 1 else "deliveries"
    return Redirect(page_url(_PATH), f"{count:,} {noun} will be tried again when {provider[:80]} next starts.")


PAGE = Page("outbox", _PATH, show, retry, label="Outbox")
