"""The doctor: looks at a home from the outside, so that it works on one that cannot be opened."""

from collections.abc import Callable, Iterator
from pathlib import Path

from memoranda import config
from memoranda.curated import health
from memoranda.curated.settings import CuratedSettings
from memoranda.errors import ConfigError, HomeError
from memoranda.support.findings import Finding, loose_permissions, not_writable
from memoranda.support.home import Home


def examine(home: Home) -> Iterator[Finding]:
    """Every finding about a home: owner, configuration, permissions, memory files, leftovers."""
    if not home.root.exists():
        return
    try:
        home.refuse_if_foreign()
    except HomeError as error:
        yield Finding("error", home.root, str(error), "name another home with --home or MEMORANDA_HOME")
        return
    yield from _as_far_as_possible(home.root, lambda: _check_root(home))
    settings = CuratedSettings()
    try:
        loaded = config.load(home)
        settings = loaded.curated
        yield from _check_config(home, loaded)
        config.read_secrets(home)
    except ConfigError as error:
        yield Finding("error", home.config_file, str(error), "correct the file")
    for directory in (home.memories(), *home.user_memories()):
        yield from _as_far_as_possible(directory, lambda place=directory: health.check(place, settings))  # type: ignore[misc]


def _as_far_as_possible(place: Path, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of a check, and one more when it cannot go on."""
    try:
        yield from check()
    except OSError as error:
        path = Path(error.filename or place)
        yield Finding("error", path, f"cannot be examined: {error.strerror}", "mend its permissions or its file type")


def _check_root(home: Home) -> Iterator[Finding]:
    yield from not_writable(home.root)
    for path in (home.root, home.config_file, home.secrets_file, home.root / "memories" / "users"):
        if path.exists():
            yield from loose_permissions(path)
    for path in sorted(home.root.glob(".*.tmp")):
        yield Finding("warning", path, "was left by a writer that was killed", "delete it", path.unlink)


def _check_config(home: Home, loaded: config.Config) -> Iterator[Finding]:
    for name in loaded.unknown_keys:
        yield Finding("note", home.config_file, f"{name} is not a setting and has no effect",
                      "check its spelling against 'memoranda config list'")  # fmt: skip
    if loaded.provider:
        yield Finding("note", home.config_file, f"names the provider {loaded.provider}; none can be plugged in yet",
                      "leave memory.provider empty")  # fmt: skip
