"""The options with which a session is opened."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options of `Memory.session`; `parent` is the session that this one works for or branches off."""

    source: str
    user: str | None = None
    model: str = ""
    directory: Path | None = None
    instructions: str = ""
    parent: str | None = None
    relation: str | None = None
    platform: str = ""
    """The platform whose toolsets the session has, when it is not its source."""
    external: bool = True
    """Whether the session uses the external memory, if one is configured."""
