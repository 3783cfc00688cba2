"""What external memories have received: asks them to delete it, ahead of everything that still waits for them.

A provider that can search its texts deletes exactly those that match. Any other one deletes what it received of the
sessions in question, if its service allows that; a mirrored entry of curated memory is removed by its own text.

`memoranda memory purge` uses this as well: it purges the history of curated memory, and forgets the removed entries
outside of it.
"""

import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from memoranda.errors import MemorandaError
from memoranda.external.holographic.shared_facts import cache_path
from memoranda.external.outbox.queued_passages import QueuedPassages
from memoranda.external.provider import MemoryProvider, has_own
from memoranda.external.vendors.sent_record import known_providers, providers_with_sessions
from memoranda.home import config
from memoranda.memory.curated import change_history
from memoranda.memory.curated.change_history import PurgedMemory
from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.search.recall_log import erase_calls, recalls_path
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.forgetting.report import ForgetPlace
from memoranda.upkeep.forgetting.scope import ForgetScope
from memoranda.upkeep.forgetting.started_provider import StartedProvider, load_provider, start_provider

HOLOGRAPHIC = "holographic"
# A vendor may have to delete memories one by one.
_FORGET_SECONDS = 3_600.0
_RECALL_SECONDS = 60.0
_STILL_RECALLED = "it still recalls the text; 'memoranda provider forget' deletes everything that it has received"


@dataclass(slots=True)
class ServiceAnswers:
    """What the services said: what they deleted, what they keep, and which did not answer."""

    deleted: list[str] = field(default_factory=list)
    left: list[ForgetPlace] = field(default_factory=list)


class _Started(NamedTuple):
    name: str
    provider: MemoryProvider
    calls: StartedProvider


class ProviderCopies:
    """The external memories of one scope."""

    def __init__(self, scope: ForgetScope) -> None:
        self._scope = scope
        self._root = scope.home.root

    def find_received(self, session_ids: Collection[str]) -> list[ForgetPlace]:
        """The vendors that have received something of these sessions."""
        return [
            ForgetPlace("provider", name, 1, "remove", "deletes what it received of these sessions")
            for name in providers_with_sessions(self._root, session_ids, self._scope.server_url)
        ]

    def queue_deletions(self, session_ids: Collection[str]) -> None:
        """Make the deletion durable before the home changes: a run that is killed no longer knows the sessions."""
        queue = QueuedPassages(self._root, self._scope.queue, self._scope.server_url)
        for name in providers_with_sessions(self._root, session_ids, self._scope.server_url) if session_ids else ():
            if not set(session_ids) <= queue.queued_deletions(name):
                queue.put_deletion(name, session_ids)

    def forget_text(
        self, matcher: TextMatcher, entries: Sequence[tuple[Target, str]], session_ids: Collection[str]
    ) -> ServiceAnswers:
        """Delete a text at every provider: facts that match, mirrored entries, and what it received of sessions."""
        answers = ServiceAnswers()
        for name in self._names(session_ids):
            self._ask(name, answers, lambda started: self._forget_text(started, matcher, entries, session_ids, answers))
        return answers

    def forget_sessions(self, session_ids: Collection[str] | None) -> ServiceAnswers:
        """Delete what the providers received of sessions; None: everything of the scope's user."""
        answers = ServiceAnswers()
        for name in self._names(session_ids):
            self._ask(name, answers, lambda started: self._forget_sessions(started, session_ids, answers))
        return answers

    def _ask(self, name: str, answers: ServiceAnswers, ask: "Callable[[_Started], None]") -> None:
        """Start a provider and ask it; a failure becomes a place that is left, and a queued deletion stays queued."""
        try:
            provider = load_provider(self._scope.home, name)
            with start_provider(self._scope.home, name, provider, self._scope.queue, self._scope.server_url) as calls:
                ask(_Started(name, provider, calls))
            QueuedPassages(self._root, self._scope.queue, self._scope.server_url).drop_deletions(name)
        except (MemorandaError, OSError) as error:
            note = f"it did not answer: {error} Run the command again later."
            answers.left.append(ForgetPlace("provider", name, 1, "keep", note))

    def _forget_text(
        self,
        started: "_Started",
        matcher: TextMatcher,
        entries: Sequence[tuple[Target, str]],
        session_ids: Collection[str],
        answers: ServiceAnswers,
    ) -> None:
        if has_own(started.provider, "forget_text"):
            report = started.calls.call("forget_text", {"matches": matcher.found_in}, _FORGET_SECONDS)
            _note(started.name, report, answers)
            return
        if has_own(started.provider, "on_memory_write"):
            for target, text in entries:
                arguments = {"action": "remove", "target": target, "content": "", "metadata": {"old_text": text}}
                facts = {"agent_context": "primary", "idempotency_key": f"forget:{uuid.uuid4().hex}"}
                started.calls.call("on_memory_write", arguments, _FORGET_SECONDS, **facts)
        if session_ids:
            self._forget_sessions(started, session_ids, answers)
        if has_own(started.provider, "prefetch"):
            recalled = [started.calls.call("prefetch", {"query": text}, _RECALL_SECONDS) for text in matcher.texts]
            if any(matcher.found_in(str(text)) for text in recalled):
                answers.left.append(ForgetPlace("provider", started.name, 1, "keep", _STILL_RECALLED))

    def _forget_sessions(
        self, started: "_Started", session_ids: Collection[str] | None, answers: ServiceAnswers
    ) -> None:
        if not has_own(started.provider, "forget"):
            note = "it offers no way to delete what it has received"
            answers.left.append(ForgetPlace("provider", started.name, 1, "keep", note))
            return
        wanted = None if session_ids is None else sorted(session_ids)
        _note(started.name, started.calls.call("forget", {"session_ids": wanted}, _FORGET_SECONDS), answers)

    def _names(self, session_ids: Collection[str] | None) -> list[str]:
        """The providers to ask: those in use, and those that have received something in the past."""
        in_use = config.load(self._scope.home).providers
        recorded = known_providers(self._root, self._scope.server_url) if session_ids is None else []
        received = providers_with_sessions(self._root, session_ids, self._scope.server_url) if session_ids else recorded
        has_facts = cache_path(self._root, self._scope.queue).exists()
        facts = [HOLOGRAPHIC] if has_facts else []
        return list(dict.fromkeys([*in_use, *received, *facts]))


def _note(name: str, report: Any, answers: ServiceAnswers) -> None:
    deleted, remaining = ([str(line) for line in report.get(key) or ()] for key in ("deleted", "remaining"))
    answers.deleted += [f"{name}: deleted {', '.join(deleted)}"] if deleted else []
    answers.left += [ForgetPlace("provider", name, 1, "keep", line) for line in remaining]


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
    stays = {(target, entry.text) for target in store.storage.targets() for entry in store.view(target).entries}
    purged: dict[tuple[Target, str], None] = {}
    for change in changes:
        texts = [(change.target, side) for edit in change.edits for side in (edit.before, edit.after) if side]
        if through is None or change.number <= through:
            purged |= dict.fromkeys(texts)
        else:
            stays |= set(texts)
    return [entry for entry in purged if entry not in stays]
