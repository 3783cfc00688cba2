"""Health: what the doctor finds, with buttons for harmless repairs, how far the index is behind, what takes space."""

import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from memoranda.api.memory import Memory
from memoranda.errors import MemorandaError
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.page import Page, PageRequest, Redirect, Reply, View, page_url
from memoranda.support.health_issues import HealthIssue
from memoranda.support.home import Home
from memoranda.upkeep.doctor import examine

# Parts of a home by how the names of their files begin, in this order; a folder counts as a whole.
_PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Search index", ("state.index", "state.vectors", "server-", "index", "expansions")),
    ("Conversations (the record)", ("state.db", "state.marker")),
    ("MEMORY.md, USER.md and their history", ("memories",)),
    ("Skills", ("skills",)),
    ("External memory", ("holographic", "providers", "plugins")),
    ("Backups", ("backups",)),
    ("Logs", ("logs",)),
    ("Checkpoints of agents", ("checkpoints",)),
    ("Deliveries, spending, keys, reviews and imports", ("home.db", "prices.yaml")),
    ("Settings", ("config.yaml", ".env", "SOUL.md")),
)
_OTHER = "Other files"
_PATH = "/health"
_GONE = "There is no such problem any more, or it cannot be repaired from a page."


def find_problems(home: Home) -> list[dict[str, Any]]:
    """Everything that is wrong with a home, errors first."""
    order = ("error", "warning", "note")
    found = [_describe(home, issue) for issue in examine(home)]
    return sorted(found, key=lambda finding: order.index(finding["severity"]))


def repair_problem(home: Home, finding_id: str) -> dict[str, Any] | None:
    """Repair one problem and check again: the finding, whether it is `fixed`, and a `message`.

    None if it is gone, or if a page may not repair it.
    """
    found = find_problem(home, finding_id)
    if found is None:
        return None
    finding, repair = found
    try:
        report = repair()
    except (OSError, MemorandaError) as error:
        return finding | {"fixed": False, "message": f"It could not be repaired: {error}"}
    fixed = find_problem(home, finding_id) is None
    text = report if isinstance(report, str) and report else "Repaired." if fixed else "The problem is still there."
    return finding | {"fixed": fixed, "message": text}


def index_lag(memory: Memory) -> int | None:
    """How many messages the search index has yet to read; None without conversations, or with one index per user."""
    if not memory.services.has_record or memory.config.recall.user_index_mb:
        return None
    state = memory.sessions.index.state()
    return max(0, state.head.count - state.indexed.count)


def disk_usage(home: Path) -> list[dict[str, Any]]:
    """The parts of a home by the bytes of their files, the largest first."""
    sizes: dict[str, int] = {}
    for path in home.iterdir() if home.is_dir() else ():
        size = sum(_file_sizes(path))
        name = next((part for part, starts in _PARTS if path.name.startswith(starts)), _OTHER)
        sizes[name] = sizes.get(name, 0) + size
    total = sum(sizes.values())
    parts = [{"name": name, "size": sizes[name], "percent": round(100 * sizes[name] / total)} for name in sizes]
    return sorted((part for part in parts if part["size"]), key=lambda part: -part["size"])


def _file_sizes(path: Path) -> Iterator[int]:
    if path.is_dir() and not path.is_symlink():
        for directory, _, files in os.walk(path):
            yield from (_size(Path(directory, name)) for name in files)
    else:
        yield _size(path)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        # It was deleted meanwhile, as temporary files are.
        return 0


def find_problem(home: Home, finding_id: str) -> tuple[dict[str, Any], Callable[[], object]] | None:
    """A problem that the page may repair, by its id, and its repair; None if it is gone."""
    for issue in examine(home):
        finding = _describe(home, issue)
        if finding["id"] == finding_id and finding["can_repair"] and issue.repair is not None:
            return finding, issue.repair
    return None


def _describe(home: Home, issue: HealthIssue) -> dict[str, Any]:
    path = issue.path
    name = str(path.relative_to(home.root)) if path.is_relative_to(home.root) else str(path)
    problem_id = sha256(f"{name}\0{issue.problem}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return {
        "id": problem_id,
        "severity": issue.severity,
        "name": "The home" if name == "." else name,
        "problem": issue.problem,
        "remedy": issue.remedy,
        "can_repair": issue.repair is not None and issue.harmless,
        "needs_command": issue.repair is not None and not issue.harmless,
    }


def show(request: PageRequest) -> View:
    """The page. The checks read much of the home, so they run when they are asked for: `check=1`."""
    home = request.memory.home
    findings = find_problems(home) if request.query.get("check") == "1" else None
    disk = disk_usage(home.root)
    view = {
        "findings": findings,
        "index_lag": index_lag(request.memory),
        "disk": disk,
        "disk_total": sum(part["size"] for part in disk),
        "can_repair": request.may("admin"),
    }
    return View("health.html", "Health", view)


def show_repair(request: PageRequest) -> View:
    """Ask whether to repair one problem; raises Problem 404 if it is gone."""
    found = find_problem(request.memory.home, request.path["finding"])
    if found is None:
        raise Problem(404, "not_found", _GONE)
    return View("health_repair.html", "Repair", found[0])


def repair(request: PageRequest) -> Reply:
    """Repair one problem after a person confirmed it."""
    outcome = repair_problem(request.memory.home, request.path["finding"])
    if outcome is None:
        raise Problem(404, "not_found", _GONE)
    request.audit("health.repair", f"{outcome['name']} {outcome['problem']}"[:200])
    return Redirect(page_url(_PATH, check=1), f"{outcome['name']}: {outcome['message']}")


PAGE = Page("health", _PATH, show, label="Health", scope="admin", owner_only=True)
REPAIR = Page(
    "health-repair", "/health/{finding}", show_repair, repair, scope="admin", submit_scope="admin", owner_only=True
)
