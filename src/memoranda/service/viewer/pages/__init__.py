"""All pages of the viewer, in the order of the menu: a module here reads the data of its pages and shows them."""

from memoranda.service.viewer.page import Page
from memoranda.service.viewer.pages import (
    approvals,
    facts,
    health,
    memory,
    memory_history,
    outbox,
    recall_log,
    search,
    session,
    timeline,
    today,
    usage,
)

PAGES: tuple[Page, ...] = (
    today.PAGE,
    search.PAGE,
    timeline.PAGE,
    session.PAGE,
    session.MESSAGE,
    session.EXPORT,
    memory.PAGE,
    memory_history.PAGE,
    memory_history.UNDO,
    memory_history.REVOKE,
    memory.PROMPT,
    memory.ENTRY,
    approvals.PAGE,
    approvals.DECIDE,
    approvals.ALLOW,
    approvals.RESOLVE,
    facts.PAGE,
    outbox.PAGE,
    recall_log.PAGE,
    recall_log.CALL,
    usage.PAGE,
    usage.DATA,
    health.PAGE,
    health.REPAIR,
)
