"""The names of a provider's files, which must be valid on every system."""

_QUALIFIERS = ("home", "installed")


def file_stem(provider: str) -> str:
    """The name of a provider in file names: `home:notes` becomes `home.notes`, because Windows forbids colons."""
    return provider.replace(":", ".", 1)


def provider_of(stem: str) -> str:
    """The provider that has a file of this name."""
    qualifier, _, name = stem.partition(".")
    return f"{qualifier}:{name}" if name and qualifier in _QUALIFIERS else stem
