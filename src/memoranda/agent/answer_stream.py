"""An answer on its way from the model to a person, without recalled memory that the model repeats."""

from memoranda.llm.model import OnText
from memoranda.safety.scrubber import StreamingContextScrubber


class AnswerStream:
    """Passes one answer on as it is written."""

    def __init__(self, show: OnText) -> None:
        self._show = show
        self._scrubber = StreamingContextScrubber()

    def feed(self, chunk: str) -> None:
        self._pass_on(self._scrubber.feed(chunk))

    def finish(self) -> None:
        """Show the text that was held back because it might have become a fence."""
        self._pass_on(self._scrubber.flush())

    def _pass_on(self, text: str) -> None:
        if text:
            self._show(text)


def visible_text(text: str) -> str:
    """A whole answer as its stream would have been shown."""
    scrubber = StreamingContextScrubber()
    return scrubber.feed(text) + scrubber.flush()
