"""Updates the running summary with a model, or with an extract if there is no model or it fails."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from memoranda.agent.compression.extractive_summary import extract_summary
from memoranda.agent.compression.prompts import SYSTEM, task
from memoranda.agent.compression.settings import CompressionSettings
from memoranda.agent.compression.summary import Sections, render_sections
from memoranda.agent.compression.summary_check import check_summary
from memoranda.agent.compression.transcript import shorten_to_tokens, split_transcript
from memoranda.errors import ModelError
from memoranda.memory.record.rotation import LiveMessage
from memoranda.models.model import ChatModel
from memoranda.safety.fence import screen_transcript, strip_recalled_blocks
from memoranda.safety.fence_tags import escape_tags
from memoranda.safety.withheld_passages import withhold_passages

_log = logging.getLogger(__name__)

_TRANSCRIPT_SHARE = 0.6
_MAX_PARTS = 8
_MAX_NOTES_TOKENS = 1_500
# Without a model, the notes may use this share of the room, in addition to the extract.
_NOTES_SHARE = 0.25
_NOTES_LABEL = "From the external memory"
_WORDS_PER_TOKEN = 0.7
# The model may write this many times the room, so that a summary that is a little long is not truncated.
_OUTPUT_FACTOR = 2


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """The new sections; `failure` explains why they are an extract, and is empty if a model wrote them."""

    sections: Sections
    failure: str = ""


class Summariser:
    """Adds messages to a running summary."""

    def __init__(self, model: ChatModel | None, settings: CompressionSettings, room: int) -> None:
        self._model = model
        self._settings = settings
        # A model with a small window can read and write less.
        self._room = room if model is None else min(room, model.window // 10)

    def update(self, messages: Sequence[LiveMessage], previous: Sections, focus: str, notes: str) -> SummaryResult:
        """The sections of the summary with these messages added."""
        if self._model is None:
            return self._extract(messages, previous, notes, "there is no model to ask")
        sections = self._ask(self._model, messages, previous, focus, notes)
        if isinstance(sections, str):
            _log.warning("The summary of a conversation is an extract, because %s.", sections)
            return self._extract(messages, previous, notes, sections)
        return SummaryResult(sections)

    def _extract(self, messages: Sequence[LiveMessage], previous: Sections, notes: str, why: str) -> SummaryResult:
        sections = dict(extract_summary(messages, previous, self._room))
        if lines := self._quote_notes(notes):
            sections["State"] = "\n".join(part for part in (sections.get("State", ""), lines) if part)
        return SummaryResult(sections, why)

    def _quote_notes(self, notes: str) -> str:
        """The notes of the external memory as lines of a section; no model reads them first, so they are scanned."""
        clean = withhold_passages(escape_tags(strip_recalled_blocks(notes))).text
        lines = [" ".join(line.split()) for line in clean.splitlines()]
        quoted = "\n".join(f"- {_NOTES_LABEL}: {line.lstrip('#-* ')}" for line in lines if line.strip("#-* "))
        return shorten_to_tokens(quoted, int(self._room * _NOTES_SHARE)) if quoted else ""

    def _ask(
        self, model: ChatModel, messages: Sequence[LiveMessage], previous: Sections, focus: str, notes: str
    ) -> Sections | str:
        """The sections that the model wrote, or why there are none; a long transcript is summarised in parts."""
        sections = previous
        notes = screen_transcript(shorten_to_tokens(strip_recalled_blocks(notes), _MAX_NOTES_TOKENS))
        parts = split_transcript(messages, max(200, int(model.window * _TRANSCRIPT_SHARE) - 2 * self._room))
        if len(parts) > _MAX_PARTS:
            return f"its window of {model.window} tokens is too small for the messages to summarise"
        for transcript in parts:
            running = screen_transcript(render_sections(sections)) if sections else ""
            request = task(running, transcript, words=int(self._room * _WORDS_PER_TOKEN), focus=focus, notes=notes)
            try:
                reply = model.reply(
                    SYSTEM, [{"role": "user", "content": request}], max_tokens=self._room * _OUTPUT_FACTOR,
                    deadline=self._settings.deadline_seconds,
                )  # fmt: skip
            except ModelError as error:
                return f"the model failed: {error}"
            checked = check_summary(reply, f"{running}\n{transcript}\n{notes}", self._room)
            if isinstance(checked, str):
                return checked
            sections = checked
        return sections
