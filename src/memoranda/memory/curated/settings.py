"""The settings of curated memory, and its targets: the agent's notes, the user's profile, and the memory of a project.

The target of a project is its identity as sessions record it (`support.projects`), in a form that can be the name of a
directory: `github.com/owner/name#3f2a9c81d0e4` is `project:github.com+owner+name#3f2a9c81d0e4`.
"""

from typing import Literal
from urllib.parse import quote, unquote

from memoranda.support.canonical_text import digest
from memoranda.support.lazy_dataclass import dataclass

Target = str
TARGETS: tuple[Target, ...] = ("memory", "user")
FILE_NAMES: dict[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}
PROJECT: Target = "project"
"""The memory of the project that one works in."""
NOTES: Target = "notes"
# The first label of the items that are notes; programs use "notes" for their own.
NOTES_NAMESPACE = "curated-notes"
"""What is kept without a limit, found by search and shown in no prompt; no file has it."""
ITEMS: Target = "items"
"""What programs keep as items of the record; no file has it."""
PROJECTS = "projects"
"""The folder with one directory per project."""

_NAMES = FILE_NAMES | {PROJECT: "the memory of the project", NOTES: "the notes", ITEMS: "the items"}

DEFAULT_MEMORY_CHAR_LIMIT = 2200
DEFAULT_USER_CHAR_LIMIT = 1375

_SIGN = f"{PROJECT}:"
# The longest name of a file is 255 bytes.
_MAX_FOLDER_CHARS = 200

WriteApproval = Literal["off", "propose", "explicit-only"]
UntrustedWrites = Literal["propose", "save"]
WhenFull = Literal["refuse", "make_room"]


CurateMode = Literal["off", "propose", "auto"]


@dataclass(frozen=True, slots=True)
class CuratorSettings:
    """`mode`: whether the curator does nothing, shows what it would do, or does it after a session.

    `model` is a model of the configured service that suggests merges and shorter wordings; without one, none is asked.
    """

    mode: CurateMode = "propose"
    model: str = ""


@dataclass(frozen=True, slots=True)
class CuratedSettings:
    """Limits count code points of the whole file.

    `untrusted_writes` is what happens to a change of behaviour that untrusted text may have suggested. The results of
    `trusted_tools` are trusted.
    """

    memory_enabled: bool = True
    user_profile_enabled: bool = True
    project_enabled: bool = True
    memory_char_limit: int = DEFAULT_MEMORY_CHAR_LIMIT
    user_char_limit: int = DEFAULT_USER_CHAR_LIMIT
    project_char_limit: int = DEFAULT_MEMORY_CHAR_LIMIT
    write_approval: WriteApproval = "off"
    untrusted_writes: UntrustedWrites = "propose"
    trusted_tools: tuple[str, ...] = ()
    when_full: WhenFull = "refuse"
    lock_timeout: float = 10.0

    def enabled(self, target: Target) -> bool:
        if is_project(target):
            return self.project_enabled
        return self.memory_enabled if target == "memory" else self.user_profile_enabled

    def limit(self, target: Target) -> int:
        if is_project(target):
            return self.project_char_limit
        return self.memory_char_limit if target == "memory" else self.user_char_limit

    def targets(self) -> tuple[Target, ...]:
        return tuple(target for target in TARGETS if self.enabled(target))


def is_project(target: Target) -> bool:
    return target == PROJECT or target.startswith(_SIGN)


def is_target(target: object) -> bool:
    """Whether something can be the target of a stored change."""
    if not isinstance(target, str):
        return False
    return target in TARGETS or (target.startswith(_SIGN) and project_target(project_in(target)) == target)


def project_target(identity: str) -> Target:
    """The target of a project, from its identity as sessions record it."""
    folder = quote(identity, safe="/#@=,~ ").replace("/", "+")
    if len(folder) > _MAX_FOLDER_CHARS:
        folder = f"{folder[:100]}={digest(identity)[:16]}"
    return _SIGN + (folder if folder.strip(".") else folder.replace(".", "%2E"))


def project_in(target: Target) -> str:
    """The identity of the project that a target is the memory of; "" for another target."""
    return unquote(target.removeprefix(_SIGN).replace("+", "/")) if target.startswith(_SIGN) else ""


def file_name(target: Target) -> str:
    """The name of the file that has a target; also that of its row in a table."""
    if target in _NAMES:
        return _NAMES[target]
    if not is_target(target):
        raise ValueError(f"{target[:60]!r} is no target of curated memory.")
    return f"{PROJECTS}/{target.removeprefix(_SIGN)}/{FILE_NAMES['memory']}"


def target_of(name: str) -> Target | None:
    """The target that a file of this name has; None for another file."""
    folder = name.removeprefix(f"{PROJECTS}/").removesuffix(f"/{FILE_NAMES['memory']}")
    possible = filter(is_target, (*TARGETS, _SIGN + folder))
    return next((target for target in possible if file_name(target) == name), None)
