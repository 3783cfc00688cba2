"""Renders pages: Jinja2 with every value escaped, and the words in which times, numbers and texts are shown.

The addresses of style sheets and scripts contain a digest, so browsers keep them.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from memoranda import __version__
from memoranda.search.excerpts import CLOSE, OPEN
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.gate import FORM_TOKEN, Visitor
from memoranda.service.viewer.page import PREFIX, Page, PageTable, View
from memoranda.support.lazy_dataclass import dataclass

_CONTROL = dict.fromkeys((*range(9), *range(11, 13), *range(14, 32), *range(127, 160)), "\ufffd") | {13: None}
_MATCH = re.compile(f"{re.escape(OPEN)}(.{{1,200}}?){re.escape(CLOSE)}", re.DOTALL)
_DIRECTORY = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"
_TEMPLATES = Path(__file__).parent / "templates"


def moment(timestamp: float | None) -> Markup:
    """Day and time, short, as an element that has the exact time."""
    found = _local(timestamp)
    if found is None:
        return Markup('<span class="muted">unknown</span>')
    now = datetime.fromtimestamp(time.time()).astimezone()
    if found.date() == now.date():
        text = f"today {found:%H:%M}"
    elif 0 < (now.date() - found.date()).days == 1:
        text = f"yesterday {found:%H:%M}"
    else:
        text = f"{found.day} {found:%b %H:%M}" if found.year == now.year else f"{found.day} {found:%b %Y}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        found.isoformat(timespec="seconds"), f"{found:%Y-%m-%d %H:%M:%S %Z}", text
    )


def written_moment(text: str) -> Markup:
    """Day and time of a time that is stored as text; a text that is no time is shown as it is."""
    try:
        return moment(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())
    except (ValueError, OverflowError):
        return visible(text)


def author(actor: str) -> Markup:
    """Who made a change; one that arrived with `memoranda sync` was made on another machine."""
    machine = actor.removeprefix("sync:")
    return visible(actor if machine == actor else f"{machine}, another machine")


def file_size(size: int) -> str:
    """A number of bytes, short."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size:,} bytes"


def percent(share: float) -> str:
    return f"{share:.0%}"


def day(timestamp: float | None) -> str:
    """A day in words."""
    found = _local(timestamp)
    return "unknown day" if found is None else f"{found:%A}, {found.day} {found:%B %Y}"


def iso_day(timestamp: float) -> str:
    """A day as 2026-11-01."""
    found = _local(timestamp)
    return "unknown" if found is None else f"{found:%Y-%m-%d}"


def clock(timestamp: float) -> Markup:
    """The time of a day, as an element that has the exact time."""
    found = _local(timestamp)
    if found is None:
        return Markup("")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        found.isoformat(timespec="seconds"), f"{found:%Y-%m-%d %H:%M:%S %Z}", f"{found:%H:%M}"
    )


def count(number: int) -> str:
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def dollars(amount: float) -> str:
    """An amount of money; small amounts keep four digits."""
    exact = f"{amount:,.4f}"
    return f"${amount:,.2f}" if amount >= 1 or exact.endswith("00") else f"${exact}"


def visible(text: object) -> Markup:
    """A stored text for a page: escaped, with a sign for control characters that a browser would not show."""
    return escape(without_control_characters(str(text)))


def without_control_characters(text: str) -> str:
    """A text with a sign for each control character; a carriage return is no line."""
    return text.translate(_CONTROL)


def highlighted(text: str) -> Markup:
    """A snippet of a search, with the marks around its matches as elements."""
    parts = _MATCH.split(text)
    # Every second part is a match.
    return Markup("").join(
        Markup("<mark>{}</mark>").format(visible(part)) if place % 2 else visible(part)
        for place, part in enumerate(parts)
    )


def _local(timestamp: float | None) -> datetime | None:
    if timestamp is None:
        return None
    try:
        return datetime.fromtimestamp(timestamp).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


class StaticFiles:
    """The files of `static/`, read once."""

    def __init__(self) -> None:
        self._files = {path.name: path.read_bytes() for path in _DIRECTORY.iterdir() if path.suffix in _TYPES}
        digest = sha256()
        for name in sorted(self._files):
            digest.update(self._files[name])
        self._version = digest.hexdigest()[:12]

    def url(self, name: str) -> str:
        """The address of a file; raises KeyError for an unknown one."""
        _ = self._files[name]
        return f"{PREFIX}/static/{self._version}/{name}"

    def respond(self, path: str, headers: Mapping[str, str]) -> Response:
        """The file at a path; raises Problem 404. An address of another version gets the file without being kept."""
        _, _, version, name = (*path.split("/", 3), "", "", "")[:4]
        if name not in self._files:
            raise Problem(404, "not_found", "There is no such file.")
        caching = {"Cache-Control": _FOREVER} if version == self._version else {}
        return Response(self._files[name], headers=caching, media_type=_TYPES[Path(name).suffix])


_FILTERS = (
    day,
    iso_day,
    clock,
    moment,
    written_moment,
    author,
    file_size,
    percent,
    count,
    dollars,
    plural,
    visible,
    highlighted,
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
        return self._render(view, _Frame(view.title, page.name, self._navigation(visitor), visitor, notice))

    def render_plain(self, view: View) -> Response:
        """A page without a menu, for a browser that is not logged in."""
        return self._render(view, _Frame(view.title, "", ()))

    def render_problem(self, status: int, detail: str, visitor: Visitor | None) -> Response:
        """The page of an error."""
        name = HTTPStatus(status).phrase
        data = {"status": status, "name": name, "detail": detail}
        navigation = self._navigation(visitor) if visitor else ()
        return self._render(View("problem.html", name, data, status), _Frame(name, "", navigation, visitor))

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
