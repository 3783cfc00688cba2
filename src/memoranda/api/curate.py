"""`Memory.curate`: what the curator would change in curated memory, and the run after a session."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memoranda.api.services import HomeServices
from memoranda.errors import MemorandaError
from memoranda.memory.curated.settings import project_in
from memoranda.memory.curated.store import MemoryStore
from memoranda.types import CurateAnswer, CuratedChange
from memoranda.upkeep.curator.curate import CURATOR, Curator, CuratorRun
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
    answer: CurateAnswer = {"changes": [_as_data(change) for change in run.changes]}
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
    """Curate if something changed since the last run, and that is a day ago; the caller never waits for a failure."""
    try:
        if _is_due(store):
            curate(services, store, user, apply=True, directory=directory)
    except (MemorandaError, OSError) as error:
        _log.warning("The curator left memory as it is: %s", error)


def _is_due(store: MemoryStore) -> bool:
    changes = list(store.journal.changes())
    last = next((change for change in reversed(changes) if change.actor == CURATOR.actor), None)
    if last is None:
        return bool(changes)
    age = datetime.now(UTC) - datetime.fromisoformat(last.at)
    return age >= _INTERVAL and changes[-1].number != last.number
