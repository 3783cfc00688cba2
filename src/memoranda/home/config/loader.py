"""Loads the configuration of a home: each setting from the environment, else from the file, else its default.

The loaded configuration also says where the record is: in `state.db`, or on the server that `store.url` names.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from memoranda.errors import ConfigError
from memoranda.home.config.config import DEFAULTS, KEYS, SECTIONS, Config, attribute_of, find_key
from memoranda.home.config.config_file import (
    PROVIDER_KEYS,
    describe_provider_conflict,
    look_up,
    parse_value,
    read_document,
)
from memoranda.home.config.environment import ENVIRONMENT
from memoranda.home.config.secrets import credentials
from memoranda.support.home import DEFAULT_PROFILE, Home, server_index_path
from memoranda.support.suggestions import did_you_mean


def load(home: Home, environ: Mapping[str, str] | None = None) -> Config:
    """Load the configuration of a home; raises ConfigError, naming key, value and file, when it is not usable."""
    environ = ENVIRONMENT if environ is None else environ
    document = read_document(home)
    parts: dict[str, dict[str, Any]] = {"prompt": {"platform_hints": _platform_hints(document, home)}}
    for key in KEYS:
        if environ.get(key.variable, "").strip():
            value = parse_value(key, environ[key.variable], f"the environment variable {key.variable}")
        else:
            value = parse_value(key, look_up(document, key, home), str(home.config_file))
        part, name = attribute_of(key.name)
        parts.setdefault(part, {})[name] = value
    own = parts.pop("")
    own["provider"], own["providers"] = _choose_providers(own["provider"], own["providers"], environ, home)
    settings = {part: replace(getattr(DEFAULTS, part), **values) for part, values in parts.items()}
    return Config(**settings, **own, toolsets=_toolsets(document, home), unknown_keys=_unknown_keys(document))


def _choose_providers(
    one: str, several: tuple[str, ...], environ: Mapping[str, str], home: Home
) -> tuple[str, tuple[str, ...]]:
    """The first provider and all of them, from the two settings that name them."""
    if one and several and one not in several:
        from_environment = [bool(environ.get(find_key(name).variable, "").strip()) for name in PROVIDER_KEYS]
        if from_environment[0] == from_environment[1]:
            if from_environment[0]:
                raise ConfigError(describe_provider_conflict(one, several, "the environment"))
            conflict = describe_provider_conflict(one, several, str(home.config_file))
            remedy = f"'memoranda config set memory.provider {several[0]}' keeps the several."
            raise ConfigError(f"{conflict} {remedy} Nothing is opened until it is fixed.")
        # A variable overrides the file, whichever of the two settings it is.
        one, several = (one, ()) if from_environment[0] else ("", several)
    several = several or ((one,) if one else ())
    return several[0] if several else "", several


def _platform_hints(document: Mapping[str, Any], home: Home) -> Mapping[str, Any]:
    """`platform_hints`: text that is appended to the hint of a platform, or replaces it."""
    hints = document.get("platform_hints") or {}
    if not isinstance(hints, Mapping):
        raise ConfigError(f"platform_hints in {home.config_file} must contain a text for each platform.")
    return dict(hints)


def _toolsets(document: Mapping[str, Any], home: Home) -> dict[str, tuple[str, ...]]:
    """`tools`: the toolsets of each platform, such as memory and session_search; an unlisted platform has them all."""
    tools = document.get("tools") or {}
    lists = tools.values() if isinstance(tools, Mapping) else [None]
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in lists):
        raise ConfigError(
            f"tools in {home.config_file} must list the toolsets of each platform, such as 'telegram: [memory]'."
        )
    return {str(platform): tuple(map(str, names)) for platform, names in tools.items()}


def _unknown_keys(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Names unknown settings, and sections spelt almost like one of ours; other sections are other programs'."""
    known = {key.name for key in KEYS}
    sections = dict.fromkeys(name.partition(".")[0] for name in known)
    found = [f"{section}.{leaf}" for section in sections for leaf in document.get(section) or {}]
    misspelt = [name for name in map(str, document) if name not in SECTIONS and did_you_mean(name, SECTIONS)]
    return tuple(sorted([*(name for name in found if name not in known), *misspelt]))


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
