"""The doctor: looks at a home from the outside, so that it works on one that cannot be opened."""

from collections.abc import Iterator

from memoranda import config
from memoranda.curated import health
from memoranda.curated.settings import CuratedSettings
from memoranda.errors import ConfigError, HomeError
from memoranda.support.findings import Finding, loose_permissions
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
    for path in (home.root, home.config_file, home.secrets_file):
        if path.exists():
            yield from loose_permissions(path)
    settings = CuratedSettings()
    try:
        loaded = config.load(home)
        settings = loaded.curated
        for name in loaded.unknown_keys:
            yield Finding("note", home.config_file, f"{name} is not a setting and has no effect",
                          "check its spelling against 'memoranda config list'")  # fmt: skip
        if loaded.provider:
            yield Finding("note", home.config_file, f"names the provider {loaded.provider}; none can be plugged in yet",
                          "leave memory.provider empty")  # fmt: skip
        config.read_secrets(home)
    except ConfigError as error:
        yield Finding("error", home.config_file, str(error), "correct the file")
    for directory in (home.memories(), *home.user_memories()):
        yield from health.check(directory, settings)
