"""A home as a plugin written for Hermes sees it: the configuration, the profiles, and the files it may not read."""

import fnmatch
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoranda.external.loading.setup import read_settings, write_settings
from memoranda.support.durable_files import read_file
from memoranda.support.home import DEFAULT_PROFILE, Home
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

# Matched without regard to case: a file that is called .ENV is the same file on some systems.
_SECRET_FILES = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".vault-token",
    "credentials",
    "credentials.json",
    "auth.json",
    "shadow",
)
_PUBLIC_FILES = ("*.pub", ".env.example", ".env.sample", ".env.template")
_SECRET_DIRECTORIES = {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"}
_SYSTEM_DIRECTORIES = {"proc", "sys", "dev"}


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    path: Path
    is_default: bool


class HermesHome:
    """The home of one plugin."""

    def __init__(self, plugin: str, root: Path, settings_name: str = "") -> None:
        """`settings_name` is the name under which the plugin's settings are saved; by default its own."""
        self._plugin = plugin
        self._root = root
        self._settings_name = settings_name or plugin

    def load_config(self) -> dict[str, Any]:
        """Read config.yaml; `memory.<plugin>` has the settings that were saved for the plugin."""
        config = self._read_config()
        memory = config.get("memory")
        memory = dict(memory) if isinstance(memory, Mapping) else {}
        configured = memory.get(self._plugin)
        saved = read_settings(self._root, self._settings_name)
        memory[self._plugin] = (dict(configured) if isinstance(configured, Mapping) else {}) | saved
        return config | {"memory": memory}

    def save_config(self, config: Mapping[str, Any], **options: Any) -> None:
        """Save the plugin's own settings, `memory.<plugin>`; other changes are logged and not saved.

        config.yaml is the user's, and `provider setup` selects the provider itself.
        """
        before = self.load_config()
        memory = config.get("memory")
        own = memory.get(self._plugin) if isinstance(memory, Mapping) else None
        if isinstance(own, Mapping) and own:
            write_settings(self._root, self._settings_name, own)
        changed = sorted(str(key) for key, value in config.items() if key != "memory" and before.get(key) != value)
        if changed:
            _log.warning("The plugin %s may not change %s in config.yaml.", self._plugin, ", ".join(changed))

    def _read_config(self) -> dict[str, Any]:
        # The import takes 40 ms, and few plugins read the configuration.
        from ruamel.yaml import YAML

        try:
            text = read_file(self._root / "config.yaml").decode("utf-8")
        except FileNotFoundError:
            return {}
        document = YAML(typ="safe", pure=True).load(text)
        return dict(document) if isinstance(document, Mapping) else {}

    def profile_name(self) -> str:
        return self._root.name if self._root.parent.name == "profiles" else DEFAULT_PROFILE

    def default_home(self) -> Path:
        return self._root if self.profile_name() == DEFAULT_PROFILE else self._root.parent.parent

    def list_profiles(self) -> list[Profile]:
        """All profiles, the default one first."""
        base = self.default_home()
        return [Profile(name, Home.at(base, name).root, name == DEFAULT_PROFILE) for name in Home.at(base).profiles()]

    def raise_if_read_blocked(self, path: str | Path) -> None:
        """Raise ValueError for a file that a plugin may not send away: credentials, keys, and the home's own files.

        The path is checked as it is written and as it is after links are followed.
        """
        try:
            written = Path(path).expanduser().absolute()
            real = written.resolve()
            homes = [self.default_home().resolve(), self._root.resolve()]
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(f"{path} may not be read: its path cannot be resolved ({error}).") from error
        for candidate in (written, real):
            if _has_credentials(candidate):
                raise ValueError(f"{path} may not be read: it may contain credentials.")
        if any(real.is_relative_to(home) for home in homes):
            raise ValueError(f"{path} may not be read: it belongs to the home of Memoranda.")


def _has_credentials(path: Path) -> bool:
    name = path.name.lower()
    folders = {part.lower() for part in path.parts[:-1]}
    if folders & _SECRET_DIRECTORIES or (len(path.parts) > 1 and path.parts[1] in _SYSTEM_DIRECTORIES):
        return True
    return _matches(name, _SECRET_FILES) and not _matches(name, _PUBLIC_FILES)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
