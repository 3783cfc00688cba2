"""Finds the page for a path, and the path for a page. An encoded slash belongs to the part that contains it."""

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, unquote_to_bytes

from memoranda.service.http.problems import Problem
from memoranda.service.viewer.page import Page, page_url

_MAX_PARAMETERS = 50
_NOTHING_HERE = "There is no page at this address."


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
        """The address of a page by its name."""
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
