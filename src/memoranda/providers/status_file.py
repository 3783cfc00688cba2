"""How the provider did in the last session, kept in the home so that a command can show it."""

import json
from dataclasses import asdict
from pathlib import Path

from memoranda.errors import ProviderError
from memoranda.providers.health import ProviderHealth
from memoranda.support.durable_files import make_private_directory, read_file, write_private


def _file(home: Path, name: str) -> Path:
    return home / "providers" / f"{name}.status.json"


def write_status(home: Path, name: str, health: ProviderHealth) -> None:
    """Write down how a provider did."""
    path = _file(home, name)
    make_private_directory(path.parent)
    write_private(path, json.dumps(asdict(health), ensure_ascii=False).encode())


def read_status(home: Path, name: str) -> ProviderHealth:
    """How a provider did when it was last used; nothing when it was not."""
    try:
        values = json.loads(read_file(_file(home, name)))
        return ProviderHealth(**values)
    except FileNotFoundError:
        return ProviderHealth()
    except (OSError, ValueError, TypeError) as error:
        raise ProviderError(f"{_file(home, name)} cannot be read ({error}). Delete it; it is made anew.") from error
