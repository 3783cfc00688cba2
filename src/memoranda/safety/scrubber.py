"""Hides memory fences in a stream of text that a model writes, wherever the stream is cut.

The filter shows text as it arrives and hides every fence, from its opener to the closer of its own (tags are counted,
so a fence inside a fence does not end it). What counts as a tag, and which openers are mere mentions, is the grammar
of `memoranda.safety.fence_tags`; it reads nothing but the text, so the total output is the same however it is cut.
At the end of the stream (`flush`) a fence without a closer is discarded, to the last character.

The hard case is "The tag <memory-context> is special." against "unterminated fences are discarded": the filter cannot
see the end of the stream, and both mistakes cost something. Hiding a mention swallows the rest of an answer that
explains the tag; showing a fence leaks a memory. The choice: an opener in the middle of a sentence that continues in
small letters or punctuation is a mention unless a closer of its own follows within reach of one longest
tag; a recalled block never looks like that, because its opener is followed by a line end and then a bracket. The same
reach applies to openers in `code spans`. Everything else is hidden, also in fenced code blocks, where a model that
quotes its context is likelier than one that documents ours. Closers without an opener are text: they hide nothing.

What can still get through: a fence that begins in the middle of a sentence, continues in small letters and ends more
than `MAX_TAG_CHARS` characters later, which `sanitize_context` removes before text is stored, because it sees the
whole of it; and an opener in a one-line code span that never closes, of which it removes only the tag.
"""

from memoranda.safety.fence_tags import LineState, TagReading, next_tag, unfinished_tag


class StreamingContextScrubber:
    """One stream of visible text; never holds back more than `MAX_TAG_CHARS` characters, and takes linear time."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the stream and the text that is held back; the next text starts a new stream."""
        self._held = ""
        self._depth = 0
        self._line = LineState()

    def feed(self, chunk: str) -> str:
        """The text that can be shown now that `chunk` has arrived."""
        if not self._held and not self._depth and "<" not in chunk:
            self._line.advance(chunk)
            return chunk
        return self._advance(self._held + chunk, final=False)

    def flush(self) -> str:
        """The rest of the text at the end of the stream, a fence without an end discarded; then `reset`."""
        rest = self._advance(self._held, final=True)
        self.reset()
        return rest

    def _advance(self, text: str, *, final: bool) -> str:
        shown: list[str] = []
        position = 0
        while tag := next_tag(text, position):
            if self._depth:
                self._depth += -1 if tag.closes else 1
                position = tag.end
                continue
            self._show(text[position : tag.start], shown)
            reading = TagReading.TEXT if tag.closes else self._line.judge(text, tag, final=final)
            if reading is TagReading.UNDECIDED:
                self._held = text[tag.start :]
                return "".join(shown)
            if reading is TagReading.FENCE:
                self._depth = 1
            else:
                self._show(text[tag.start : tag.end], shown)
            position = tag.end
        end = len(text) if final else unfinished_tag(text, position)
        if not self._depth:
            self._show(text[position:end], shown)
        self._held = text[end:]
        return "".join(shown)

    def _show(self, text: str, shown: list[str]) -> None:
        shown.append(text)
        self._line.advance(text)
