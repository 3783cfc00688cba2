"""Streams an answer from the model to a person, without recalled memory that the model repeats."""

from memoranda.models.model import OnText
from memoranda.safety.fence_tags import StreamingContextScrubber


class AnswerStream:
    """Shows one answer while the model writes it: `written` is what the model wrote so far, `shown` what was shown."""

    def __init__(self, show: OnText) -> None:
        self._show = show
        self._scrubber = StreamingContextScrubber()
        self.written = self.shown = ""

    def feed(self, chunk: str) -> None:
        self.written += chunk
        self._show_text(self._scrubber.feed(chunk))

    def finish(self) -> None:
        """Show the text that was held back because it might have become a fence."""
        self._show_text(self._scrubber.flush())

    def _show_text(self, text: str) -> None:
        if text:
            self.shown += text
            self._show(text)


def visible_text(text: str) -> str:
    """A whole answer as `AnswerStream` would have shown it."""
    scrubber = StreamingContextScrubber()
    return scrubber.feed(text) + scrubber.flush()
