"""Outbox: what external memories have not received yet, why a delivery failed, and a button that tries again."""

import time
from collections.abc import Sequence
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.external.outbox.jobs import Backlog, ListedJob
from memoranda.external.outbox.outbox import Outbox
from memoranda.service.viewer.conversation_lists import find_recorded
from memoranda.service.viewer.page import Page, PageRequest, Redirect, Reply, View, page_url
from memoranda.support.lazy_dataclass import dataclass

PAGE_SIZE = 50
_PATH = "/outbox"


@dataclass(frozen=True, slots=True)
class ProviderBacklog:
    """The undelivered jobs of one provider; `configured` says that the provider is in use."""

    name: str
    backlog: Backlog
    configured: bool


@dataclass(frozen=True, slots=True)
class OutboxPage:
    """The backlog of each provider, and one page of the jobs in order; `later` is where the next page begins."""

    providers: tuple[ProviderBacklog, ...] = ()
    jobs: tuple[ListedJob, ...] = ()
    later: int = 0
    now: float = 0.0
    problem: str = ""


def read_outbox(
    home: Path, user: str | None, configured: Sequence[str], *, after: int = 0, server_url: str = ""
) -> OutboxPage:
    """What waits for the providers of a user, None for the home's owner."""
    scope = user or ""
    outbox = Outbox(home, server_url=server_url)
    try:
        jobs = outbox.list_jobs(scope, PAGE_SIZE + 1, after=after)
        names = dict.fromkeys([*configured, *(job.provider for job in jobs)])
        backlogs = [ProviderBacklog(name, outbox.backlog(name, scope), name in configured) for name in names]
    except StorageError as error:
        return OutboxPage(problem=str(error))
    finally:
        outbox.close()
    shown = tuple(jobs[:PAGE_SIZE])
    later = shown[-1].id if len(jobs) > PAGE_SIZE else 0
    return OutboxPage(tuple(backlogs), shown, later, time.time())


def retry_deliveries(home: Path, user: str | None, provider: str, server_url: str = "") -> int:
    """Let parked jobs of a provider be delivered again; the next session does so. Returns how many there were."""
    outbox = Outbox(home, server_url=server_url)
    try:
        return outbox.retry_failed(provider, user or "")
    finally:
        outbox.close()


def show(request: PageRequest) -> View:
    memory = request.memory
    page = read_outbox(
        memory.home.root,
        request.user,
        memory.config.providers,
        after=request.number("after", 0),
        server_url=memory.services.server_url,
    )
    recorded = find_recorded(request, (job.session_id for job in page.jobs))
    return View("outbox.html", "Outbox", {"page": page, "can_write": request.may("curate")}, recorded=recorded)


def retry(request: PageRequest) -> Reply:
    """Let deliveries that were given up be tried again."""
    provider = request.form.get("provider", "")
    memory = request.memory
    count = retry_deliveries(memory.home.root, request.user, provider, memory.services.server_url)
    request.audit("outbox.retry", provider[:80])
    noun = "delivery" if count == 1 else "deliveries"
    return Redirect(page_url(_PATH), f"{count:,} {noun} will be tried again when {provider[:80]} next starts.")


PAGE = Page("outbox", _PATH, show, retry, label="Outbox")
