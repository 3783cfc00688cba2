"""Where the record of a home is: in its `state.db`, or on the server that `store.url` names."""

from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from memoranda.errors import ConfigError
from memoranda.home.config.config import Config
from memoranda.home.config.loader import load
from memoranda.home.config.secrets import credentials
from memoranda.support.home import DEFAULT_PROFILE, Home, server_index_path

PASSWORD = "MEMORANDA_STORE_PASSWORD"


def record_location(home: Home, settings: Config) -> Path | str:
    """The path of the record, or its URL; a password that the URL lacks comes from the environment or from `.env`."""
    return _complete(home, settings.store.url) if settings.store.url else home.state_db


def vectors_base(home: Home, settings: Config) -> Path:
    """The path beside which this node keeps the vectors of the record: see `vector_paths`."""
    url = server_url(home, settings)
    return server_index_path(home.root, url) if url else home.state_db


def server_url(home: Home, settings: Config | None = None) -> str:
    """The URL of the server that has the record, with the password; "" if the home has it in files."""
    url = (settings or load(home)).store.url
    return _complete(home, url) if url else ""


def store_urls(home: Home, settings: Config) -> list[str]:
    """The URLs of all stores among which users are distributed, by number; empty if they are not distributed."""
    servers = settings.store.servers
    if not servers:
        return []
    if not settings.store.url:
        raise ConfigError("store.servers needs store.url: it names the first store, which has the map of the others.")
    return [_complete(home, url) for url in (settings.store.url, *servers)]


def _complete(home: Home, url: str) -> str:
    url = _with_schema_of_profile(url, home.profile)
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at or ":" in user:
        return url
    password = credentials(home).get(PASSWORD, "")
    if not password:
        # libpq looks into PGPASSWORD and ~/.pgpass.
        return url
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}"))


def _with_schema_of_profile(url: str, profile: str) -> str:
    """A URL without a schema means another schema for every profile, because profiles share nothing."""
    parts = urlsplit(url)
    if profile == DEFAULT_PROFILE or "schema" in dict(parse_qsl(parts.query)):
        return url
    # One to one: a schema may not contain a hyphen.
    schema = "memoranda_" + profile.replace("_", "__").replace("-", "_m")
    return urlunsplit(parts._replace(query=f"{parts.query}&schema={schema}".removeprefix("&")))
