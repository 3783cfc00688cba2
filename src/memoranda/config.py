"""Configuration: `config.yaml` in the home, overrides from the environment, secrets in `.env`.

This is the only module that reads the environment. Each part of Memoranda owns a small settings value; this module
fills them in from one table of keys, which the reference documentation is tested against. A file that cannot be
read or holds a wrong value fails closed: nothing opens until it is mended.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from memoranda.curated.settings import CuratedSettings
from memoranda.errors import ConfigError, HomeError
from memoranda.providers.settings import MODES, ProviderSettings
from memoranda.recall.settings import RecallSettings
from memoranda.support.files import make_private_directory, read_file, write_private
from memoranda.support.home import Home
from memoranda.support.lock import FileLock

_LOCK_TIMEOUT = 10.0
_SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SOUNDS_SECRET = re.compile(r"(?i)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$")


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its dotted name, default, what it takes in words, and how a raw value becomes one."""

    name: str
    default: Any
    takes: str
    read: Callable[[Any], Any]
    meaning: str

    @property
    def variable(self) -> str:
        return "MEMORANDA_" + self.name.upper().replace(".", "_")


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of one home, split by the part that it belongs to."""

    curated: CuratedSettings = field(default_factory=CuratedSettings)
    recall: RecallSettings = field(default_factory=RecallSettings)
    external: ProviderSettings = field(default_factory=ProviderSettings)
    redact_secrets: bool = True
    provider: str = ""
    nudge_interval: int = 10
    unknown_keys: tuple[str, ...] = ()


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {
        "true": True,
        "yes": True,
        "on": True,
        "1": True,
        "false": False,
        "no": False,
        "off": False,
        "0": False,
    }
    if isinstance(value, str | int) and str(value).strip().lower() in words:
        return words[str(value).strip().lower()]
    raise ValueError


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError
    number = int(value)
    if number < 0:
        raise ValueError
    return number


def _approval(value: Any) -> str:
    if value in ("propose", "explicit-only"):
        return str(value)
    # A plain yes or no is what other programs write here.
    return "propose" if _flag(value) else "off"


def _name(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    raise ValueError


def _mode(value: Any) -> str:
    if value not in MODES:
        raise ValueError
    return str(value)


def _positive(value: Any) -> int:
    number = _count(value)
    if number < 1:
        raise ValueError
    return number


def _seconds(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not 0 < number < 3_600:
        raise ValueError
    return number


def _answer_size(value: Any) -> int:
    number = _count(value)
    if number < 4000:
        raise ValueError
    return number


_A_COUNT = "a whole number, 0 or more"
KEYS = (
    Key("memory.memory_enabled", True, "true or false", _flag, "Keep and show MEMORY.md."),
    Key("memory.user_profile_enabled", True, "true or false", _flag, "Keep and show USER.md."),
    Key("memory.memory_char_limit", 2200, _A_COUNT, _count, "How many characters MEMORY.md may hold."),
    Key("memory.user_char_limit", 1375, _A_COUNT, _count, "How many characters USER.md may hold."),
    Key("memory.write_approval", "off", "off, propose or explicit-only", _approval,
        "Whether a person must approve what the agent saves."),
    Key("memory.provider", "", "a provider's name, or nothing", _name,
        "The external memory provider; see 'memoranda provider'."),
    Key("memory.nudge_interval", 10, _A_COUNT, _count,
        "After how many user turns memory is reviewed. No loop uses it yet."),
    Key("provider.mode", "hybrid", "hybrid, context or tools", _mode,
        "Whether the provider recalls into each turn (context), offers tools, or both (hybrid)."),
    Key("provider.recall_chars", 4_000, _A_COUNT, _count, "How many characters of recall a turn may get."),
    Key("provider.every_n_turns", 1, "a whole number, 1 or more", _positive, "How often the provider is asked."),
    Key("provider.recall_seconds", 2.0, "seconds, more than 0", _seconds, "How long a turn waits for recall at most."),
    Key("sessions.redact_secrets", True, "true or false", _flag,
        "Keep credentials out of recorded conversations."),
    Key("search.answer_chars", 16_000, "a whole number, 4000 or more", _answer_size,
        "How many characters one answer of session_search may have."),
)  # fmt: skip


def locate_home(home: str | Path | None = None, profile: str | None = None) -> Home:
    """Where a home lies: as given, else as MEMORANDA_HOME and MEMORANDA_PROFILE say, else ~/.memoranda."""
    if home is not None and not str(home).strip():
        raise HomeError("The home is empty. Leave it out for ~/.memoranda, or name a directory.")
    base = home or os.environ.get("MEMORANDA_HOME", "").strip() or "~/.memoranda"
    return Home.at(Path(base), profile or os.environ.get("MEMORANDA_PROFILE", "").strip() or None)


def is_set(name: str) -> bool:
    """Whether the environment has a variable, such as a provider's key."""
    return bool(os.environ.get(name, "").strip())


