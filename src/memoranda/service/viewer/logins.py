"""Who is logged in to the viewer: links that work once, and signed cookies.

A cookie contains what the server needs to know (which key, which user, until when) and its signature, so nothing is
stored for a login, and every node of a fleet recognises it. A login ends with its time, with its key, or by logging
out; `home/access/service_database.py` stores the last case for other nodes.
"""

import base64
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from threading import Lock

from memoranda.support.lazy_dataclass import dataclass

LOGIN, LOGOUT = "/login", "/logout"
LINK_SECONDS = 60.0
LOGIN_SECONDS = 12 * 3600.0
# A login by a link ends with the process that made the link.
LINK_LOGIN_SECONDS = 30 * 86400.0
_MAX_LINKS = 100
_MAX_COOKIE_CHARS = 2_000


class LoginLinks:
    """The tokens of login links: each is valid once, and for a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._valid_until: dict[str, float] = {}

    def create(self) -> str:
        """A new token, for the person who starts the viewer."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            now = self._clock()
            self._valid_until = {key: until for key, until in self._valid_until.items() if until > now}
            if len(self._valid_until) >= _MAX_LINKS:
                self._valid_until.clear()
            self._valid_until[_digest(token)] = now + LINK_SECONDS
        return token

    def redeem(self, token: str) -> bool:
        """Whether a token is valid; it is not valid again."""
        with self._lock:
            return self._valid_until.pop(_digest(token), 0.0) > self._clock()


@dataclass(frozen=True, slots=True)
class Login:
    """One login of one browser."""

    id: str
    key_id: str
    """The API key it was made with; empty for the owner of the home."""
    user: str | None
    """The user as the login form named it."""
    until: float


class Logins:
    """Signs, recognises and ends logins."""

    def __init__(self, secret: Callable[[], bytes], *, seconds: float = LOGIN_SECONDS) -> None:
        """`secret` returns the key of the signatures; it is asked when the first login needs it."""
        self._load_secret = secret
        self._secret: bytes | None = None
        self._seconds = seconds
        self._lock = Lock()
        self._ended: dict[str, float] = {}

    def create(self, key_id: str, user: str | None) -> tuple[Login, str]:
        """A new login and the value of its cookie."""
        login = Login(secrets.token_urlsafe(16), key_id, user, time.time() + self._seconds)
        payload = base64.urlsafe_b64encode(json.dumps(asdict(login)).encode()).decode()
        return login, f"{payload}.{self._sign('cookie', payload)}"

    def find(self, cookie: str | None) -> Login | None:
        """The login of a cookie; None if it is missing, forged, over or ended."""
        if not cookie or len(cookie) > _MAX_COOKIE_CHARS or not cookie.isascii():
            return None
        payload, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature, self._sign("cookie", payload)):
            return None
        login = Login(**json.loads(base64.urlsafe_b64decode(payload)))
        if login.until <= time.time() or login.id in self._ended:
            return None
        return login

    def end(self, login: Login) -> None:
        """Refuse a login from now on."""
        with self._lock:
            now = time.time()
            self._ended = {key: until for key, until in self._ended.items() if until > now} | {login.id: login.until}

    def form_token(self, login: Login) -> str:
        """What every form of this login must contain: a page of another site cannot know it."""
        return self._sign("form", login.id)

    def is_form_token(self, login: Login, token: str) -> bool:
        """Whether a form was made for this login."""
        return hmac.compare_digest(token.encode(), self.form_token(login).encode())

    def _sign(self, purpose: str, text: str) -> str:
        if self._secret is None:
            self._secret = self._load_secret()
        return hmac.new(self._secret, f"viewer {purpose} {text}".encode(), sha256).hexdigest()


def new_secret() -> bytes:
    """A secret that ends with this process."""
    return secrets.token_bytes(32)


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
