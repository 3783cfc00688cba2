"""From a full context to a short one: prune, plan, summarise, and say exactly what became of every message.

Nothing is changed here: the answer is a value, which `SessionStore.rotate_session` carries out in one transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memoranda.compression.pinned import find_pinned
from memoranda.compression.plan import CompressionPlan, make_plan
from memoranda.compression.pruning import LONG_OUTPUT, prune_message
from memoranda.compression.settings import CompressionSettings
from memoranda.compression.summariser import Summariser
from memoranda.compression.summary import RunningSummary, parse_summaries, render_summary
from memoranda.llm.model import ChatModel, Message
from memoranda.llm.tokens import estimate_message, estimate_messages
from memoranda.sessions.message_rows import text_of
from memoranda.sessions.rotation import ContextItem, KeptMessage, LiveMessage, Summary

# When cutting old tool output short leaves this share of a context, nothing has to be summarised.
_ENOUGH = 0.5
# Of the room for a summary, what is pinned may take so much beside it.
_PINNED_SHARE = 0.5
# How long output in the last messages may be when they do not fit: first this, then as short as any other.
_STILL_LONG = 8_000
# A context that is compressed by order is made as short as in a window of this size at least.
_SMALLEST_FORCED = 4_000

How = Literal["model", "extract", "pruned"]


@dataclass(frozen=True, slots=True)
class CompressedContext:
    """The new context, and which messages the summary stands for: those from `first_id` to `last_id`.

    `how` says who wrote the summary; "pruned" means that there was no need for one. `why` is empty unless something
    is not as it should be: an extract in place of a summary, or more tokens than aimed at. `last_seen` is the last
    message of the old context.
    """

    context: tuple[ContextItem, ...]
    first_id: int
    last_id: int
    how: How
    why: str
    tokens_before: int
    tokens_after: int
    last_seen: int

    @property
    def summary(self) -> str:
        """The text of the summary; empty when there is none."""
        return next((item.text for item in self.context if isinstance(item, Summary)), "")


@dataclass(frozen=True, slots=True)
class NotCompressed:
    """The context stays as it is."""

    reason: str


class Compressor:
    """Makes contexts shorter, by its settings."""

    def __init__(self, settings: CompressionSettings | None = None) -> None:
        self._settings = settings or CompressionSettings()

    def compress(
        self,
        live: Sequence[LiveMessage],
        *,
        model: ChatModel | None,
        window: int,
        session_id: str = "",
        focus: str = "",
        provider_notes: str = "",
        force: bool = False,
    ) -> CompressedContext | NotCompressed:
        """A shorter context for a window of so many tokens.

        `session_id` is named to the model, so that it can read what was taken out. `focus` is what somebody wants kept
        above all, `provider_notes` what an external memory adds. With `force` there is always a summary, even where
        pruning would do or the window has room left.
        """
        if not self._settings.enabled and not force:
            return NotCompressed("Compression is switched off.")
        if force:
            # Somebody wants it shorter now: what there is counts as full, however large the window is.
            used = estimate_messages(each.message for each in live)
            window = min(window, max(_SMALLEST_FORCED, int(used / self._settings.threshold)))
        plan = make_plan(live, self._settings, window)
        context = _Context(tuple(live), session_id)
        if plan is None:
            target = self._settings.target(window)
            return context.shortened(target) or NotCompressed(
                "The context is short already."
                if estimate_messages(each.message for each in live) <= target
                else "There is nothing between the first and the last messages that could be summarised."
            )
        if not force and (pruned := context.pruned(plan)) is not None:
            return pruned
        room = self._settings.summary_room(window)
        running = parse_summaries([text_of(each.message.get("content")) for each in plan.previous])
        made = Summariser(model, self._settings, room).update(plan.summarised, running.sections, focus, provider_notes)
        pinned = find_pinned((each.message for each in plan.summarised), running.pinned, int(room * _PINNED_SHARE))
        numbers = [each.said_as for each in plan.summarised]
        first, last = min(*numbers, running.first_id or numbers[0]), max(*numbers, running.last_id)
        summary = Summary(render_summary(RunningSummary(made.sections, pinned, first, last), session_id))
        return context.summarised(plan, summary, (first, last), made.failure, self._settings.target(window))


@dataclass(frozen=True, slots=True)
class _Context:
    """A context and the shorter ones that can be made of it."""

    live: tuple[LiveMessage, ...]
    session_id: str

    def pruned(self, plan: CompressionPlan) -> CompressedContext | None:
        """All of it, with old output cut short; None when that is not enough."""
        items = self._items({each.id: prune_message(each, self.session_id) for each in plan.summarised})
        if self._size(items) > self._size() * _ENOUGH:
            return None
        numbers = [each.said_as for each in plan.summarised]
        return self._result(items, (min(numbers), max(numbers)), "pruned", [])

    def shortened(self, target: int) -> CompressedContext | None:
        """All of it with every output cut short, where there is nothing else to take out; None when that is no help."""
        items: list[ContextItem] = []
        for max_chars in (_STILL_LONG, LONG_OUTPUT):
            outputs = [each for each in self.live if each.message["role"] == "tool"]
            items = self._items({each.id: prune_message(each, self.session_id, max_chars) for each in outputs})
            if self._size(items) <= target:
                break
        if not self.live or self._size(items) > self._size() * _ENOUGH:
            return None
        numbers = [each.said_as for each in self.live]
        return self._result(items, (min(numbers), max(numbers)), "pruned", [])

    def summarised(
        self, plan: CompressionPlan, summary: Summary, span: tuple[int, int], failure: str, target: int
    ) -> CompressedContext | NotCompressed:
        """The first messages, a summary, the user's request and the last messages."""
        head: list[ContextItem] = [KeptMessage(each.id) for each in plan.head]
        request: list[ContextItem] = [KeptMessage(plan.request.id)] if plan.request else []
        items = [*head, summary, *request, *(KeptMessage(each.id) for each in plan.tail)]
        for max_chars in (_STILL_LONG, LONG_OUTPUT):
            if self._size(items) > target:
                pruned = [prune_message(each, self.session_id, max_chars, thinking=True) for each in plan.tail]
                tail = [KeptMessage(each.id, message) for each, message in zip(plan.tail, pruned, strict=True)]
                items = [*head, summary, *request, *tail]
        after = self._size(items)
        if after >= self._size():
            return NotCompressed("A summary would not be shorter than what it stands for.")
        why = [failure] if failure else []
        if after > target:
            why.append(f"{after:,} tokens are left and not {target:,}, because what must be kept is that long")
        return self._result(items, span, "extract" if failure else "model", why)

    def _items(self, replacements: Mapping[int, Message | None]) -> list[ContextItem]:
        """Every message of the context, shortened where there is a replacement for its id."""
        return [
            Summary(text_of(each.message.get("content")))
            if each.is_summary
            else KeptMessage(each.id, replacements.get(each.id))
            for each in self.live
        ]

    def _result(
        self, items: Sequence[ContextItem], span: tuple[int, int], how: How, why: Sequence[str]
    ) -> CompressedContext:
        return CompressedContext(
            tuple(items), *span, how, "; ".join(why), self._size(), self._size(items), self.live[-1].id
        )

    def _size(self, items: Sequence[ContextItem] | None = None) -> int:
        """Tokens of the whole context, or of another one made of it."""
        if items is None:
            return estimate_messages(each.message for each in self.live)
        known = {each.id: each.message for each in self.live}
        return sum(
            estimate_message(
                {"content": item.text} if isinstance(item, Summary) else item.replacement or known[item.message_id]
            )
            for item in items
        )