def editor_is_set() -> bool:
    """Whether the person has named an editor."""
    return any(os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))


def load(home: Home, environ: Mapping[str, str] | None = None) -> Config:
    """The configuration of a home; raises ConfigError, naming key, value and file, when it is not usable."""
    environ = os.environ if environ is None else environ
    document = read_document(home)
    values: dict[str, Any] = {}
    for key in KEYS:
        if environ.get(key.variable, "").strip():
            values[key.name] = _convert(key, environ[key.variable], f"the environment variable {key.variable}")
        else:
            values[key.name] = _convert(key, _look_up(document, key, home), str(home.config_file))
    return Config(
        curated=CuratedSettings(
            memory_enabled=values["memory.memory_enabled"],
            user_profile_enabled=values["memory.user_profile_enabled"],
            memory_char_limit=values["memory.memory_char_limit"],
            user_char_limit=values["memory.user_char_limit"],
            write_approval=values["memory.write_approval"],
        ),
        recall=RecallSettings(answer_chars=values["search.answer_chars"]),
        external=ProviderSettings(
            mode=values["provider.mode"],
            recall_chars=values["provider.recall_chars"],
            every_n_turns=values["provider.every_n_turns"],
            recall_seconds=values["provider.recall_seconds"],
        ),
        redact_secrets=values["sessions.redact_secrets"],
        provider=values["memory.provider"],
        nudge_interval=values["memory.nudge_interval"],
        unknown_keys=_unknown_keys(document),
    )


def value_of(config: Config, key: Key) -> Any:
    """The value of one key in a loaded configuration."""
    name = key.name.partition(".")[2]
    part = next((each for each in (config.curated, config.recall, config.external) if hasattr(each, name)), config)
    return getattr(part, name)


def find_key(name: str) -> Key:
    for key in KEYS:
        if key.name == name:
            return key
    raise ConfigError(f"{name} is not a setting. 'memoranda config list' shows those there are.")


def set_value(home: Home, name: str, raw: str) -> Any:
    """Write one setting into config.yaml, keeping everything else in it, comments included."""
    key = find_key(name)
    value = _convert(key, raw, "the command line")
    home.refuse_if_foreign()
    make_private_directory(home.root)
    with FileLock(home.lock_file, _LOCK_TIMEOUT):
        document = read_document(home)
        _look_up(document, key, home)
        _refuse_link(home.config_file)
        section, _, leaf = name.partition(".")
        if not document:
            # A file of nothing but comments is no document to the parser, and stays as it is above ours.
            comments = read_file(home.config_file) if home.config_file.exists() else b""
            write_private(home.config_file, comments + _dump({section: {leaf: value}}))
            return value
        if document.get(section) is None:
            document[section] = {}
        if getattr(getattr(document[section], "anchor", None), "value", None):
            raise ConfigError(f"{section} in {home.config_file} is shared by an alias. Change it there by hand.")
        document[section][leaf] = value
        write_private(home.config_file, _dump(document))
    return value


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise ConfigError(f"{path} is a link to {path.resolve()}. Nothing was written; change that file itself.")


def read_document(home: Home) -> dict[str, Any]:
    """config.yaml as it stands; an absent or blank file is an empty mapping."""
    path = home.config_file
    try:
        text = read_file(path).decode("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}. Nothing is opened until it is mended.") from error
    if not text.strip():
        return {}
    try:
        document = _yaml().load(text)
    except Exception as error:
        # The parser lets all kinds of errors through for odd documents; each means that the file cannot be used.
        raise ConfigError(f"{path} is not valid YAML: {error}. Nothing is opened until it is mended.") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} must hold keys and values, not {type(document).__name__}.")
    return document


