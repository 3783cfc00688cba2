"""The running summary, brought up to date: by a model where it can be asked, else by an extract."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from memoranda.compression.extractive_summary import extract_summary
from memoranda.compression.prompts import SYSTEM, task
from memoranda.compression.settings import CompressionSettings
from memoranda.compression.summary import Sections, render_sections
from memoranda.compression.summary_check import check_summary
from memoranda.compression.transcript import pieces, within
from memoranda.errors import ModelError
from memoranda.llm.model import ChatModel
from memoranda.safety.fence import strip_recalled_blocks
from memoranda.sessions.rotation import LiveMessage

_log = logging.getLogger(__name__)

_TRANSCRIPT_SHARE = 0.6
_MOST_PIECES = 8
_MOST_NOTES = 1_500
_WORDS_PER_TOKEN = 0.7
# What a model may write, so that a summary that is a little long is not cut off.
_ROOM_TO_WRITE = 2


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """The new sections; `failure` says why they are an extract, and is empty when a model wrote them."""

    sections: Sections
    failure: str = ""


class Summariser:
    """Takes messages up into a summary."""

    def __init__(self, model: ChatModel | None, settings: CompressionSettings, room: int) -> None:
        self._model = model
        self._settings = settings
        # A model with a small window cannot read and write as much.
        self._room = room if model is None else min(room, model.window // 10)

    def update(self, messages: Sequence[LiveMessage], previous: Sections, focus: str, notes: str) -> SummaryResult:
        """The sections after some more messages."""
        if self._model is None:
            return self._extracted(messages, previous, "there is no model to ask")
        made = self._ask(self._model, messages, previous, focus, notes)
        if isinstance(made, str):
            _log.warning("The summary of a conversation is an extract, because %s.", made)
            return self._extracted(messages, previous, made)
        return SummaryResult(made)

    def _extracted(self, messages: Sequence[LiveMessage], previous: Sections, why: str) -> SummaryResult:
        return SummaryResult(extract_summary(messages, previous, self._room), why)

    def _ask(
        self, model: ChatModel, messages: Sequence[LiveMessage], previous: Sections, focus: str, notes: str
    ) -> Sections | str:
        """The sections that a model wrote, or why there are none. What does not fit into its window goes in pieces."""
        sections = previous
        notes = within(strip_recalled_blocks(notes), _MOST_NOTES)
        parts = pieces(messages, max(200, int(model.window * _TRANSCRIPT_SHARE) - 2 * self._room))
        if len(parts) > _MOST_PIECES:
            return f"its window of {model.window} tokens is too small for what is to be summarised"
        for transcript in parts:
            known = render_sections(sections) if sections else ""
            request = task(known, transcript, words=int(self._room * _WORDS_PER_TOKEN), focus=focus, notes=notes)
            try:
                reply = model.reply(
                    SYSTEM, [{"role": "user", "content": request}], max_tokens=self._room * _ROOM_TO_WRITE,
                    deadline=self._settings.deadline_seconds,
                )  # fmt: skip
            except ModelError as error:
                return f"the model failed: {error}"
            judged = check_summary(reply, f"{known}\n{transcript}\n{notes}", self._room)
            if isinstance(judged, str):
                return judged
            sections = judged
        return sections
