"""Health: what the doctor finds, with buttons for harmless repairs, how far the index is behind, what takes space."""

from dataclasses import dataclass

from memoranda.service.http.problems import Problem
from memoranda.service.viewer.operation.health import (
    DiskPart,
    HealthFinding,
    disk_usage,
    find_problem,
    find_problems,
    index_lag,
    repair_problem,
)
from memoranda.service.viewer.page import Page, PageRequest, Redirect, Reply, View, page_url

_PATH = "/health"


@dataclass(frozen=True, slots=True)
class HealthView:
    """What the page shows; `findings` is None until the checks were asked for."""

    findings: tuple[HealthFinding, ...] | None
    index_lag: int | None
    disk: tuple[DiskPart, ...]
    disk_total: int
    can_repair: bool


def show(request: PageRequest) -> View:
    """The page. The checks read much of the home, so they run when they are asked for: `check=1`."""
    home = request.memory.home
    findings = find_problems(home) if request.query.get("check") == "1" else None
    disk = disk_usage(home.root)
    view = HealthView(findings, index_lag(request.memory), disk, sum(part.size for part in disk), request.may("admin"))
    return View("health.html", "Health", view)


def show_repair(request: PageRequest) -> View:
    """Ask whether to repair one problem; raises Problem 404 if it is gone."""
    return View("health_repair.html", "Repair", _find(request))


def repair(request: PageRequest) -> Reply:
    """Repair one problem after a person confirmed it."""
    outcome = repair_problem(request.memory.home, request.path["finding"])
    if outcome is None:
        raise Problem(404, "not_found", "There is no such problem any more, or it cannot be repaired from a page.")
    request.audit("health.repair", f"{outcome.finding.name} {outcome.finding.problem}"[:200])
    return Redirect(page_url(_PATH, check=1), f"{outcome.finding.name}: {outcome.message}")


def _find(request: PageRequest) -> HealthFinding:
    found = find_problem(request.memory.home, request.path["finding"])
    if found is None:
        raise Problem(404, "not_found", "There is no such problem any more, or it cannot be repaired from a page.")
    return found


PAGE = Page("health", _PATH, show, label="Health", scope="admin", owner_only=True)
REPAIR = Page(
    "health-repair", "/health/{finding}", show_repair, repair, scope="admin", submit_scope="admin", owner_only=True
)
