"""Renders pages: Jinja2 with every value escaped, and the words in which times, numbers and texts are shown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from memoranda import __version__
from memoranda.service.viewer import shown_text
from memoranda.service.viewer.gate import FORM_TOKEN, Visitor
from memoranda.service.viewer.page import Page, View
from memoranda.service.viewer.page_table import PageTable
from memoranda.service.viewer.static_files import StaticFiles

_TEMPLATES = Path(__file__).parent / "templates"
_FILTERS = (
    shown_text.clock_time,
    shown_text.day,
    shown_text.moment,
    shown_text.iso_time,
    shown_text.written_moment,
    shown_text.file_size,
    shown_text.percent,
    shown_text.count,
    shown_text.dollars,
    shown_text.plural,
    shown_text.visible,
    shown_text.highlighted,
)


@dataclass(frozen=True, slots=True)
class _Frame:
    """What every page shows around its own content; templates know it as `frame`."""

    title: str
    current: str
    navigation: Sequence[tuple[str, str, str]]
    """Name, label and address of the pages in the menu."""
    visitor: Visitor | None = None
    notice: str = ""
    version: str = __version__
    token_field: str = FORM_TOKEN

    @property
    def form_token(self) -> str:
        return self.visitor.form_token if self.visitor else ""

    @property
    def user(self) -> str | None:
        if self.visitor is None:
            return None
        return self.visitor.caller.shown_user(self.visitor.user)


@dataclass(frozen=True, slots=True)
class _ProblemView:
    status: int
    name: str
    detail: str


class Renderer:
    """The templates of the viewer."""

    def __init__(self, table: PageTable, static: StaticFiles) -> None:
        self._menu = [(page, table.url(page.name)) for page in table.pages.values() if page.label]
        self._environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals.update(url=table.url, static=static.url, pages=frozenset(table.pages))
        self._environment.filters.update({function.__name__: function for function in _FILTERS})

    def compile_templates(self) -> Iterator[str]:
        """Compile one template after the other now, and not when a page first needs it; yields their names."""
        for name in self._environment.list_templates(extensions=["html"]):
            self._environment.get_template(name)
            yield name

    def render(self, view: View, page: Page, visitor: Visitor, notice: str = "") -> Response:
        """A page for a visitor."""
        return self._render(view, _Frame(view.title, page.name, self._navigation(visitor), visitor, notice))

    def render_plain(self, view: View) -> Response:
        """A page without a menu, for a browser that is not logged in."""
        return self._render(view, _Frame(view.title, "", ()))

    def render_problem(self, status: int, detail: str, visitor: Visitor | None) -> Response:
        """The page of an error."""
        data = _ProblemView(status, HTTPStatus(status).phrase, detail)
        navigation = self._navigation(visitor) if visitor else ()
        return self._render(View("problem.html", data.name, data, status), _Frame(data.name, "", navigation, visitor))

    def _navigation(self, visitor: Visitor) -> Sequence[tuple[str, str, str]]:
        """The menu, without pages that the visitor may not see."""
        return [
            (page.name, page.label, address)
            for page, address in self._menu
            if page.scope in visitor.caller.scopes and not (page.owner_only and visitor.user is not None)
        ]

    def _render(self, view: View, frame: _Frame) -> Response:
        text = self._environment.get_template(view.template).render(view=view.data, frame=frame, recorded=view.recorded)
        # Text of a damaged store can contain half of a surrogate pair.
        return HTMLResponse(text.encode("utf-8", "replace"), view.status)
