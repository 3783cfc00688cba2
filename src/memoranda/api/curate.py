"""`Memory.curate`: what the curator would change in curated memory, and the run after a session."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memoranda.api.services import HomeServices
from memoranda.errors import MemorandaError
from memoranda.memory.curated.settings import project_in
from memoranda.memory.curated.store import MemoryStore
from memoranda.types import CurateAnswer, CuratedChange
from memoranda.upkeep.curator.curate import CURATOR, Curator, CuratorRun, note_run
from memoranda.upkeep.curator.rules import CuratorChange
from memoranda.upkeep.curator.wordings import ModelWordings

_log = logging.getLogger(__name__)

_INTERVAL = timedelta(days=1)


def curate(
    services: HomeServices,
    store: MemoryStore,
    user: str | None,
    *,
    apply: bool,
    directory: Path | None = None,
    model: bool = True,
) -> CurateAnswer:
    """The proposed changes, or with `apply` those that were made.

    Files, branches and commands that are gone are looked for in `directory`; a service has none. The model that the
    settings name is asked only with `model`.
    """
    name = services.config.curate.model if model else ""
    wordings = ModelWordings(
        lambda: services.background_model(name, "curator", user), lambda: services.sessions_for(user).items
    )
    curator = Curator(store, directory, wordings.suggest) if name else Curator(store, directory)
    run = curator.apply() if apply else CuratorRun(curator.propose())
    changes = [_as_data(change) for change in run.changes]
    answer: CurateAnswer = {"changes": changes, "mode": services.config.curate.mode}
    if apply:
        answer["applied"] = [run.number] if run.number else []
    if run.refused:
        answer["refused"] = [refusal.message for refusal in run.refused]
    if wordings.problem:
        answer["without_model"] = wordings.problem
    return answer


def _as_data(change: CuratorChange) -> CuratedChange:
    return {
        "rule": change.rule,
        "target": change.target,
        "project": project_in(change.target),
        "before": list(change.before),
        "after": list(change.after),
        "reason": change.reason,
    }


def curate_if_due(services: HomeServices, store: MemoryStore, user: str | None, directory: Path | None) -> None:
    """Run the curator as `curate.mode` says, if something changed since the last run, and that is a day ago.

    The journal has what a run did, or that it found nothing or only proposes something. A failure is logged.
    """
    is_auto = services.config.curate.mode == "auto"
    try:
        if not _is_due(store):
            return
        answer = curate(services, store, user, apply=is_auto, directory=directory, model=is_auto)
        if not answer.get("applied"):
            count = len(answer["changes"])
            note_run(
                store, f"proposes {count} change{'s' if count > 1 else ''}" if count else "found nothing to tidy up"
            )
    except (MemorandaError, OSError) as error:
        _log.warning("The curator left memory as it is: %s", error)


def _is_due(store: MemoryStore) -> bool:
    newest = store.journal.last()
    if newest is None or newest.actor == CURATOR.actor:
        return False
    runs = [change for change in store.journal.changes() if change.actor == CURATOR.actor]
    return not runs or datetime.now(UTC) - datetime.fromisoformat(runs[-1].at) >= _INTERVAL
