"""Outbox: what external memories have not received yet, with errors, and a button that tries again."""

from dataclasses import dataclass

from memoranda.service.viewer.conversation_links import find_recorded
from memoranda.service.viewer.external.outbox import OutboxPage, read_outbox, retry_deliveries
from memoranda.service.viewer.page import Page, PageRequest, Redirect, Reply, View, page_url

_PATH = "/outbox"


@dataclass(frozen=True, slots=True)
class OutboxView:
    """What the page shows."""

    page: OutboxPage
    can_write: bool


def show(request: PageRequest) -> View:
    """The page."""
    memory = request.memory
    page = read_outbox(
        memory.home.root,
        request.user,
        memory.config.providers,
        after=request.number("after", 0),
        server_url=memory.services.server_url,
    )
    recorded = find_recorded(request, (job.session_id for job in page.jobs))
    return View("outbox.html", "Outbox", OutboxView(page, request.may("curate")), recorded=recorded)


def retry(request: PageRequest) -> Reply:
    """Let deliveries that were given up be tried again."""
    provider = request.form.get("provider", "")
    memory = request.memory
    count = retry_deliveries(memory.home.root, request.user, provider, memory.services.server_url)
    request.audit("outbox.retry", provider[:80])
    noun = "delivery" if count == 1 else "deliveries"
    return Redirect(page_url(_PATH), f"{count:,} {noun} will be tried again when {provider[:80]} next starts.")


PAGE = Page("outbox", _PATH, show, retry, label="Outbox")
