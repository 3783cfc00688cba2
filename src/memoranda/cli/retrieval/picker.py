"""The picker: a search line, the conversations that match, and the conversation that was opened.

Searches run in a thread, a moment after the last key, so that typing never waits. An answer that arrives after a newer
search was started is dropped.
"""

import asyncio

from prompt_toolkit.application import Application
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.scroll import scroll_one_line_down, scroll_one_line_up
from prompt_toolkit.layout import DynamicContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.widgets import TextArea

from memoranda.cli.retrieval.found_conversations import FoundConversation, FoundConversations
from memoranda.errors import MemorandaError

_DEBOUNCE_SECONDS = 0.15
_LIST_KEYS = "↑↓ choose  Enter read  Ctrl-O resume  Tab agent: {agent}  Esc leave"
_TEXT_KEYS = "↑↓ PgUp PgDn scroll  o resume  q back"


class Picker:
    """Runs in the whole terminal until a person leaves or resumes a conversation."""

    def __init__(self, found: FoundConversations, query: str, *, coloured: bool) -> None:
        self._found = found
        self._rows: list[FoundConversation] = []
        self._chosen = self._searches = 0
        self._message = "Searching …"
        self._opened: FoundConversation | None = None
        self._query = TextArea(query, multiline=False, prompt="Search: ", height=1)
        self._query.buffer.on_text_changed += lambda _: self._search()
        self._text = TextArea(read_only=True)
        listing = HSplit([self._query, Window(height=1), Window(FormattedTextControl(self._list_text))])
        body = DynamicContainer(lambda: self._text if self._opened else listing)
        status = Window(FormattedTextControl(self._status_text), height=1, style="reverse")
        self._application: Application[str | None] = Application(
            layout=Layout(HSplit([body, status]), focused_element=self._query),
            key_bindings=self._keys(),
            full_screen=True,
            color_depth=None if coloured else ColorDepth.DEPTH_1_BIT,
        )
        self._application.ttimeoutlen = 0.05

    def run(self) -> str | None:
        """Return the command that resumes the chosen conversation; None if the person left."""
        return self._application.run(pre_run=self._search)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        in_list = Condition(lambda: self._opened is None)
        for name, step in (("up", -1), ("down", 1), ("pageup", -10), ("pagedown", 10)):
            keys.add(name, filter=in_list)(lambda _, step=step: self._move(step))
        keys.add("up", filter=~in_list)(scroll_one_line_up)
        keys.add("down", filter=~in_list)(scroll_one_line_down)
        keys.add("enter", filter=in_list)(lambda _: self._open())
        keys.add("tab", filter=in_list)(lambda _: self._next_agent())
        keys.add("c-o")(self._resume)
        keys.add("o", filter=~in_list)(self._resume)
        keys.add("c-c")(lambda event: event.app.exit(result=None))
        keys.add("escape", filter=in_list, eager=True)(lambda event: event.app.exit(result=None))
        for name in ("q", "escape", "backspace"):
            keys.add(name, filter=~in_list, eager=True)(lambda _: self._close())
        return keys

    def _search(self) -> None:
        self._searches += 1
        self._application.create_background_task(self._search_later(self._searches))

    async def _search_later(self, number: int) -> None:
        await asyncio.sleep(_DEBOUNCE_SECONDS)
        if number != self._searches:
            return
        try:
            rows = await asyncio.to_thread(self._found.find, self._query.text)
            message = "" if rows else "Nothing found."
        except MemorandaError as error:
            rows, message = [], str(error)
        if number == self._searches:
            self._rows, self._message, self._chosen = rows, message, 0
            self._application.invalidate()

    def _move(self, step: int) -> None:
        self._message = ""
        self._chosen = max(0, min(len(self._rows) - 1, self._chosen + step))

    def _open(self) -> None:
        if self._rows:
            self._opened, self._message = self._rows[self._chosen], ""
            self._text.text = "\n".join(self._found.read(self._opened.session_id))
            self._application.layout.focus(self._text)

    def _close(self) -> None:
        self._opened = None
        self._application.layout.focus(self._query)

    def _next_agent(self) -> None:
        choices: list[str | None] = [None, *self._found.agents()]
        place = choices.index(self._found.agent) if self._found.agent in choices else 0
        self._found.agent = choices[(place + 1) % len(choices)]
        self._search()

    def _resume(self, event: KeyPressEvent) -> None:
        row = self._opened or (self._rows[self._chosen] if self._rows else None)
        if row is not None and row.resume:
            event.app.exit(result=row.resume)
        elif row is not None:
            self._message = f"{row.source} has no command that resumes a conversation."

    def _list_text(self) -> StyleAndTextTuples:
        text: StyleAndTextTuples = []
        for number, row in enumerate(self._rows):
            facts = " · ".join(part for part in (row.when, row.source, row.project, f"{row.messages} messages") if part)
            chosen = number == self._chosen
            # The window scrolls to the cursor, so that the chosen conversation is on the screen.
            text += [("[SetCursorPosition]", "")] if chosen else []
            text += [
                ("reverse" if chosen else "bold", f"{row.title}\n"),
                ("fg:ansigreen", f"  {facts}  {row.snippet}\n"),
            ]
        return text or [("", self._message)]

    def _status_text(self) -> str:
        if self._message and self._rows:
            return self._message
        return _TEXT_KEYS if self._opened else _LIST_KEYS.format(agent=self._found.agent or "all")