def _yaml() -> Any:
    # 40 ms, and most homes have no config file.
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 100_000
    return yaml


def _dump(document: dict[str, Any]) -> bytes:
    stream = BytesIO()
    _yaml().dump(document, stream)
    return stream.getvalue()


def _look_up(document: Mapping[str, Any], key: Key, home: Home) -> Any:
    section, _, leaf = key.name.partition(".")
    values = document.get(section)
    if values is None:
        return key.default
    if not isinstance(values, Mapping):
        raise ConfigError(f"{section} in {home.config_file} must hold keys and values, not {values!r}.")
    return values.get(leaf, key.default)


def _convert(key: Key, raw: Any, source: str) -> Any:
    try:
        return key.read(raw)
    except (ValueError, TypeError):
        raise ConfigError(
            f"{key.name} in {source} is {raw!r}; it takes {key.takes}. Nothing is opened until it is mended."
        ) from None


def _unknown_keys(document: Mapping[str, Any]) -> tuple[str, ...]:
    known = {key.name for key in KEYS}
    sections = dict.fromkeys(name.partition(".")[0] for name in known)
    found = [f"{section}.{leaf}" for section in sections for leaf in document.get(section) or {}]
    return tuple(sorted(name for name in found if name not in known))


def read_secrets(home: Home) -> dict[str, str]:
    """The names and values in `.env`; callers never print the values."""
    from dotenv import dotenv_values

    path = home.secrets_file
    try:
        found = dotenv_values(stream=StringIO(read_file(path).decode("utf-8")), interpolate=False)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}. Nothing is opened until it is mended.") from error
    return {name: value for name, value in found.items() if value is not None}


def offer_secrets(home: Home, names: Collection[str]) -> None:
    """Put some of `.env` into the environment, where providers look for their keys; what is set there stays."""
    for name, value in read_secrets(home).items():
        if name in names:
            os.environ.setdefault(name, value)


def known_secrets(home: Home, environ: Mapping[str, str] | None = None) -> frozenset[str]:
    """The credentials that this machine holds: everything in `.env`, and what the environment calls a secret."""
    environ = os.environ if environ is None else environ
    named = {value.strip() for name, value in environ.items() if _SOUNDS_SECRET.search(name)}
    # A path or address that is named so (SSH_AUTH_SOCK, a key file) is no credential itself.
    return frozenset(value for value in {*named, *read_secrets(home).values()} if value and "/" not in value[:1])


def set_secret(home: Home, name: str, value: str) -> None:
    """Store one secret in `.env`, leaving all others alone."""
    if not _SECRET_NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not a name for a secret: use letters, digits and '_', like OPENAI_API_KEY.")
    if any(ord(char) < 32 or char in "\x7f\x85\u2028\u2029" or "\ud800" <= char <= "\udfff" for char in value):
        raise ConfigError(f"The value of {name} has more than one line of text; store the path of a file instead.")
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    _rewrite_secrets(home, name, value, f"{name}='{escaped}'\n")


def remove_secret(home: Home, name: str) -> bool:
    """Delete one secret from `.env`; False when there is none."""
    if name not in read_secrets(home):
        return False
    _rewrite_secrets(home, name, None, "")
    return True


def _rewrite_secrets(home: Home, name: str, value: str | None, line: str) -> None:
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    home.refuse_if_foreign()
    make_private_directory(home.root)
    with FileLock(home.lock_file, _LOCK_TIMEOUT):
        before = read_secrets(home)
        _refuse_link(home.secrets_file)
        text = home.secrets_file.read_text("utf-8") if home.secrets_file.exists() else ""
        kept = "".join(item.original.string for item in parse_stream(StringIO(text)) if item.key != name)
        kept += "\n" if kept and not kept.endswith("\n") else ""
        wanted = {**before, name: value}
        found = dotenv_values(stream=StringIO(kept + line), interpolate=False)
        if {key: each for key, each in found.items() if each is not None} | {name: found.get(name)} != wanted:
            raise ConfigError(f"{name} cannot be stored without changing others. Edit {home.secrets_file} by hand.")
        write_private(home.secrets_file, (kept + line).encode())
