"""The status file of a provider: its health in the last session, so that commands can show it."""

import json
from dataclasses import asdict
from pathlib import Path

from memoranda.errors import ProviderError
from memoranda.external.health import ProviderHealth
from memoranda.external.loading.file_names import file_stem
from memoranda.support.durable_files import make_private_directory, read_file, write_private


def _status_file(home: Path, name: str) -> Path:
    return home / "providers" / f"{file_stem(name)}.status.json"


def write_status(home: Path, name: str, health: ProviderHealth) -> None:
    path = _status_file(home, name)
    make_private_directory(path.parent)
    write_private(path, json.dumps(asdict(health), ensure_ascii=False).encode())


def read_status(home: Path, name: str) -> ProviderHealth:
    """The health of a provider in its last session; empty when it has had none."""
    try:
        values = json.loads(read_file(_status_file(home, name)))
        return ProviderHealth(**values)
    except FileNotFoundError:
        return ProviderHealth()
    except (OSError, ValueError, TypeError) as error:
        raise ProviderError(
            f"{_status_file(home, name)} cannot be read ({error}). Delete it; the next session writes another."
        ) from error
