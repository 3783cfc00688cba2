"""`Page`: one address of the viewer as a value, what a page receives and returns, and the table that finds it.

An encoded slash of a path belongs to the part that contains it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

from memoranda.api.memory import Memory
from memoranda.home.access.keys import Scope
from memoranda.service.http.callers import Caller
from memoranda.service.http.problems import Problem
from memoranda.service.http.service import Service
from memoranda.support.lazy_dataclass import dataclass

PREFIX = "/view"
_MAX_PARAMETERS = 50
_NOTHING_HERE = "There is no page at this address."


@dataclass(frozen=True, slots=True)
class View:
    """A page to render: the name of a template, and the data that the template knows as `view`."""

    template: str
    title: str
    data: object
    status: int = 200
    recorded: frozenset[str] = frozenset()
    """The sessions that the record has, of those that the page names; templates know it as `recorded`."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """Where the browser continues after a form, and a sentence that the next page shows once."""

    url: str
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Download:
    """A file that the browser saves, produced part by part in threads."""

    name: str
    media_type: str
    parts: Iterator[bytes]


Reply = View | Redirect | Download


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A checked request, as a page receives it in a thread."""

    service: Service
    caller: Caller
    user: str | None
    """The user, as stored, whose memory is shown; None is the home's owner."""
    path: Mapping[str, str]
    """The variable parts of the path by name, decoded."""
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    request_id: str = ""

    @property
    def memory(self) -> Memory:
        """The home as that user sees it."""
        return self.service.memory_of(self.user)

    @property
    def has_record(self) -> bool:
        """Whether there are any conversations; without, pages must not open the record, which would create it."""
        return self.memory.services.has_record

    def may(self, scope: Scope) -> bool:
        """Whether the caller has a scope, so that a page offers its buttons."""
        return scope in self.caller.scopes

    def number(self, name: str, default: int, *, largest: int = 1_000_000_000) -> int:
        """A parameter of the query as a number from 0 to `largest`; raises Problem 404 for anything else."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit()) or len(text) > 15 or int(text) > largest:
            raise Problem(404, "not_found", f"{name} is not a number between 0 and {largest:,}.")
        return int(text)

    def audit(self, action: str, subject: str = "") -> None:
        """Note a change in the audit log, if the caller came with an API key; the owner's commands note none."""
        if self.caller.key_id:
            self.service.audit.add(
                key_id=self.caller.key_id,
                tenant=self.caller.tenant,
                user=self.user,
                action=action,
                subject=subject,
                request_id=self.request_id,
            )


Handler = Callable[[PageRequest], Reply]


@dataclass(frozen=True, slots=True)
class Page:
    """One path below `/view`: what GET shows, and what its form does."""

    name: str
    """How templates and tests name it: `url("session", session="…")`."""
    path: str
    """Such as `/sessions/{session}`."""
    show: Handler | None = None
    submit: Handler | None = None
    """Handles POST. It runs only for a request from the viewer's own page, with the token of the login."""
    label: str = ""
    """The text in the navigation; a page without one is not listed there."""
    scope: Scope = "read"
    submit_scope: Scope = "curate"
    owner_only: bool = False
    """Whether only the home's owner may see it: it is about the whole home, and not about one user."""
    download: bool = False
    """Whether GET gives a file instead of a page."""


def page_url(path: str, **values: object) -> str:
    """The address of a page: values that its path names go into the path, the others into the query.

    A value of None or "" is left out of the query.
    """
    query: dict[str, str] = {}
    for name, value in values.items():
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
        elif value not in (None, ""):
            query[name] = str(value)
    return f"{PREFIX}{path}" + (f"?{urlencode(query)}" if query else "")


class PageTable:
    """All pages of the viewer."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = {page.name: page for page in pages}
        assert len(self.pages) == len(pages), "two pages have the same name"
        self._parts = [(page.path.split("/"), page) for page in pages]

    def find(self, path: str) -> tuple[Page, dict[str, str]]:
        """The page at a path as it was sent, and the variable parts of it; raises Problem 404."""
        sent = path.split("/")
        for parts, page in self._parts:
            if len(parts) == len(sent) and all(
                part.startswith("{") or part == value for part, value in zip(parts, sent, strict=True)
            ):
                pairs = zip(parts, sent, strict=True)
                return page, {part[1:-1]: _decode(value) for part, value in pairs if part.startswith("{")}
        raise Problem(404, "not_found", _NOTHING_HERE)

    def url(self, name: str, **values: object) -> str:
        return page_url(self.pages[name].path, **values)


def read_parameters(query: bytes) -> Mapping[str, str]:
    """The parameters of a query; of a repeated one, the last. Raises Problem 400."""
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS
        )
    except ValueError:
        raise Problem(400, "invalid", "The address is not UTF-8, or has too many parameters.") from None
    return dict(pairs)


def _decode(value: str) -> str:
    try:
        return unquote_to_bytes(value).decode()
    except UnicodeDecodeError:
        raise Problem(404, "not_found", _NOTHING_HERE) from None
