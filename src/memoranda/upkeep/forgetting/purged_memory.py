"""Purges the history of curated memory, and forgets the removed entries outside of it: `memoranda memory purge`."""

from dataclasses import dataclass

from memoranda.external.outbox.queued_passages import QueuedPassages
from memoranda.memory.curated import change_history
from memoranda.memory.curated.change_history import PurgedMemory
from memoranda.memory.curated.settings import TARGETS, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.search.recall_log import erase_calls, recalls_path
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.forgetting.provider_copies import ProviderCopies, ServiceAnswers
from memoranda.upkeep.forgetting.scope import ForgetScope


@dataclass(frozen=True, slots=True)
class ForgottenHistory:
    """What a purge deleted: in the directory, in the queue of deliveries, and at external memories."""

    purged: PurgedMemory
    dropped_deliveries: int
    services: ServiceAnswers


def purge_memory(scope: ForgetScope, store: MemoryStore, through: int | None = None) -> ForgottenHistory:
    """Delete the history, and entries that only the history had also from deliveries and external memories.

    An external memory is asked before anything that still waits for it is delivered. If it does not answer, the removal
    stays queued, because it names what must be removed.
    """
    removed = _removed_entries(store, through)
    matcher = TextMatcher([text for _, text in removed], entire=True)
    services, dropped = ServiceAnswers(), 0
    if matcher:
        services = ProviderCopies(scope).forget_text(matcher, removed, ())
        queue = QueuedPassages(scope.home.root, scope.queue, scope.server_url)
        dropped = queue.forget(matcher, keep_removals=bool(services.left))
        queue.erase_removed()
        anywhere = TextMatcher(matcher.texts)
        erase_calls(
            recalls_path(scope.home.root, scope.user), lambda call: anywhere.count(str(call.get("text", ""))) > 0
        )
    # Last: a purge that is interrupted must still know which entries were removed.
    return ForgottenHistory(change_history.purge(store, through), dropped, services)


def _removed_entries(store: MemoryStore, through: int | None) -> list[tuple[Target, str]]:
    """The entries in the history that is purged, and neither in a file nor in the history that stays."""
    changes = change_history.log(store)
    stays = {(target, entry.text) for target in TARGETS for entry in store.view(target).entries}
    purged: dict[tuple[Target, str], None] = {}
    for change in changes:
        texts = [(change.target, side) for edit in change.edits for side in (edit.before, edit.after) if side]
        if through is None or change.number <= through:
            purged |= dict.fromkeys(texts)
        else:
            stays |= set(texts)
    return [entry for entry in purged if entry not in stays]
