"""Compresses a full context: prunes tool output, plans what to keep, and summarises the rest.

The compressor changes nothing itself: it returns the new context as a value, and `SessionStore.rotate_session` applies
it in one transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from memoranda.agent.compression.plan import LONG_OUTPUT, CompressionPlan, make_plan, prune_message
from memoranda.agent.compression.settings import CompressionSettings
from memoranda.agent.compression.summariser import Summariser
from memoranda.agent.compression.summary import RunningSummary, find_pinned, parse_summaries, render_summary
from memoranda.memory.record.message_rows import text_of
from memoranda.memory.record.rotation import ContextItem, KeptMessage, LiveMessage, Summary
from memoranda.models.model import ChatModel, Message
from memoranda.models.tokens import estimate_message, estimate_messages
from memoranda.support.lazy_dataclass import dataclass

# If pruning old tool output reduces the context to this share, no summary is needed.
_PRUNED_ENOUGH = 0.5
# Pinned sentences may use this share of the summary's room, in addition to the summary.
_PINNED_SHARE = 0.5
# Characters of tool output in the last messages when they do not fit; if that is not enough, LONG_OUTPUT.
_LONG_RECENT_OUTPUT = 8_000
# A forced compression plans for a window of at least this many tokens.
_MIN_FORCED_WINDOW = 4_000

SummarySource = Literal["model", "extract", "pruned"]


@dataclass(frozen=True, slots=True)
class CompressedContext:
    """The new context; its summary replaces the messages from `first_id` to `last_id`.

    `how` says where the summary comes from: a model, or an extract of the messages; "pruned" means that no summary was
    needed. `why` explains a result that is worse than intended: an extract instead of a model's summary, or more tokens
    than the target. `last_seen` is the id of the last message of the old context.
    """

    context: tuple[ContextItem, ...]
    first_id: int
    last_id: int
    how: SummarySource
    why: str
    tokens_before: int
    tokens_after: int
    last_seen: int

    @property
    def summary(self) -> str:
        """The text of the summary; empty if there is none."""
        return next((item.text for item in self.context if isinstance(item, Summary)), "")


@dataclass(frozen=True, slots=True)
class NotCompressed:
    """The context was not compressed."""

    reason: str


class Compressor:
    """Compresses contexts according to its settings."""

    def __init__(self, settings: CompressionSettings | None = None) -> None:
        self._settings = settings or CompressionSettings()

    def compress(
        self,
        messages: Sequence[LiveMessage],
        *,
        model: ChatModel | None,
        window: int,
        session_id: str = "",
        focus: str = "",
        provider_notes: str = "",
        force: bool = False,
    ) -> CompressedContext | NotCompressed:
        """Returns a shorter context for a window of `window` tokens.

        The summary names `session_id`, so that the model can search for the omitted messages. `focus` is what the user
        wants to keep above all, `provider_notes` what the external memory adds. With `force` there is always a summary,
        even if pruning would be enough or the window has room left.
        """
        if not self._settings.enabled and not force:
            return NotCompressed("Compression is switched off.")
        if force:
            # The caller wants a shorter context now, so the current size counts as full.
            used = estimate_messages(live.message for live in messages)
            window = min(window, max(_MIN_FORCED_WINDOW, int(used / self._settings.threshold)))
        plan = make_plan(messages, self._settings, window)
        context = _Context(tuple(messages), session_id)
        if plan is None:
            target = self._settings.target(window)
            return context.with_short_output(target) or NotCompressed(
                "The context is already short."
                if estimate_messages(live.message for live in messages) <= target
                else "There are no messages between the first and the last ones that could be summarised."
            )
        if not force and (pruned := context.with_old_output_pruned(plan)) is not None:
            return pruned
        room = self._settings.summary_room(window)
        running = parse_summaries([text_of(live.message.get("content")) for live in plan.previous])
        summariser = Summariser(model, self._settings, room)
        result = summariser.update(plan.summarised, running.sections, focus, provider_notes)
        pinned = find_pinned((live.message for live in plan.summarised), running.pinned, int(room * _PINNED_SHARE))
        ids = [live.recorded_id for live in plan.summarised]
        first, last = min(*ids, running.first_id or ids[0]), max(*ids, running.last_id)
        summary = Summary(render_summary(RunningSummary(result.sections, pinned, first, last), session_id))
        return context.with_summary(plan, summary, (first, last), result.failure, self._settings.target(window))


@dataclass(frozen=True, slots=True)
class _Context:
    """A context and the ways to shorten it."""

    live: tuple[LiveMessage, ...]
    session_id: str

    def with_old_output_pruned(self, plan: CompressionPlan) -> CompressedContext | None:
        """Every message, with old tool output shortened; None if that is not enough."""
        items = self._items({live.id: prune_message(live, self.session_id) for live in plan.summarised})
        if self._size(items) > self._size() * _PRUNED_ENOUGH:
            return None
        ids = [live.recorded_id for live in plan.summarised]
        return self._result(items, (min(ids), max(ids)), "pruned", [])

    def with_short_output(self, target: int) -> CompressedContext | None:
        """Every message, with all tool output shortened, if nothing can be summarised; None if that does not help."""
        items: list[ContextItem] = []
        for max_chars in (_LONG_RECENT_OUTPUT, LONG_OUTPUT):
            outputs = [live for live in self.live if live.message["role"] == "tool"]
            items = self._items({live.id: prune_message(live, self.session_id, max_chars) for live in outputs})
            if self._size(items) <= target:
                break
        if not self.live or self._size(items) > self._size() * _PRUNED_ENOUGH:
            return None
        ids = [live.recorded_id for live in self.live]
        return self._result(items, (min(ids), max(ids)), "pruned", [])

    def with_summary(
        self, plan: CompressionPlan, summary: Summary, span: tuple[int, int], failure: str, target: int
    ) -> CompressedContext | NotCompressed:
        """The first messages, a summary, the user's request and the last messages."""
        head: list[ContextItem] = [KeptMessage(live.id) for live in plan.head]
        request: list[ContextItem] = [KeptMessage(plan.request.id)] if plan.request else []
        items = [*head, summary, *request, *(KeptMessage(live.id) for live in plan.tail)]
        for max_chars in (_LONG_RECENT_OUTPUT, LONG_OUTPUT):
            if self._size(items) > target:
                pruned = [prune_message(live, self.session_id, max_chars, thinking=True) for live in plan.tail]
                tail = [KeptMessage(live.id, message) for live, message in zip(plan.tail, pruned, strict=True)]
                items = [*head, summary, *request, *tail]
        after = self._size(items)
        if after >= self._size():
            return NotCompressed("A summary would not be shorter than the messages that it replaces.")
        why = [failure] if failure else []
        if after > target:
            why.append(
                f"{after:,} tokens are left instead of {target:,}, because the messages that must be kept are that long"
            )
        return self._result(items, span, "extract" if failure else "model", why)

    def _items(self, replacements: Mapping[int, Message | None]) -> list[ContextItem]:
        """Every message of the context, shortened where there is a replacement for its id."""
        return [
            Summary(text_of(live.message.get("content")))
            if live.is_summary
            else KeptMessage(live.id, replacements.get(live.id))
            for live in self.live
        ]

    def _result(
        self, items: Sequence[ContextItem], span: tuple[int, int], how: SummarySource, why: Sequence[str]
    ) -> CompressedContext:
        return CompressedContext(
            tuple(items), *span, how, "; ".join(why), self._size(), self._size(items), self.live[-1].id
        )

    def _size(self, items: Sequence[ContextItem] | None = None) -> int:
        """Tokens of the whole context, or of a new one with these items."""
        if items is None:
            return estimate_messages(live.message for live in self.live)
        originals = {live.id: live.message for live in self.live}
        return sum(
            estimate_message(
                {"content": item.text} if isinstance(item, Summary) else item.replacement or originals[item.message_id]
            )
            for item in items
        )
