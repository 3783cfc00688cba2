"""The picker: a search line, the conversations that match, and the conversation that was opened.

Searches run in a thread, a moment after the last key, so that typing never waits. An answer that arrives after a newer
search was started is dropped.
"""

import asyncio
import textwrap

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from memoranda.cli.retrieval.found_conversations import FoundConversation, FoundConversations
from memoranda.errors import MemorandaError

_DEBOUNCE_SECONDS = 0.15
_LINES_PER_ROW = 2
# The search line, the status line, and a line between.
_OTHER_LINES = 3
_STYLE = Style.from_dict({"chosen": "reverse", "title": "bold", "facts": "", "status": "reverse", "message": "italic"})
_COLOURED = Style.from_dict({
    "chosen": "reverse", "title": "bold", "facts": "ansigreen", "status": "reverse", "message": "ansiyellow",
})  # fmt: skip
_LIST_KEYS = "↑↓ choose  Enter read  Ctrl-O resume  Tab agent: {agent}  Esc leave"
_VIEW_KEYS = "↑↓ PgUp PgDn scroll  o resume  q back"


class Picker:
    """Runs in the whole terminal until a person leaves or resumes a conversation."""

    def __init__(self, found: FoundConversations, query: str, *, coloured: bool) -> None:
        self._found = found
        self._rows: list[FoundConversation] = []
        self._chosen = 0
        self._message = "Searching …"
        self._search_number = 0
        self._opened: FoundConversation | None = None
        self._text: list[str] = []
        self._top = 0
        self._agents = found.agents()
        self._query = Buffer(
            document=Document(query, len(query)), multiline=False, on_text_changed=lambda _: self._search()
        )
        self._application: Application[str | None] = Application(
            layout=self._layout(),
            key_bindings=self._keys(),
            full_screen=True,
            mouse_support=False,
            style=_COLOURED if coloured else _STYLE,
            color_depth=None if coloured else ColorDepth.DEPTH_1_BIT,
        )
        self._application.ttimeoutlen = 0.05

    def run(self) -> str | None:
        """The command that resumes the chosen conversation; None if the person left."""
        return self._application.run(pre_run=self._search)

    def _layout(self) -> Layout:
        is_open = Condition(lambda: self._opened is not None)
        search = Window(
            BufferControl(self._query, input_processors=[BeforeInput("Search: ", style="class:title")]), height=1
        )
        listing = HSplit([search, Window(height=1), Window(FormattedTextControl(self._list_text))])
        text = Window(FormattedTextControl(self._conversation_text, focusable=True, show_cursor=False))
        status = Window(FormattedTextControl(self._status_text), height=1, style="class:status")
        containers = [ConditionalContainer(listing, ~is_open), ConditionalContainer(text, is_open), status]
        self._view = text
        return Layout(HSplit(containers), focused_element=search)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        in_list = Condition(lambda: self._opened is None)
        in_view = ~in_list
        for name, step in (("up", -1), ("down", 1), ("pageup", -10), ("pagedown", 10)):
            keys.add(name, filter=in_list)(lambda _, step=step: self._move(step))
            keys.add(name, filter=in_view)(lambda _, step=step: self._scroll(step, by_page=abs(step) > 1))
        keys.add("home", filter=in_view)(lambda _: self._scroll(-len(self._text)))
        keys.add("end", filter=in_view)(lambda _: self._scroll(len(self._text)))
        keys.add("enter", filter=in_list)(lambda _: self._open())
        keys.add("tab", filter=in_list)(lambda _: self._next_agent())
        keys.add("c-o")(self._resume)
        keys.add("o", filter=in_view)(self._resume)
        keys.add("c-c")(lambda event: event.app.exit(result=None))
        keys.add("escape", filter=in_list, eager=True)(lambda event: event.app.exit(result=None))
        for name in ("q", "escape", "backspace"):
            keys.add(name, filter=in_view, eager=True)(lambda _: self._close())
        return keys

    def _search(self) -> None:
        self._search_number += 1
        self._application.create_background_task(self._search_later(self._search_number))

    async def _search_later(self, number: int) -> None:
        await asyncio.sleep(_DEBOUNCE_SECONDS)
        if number != self._search_number:
            return
        try:
            rows = await asyncio.to_thread(self._found.find, self._query.text)
            message = "" if rows else "Nothing found."
        except MemorandaError as error:
            rows, message = [], str(error)
        if number == self._search_number:
            self._rows, self._message, self._chosen = rows, message, 0
            self._application.invalidate()

    def _move(self, step: int) -> None:
        self._message = ""
        self._chosen = max(0, min(len(self._rows) - 1, self._chosen + step))

    def _scroll(self, step: int, *, by_page: bool = False) -> None:
        height = self._height() + _OTHER_LINES - 1
        step = step // abs(step) * height if by_page else step
        self._top = max(0, min(max(0, len(self._text) - height), self._top + step))

    def _open(self) -> None:
        if self._rows:
            self._opened, self._top, self._message = self._rows[self._chosen], 0, ""
            width = max(20, self._application.output.get_size().columns - 1)
            lines = self._found.read(self._opened.session_id)
            self._text = [part for line in lines for part in _wrap(line, width)]
            self._application.layout.focus(self._view)

    def _close(self) -> None:
        self._opened = None
        self._application.layout.focus(self._query)

    def _next_agent(self) -> None:
        choices: list[str | None] = [None, *self._agents]
        place = choices.index(self._found.agent) if self._found.agent in choices else 0
        self._found.agent = choices[(place + 1) % len(choices)]
        self._search()

    def _resume(self, event: KeyPressEvent) -> None:
        row = self._opened or (self._rows[self._chosen] if self._rows else None)
        if row is None:
            return
        if row.resume:
            event.app.exit(result=row.resume)
        else:
            self._message = f"{row.source} has no command that resumes a conversation."

    def _height(self) -> int:
        return max(1, self._application.output.get_size().rows - _OTHER_LINES)

    def _list_text(self) -> StyleAndTextTuples:
        width = max(20, self._application.output.get_size().columns - 1)
        shown = max(1, self._height() // _LINES_PER_ROW)
        first = max(0, min(self._chosen - shown // 2, len(self._rows) - shown))
        text: StyleAndTextTuples = []
        for number, row in enumerate(self._rows[first : first + shown], start=first):
            facts = " · ".join(part for part in (row.when, row.source, row.project, f"{row.messages} messages") if part)
            below = f"{facts}  {row.snippet}" if row.snippet else facts
            style = "class:chosen" if number == self._chosen else "class:title"
            text += [(style, f"{row.title[: width - 2]}\n"), ("class:facts", f"  {below[: width - 2]}\n")]
        return text or [("class:message", self._message)]

    def _conversation_text(self) -> StyleAndTextTuples:
        height = self._height() + _OTHER_LINES - 1
        return [("", "\n".join(self._text[self._top : self._top + height]))]

    def _status_text(self) -> StyleAndTextTuples:
        if self._message and self._rows:
            return [("class:message", self._message)]
        if self._opened is not None:
            return [("", f"{_VIEW_KEYS}  ({self._top + 1} of {max(1, len(self._text))})")]
        return [("", _LIST_KEYS.format(agent=self._found.agent or "all"))]


def _wrap(line: str, width: int) -> list[str]:
    """The line in parts that fit; characters of some scripts take two columns."""
    columns = get_cwidth(line)
    if columns <= width:
        return [line]
    return textwrap.wrap(line, max(10, width * len(line) // columns), subsequent_indent="  ")
