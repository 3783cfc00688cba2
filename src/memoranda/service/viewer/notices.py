"""A sentence that the page after a form shows once: it travels in a cookie, so that no address contains it."""

from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response

from memoranda.service.viewer.page import PREFIX

_COOKIE = "memoranda_notice"
_MAX_CHARS = 600
_SECONDS = 60


def put(response: Response, text: str) -> None:
    """Give the next page a sentence."""
    response.set_cookie(
        _COOKIE, quote(text[:_MAX_CHARS], safe=""), max_age=_SECONDS, path=PREFIX, httponly=True, samesite="strict"
    )


def take(request: Request) -> str:
    """The sentence for this page, or ""."""
    return unquote(request.cookies.get(_COOKIE, ""))[:_MAX_CHARS]


def clear(response: Response) -> None:
    """Remove the sentence that was shown."""
    response.delete_cookie(_COOKIE, path=PREFIX, httponly=True, samesite="strict")
