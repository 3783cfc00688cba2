"""The settings of curated memory, and its two targets."""

from dataclasses import dataclass
from typing import Literal

Target = Literal["memory", "user"]
TARGETS: tuple[Target, ...] = ("memory", "user")
FILE_NAMES: dict[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}

DEFAULT_MEMORY_CHAR_LIMIT = 2200
DEFAULT_USER_CHAR_LIMIT = 1375

WriteApproval = Literal["off", "propose", "explicit-only"]
UntrustedWrites = Literal["propose", "save"]


CurateMode = Literal["off", "propose", "auto"]


@dataclass(frozen=True, slots=True)
class CuratorSettings:
    """`mode`: whether the curator does nothing, shows what it would do, or does it after a session."""

    mode: CurateMode = "propose"


@dataclass(frozen=True, slots=True)
class CuratedSettings:
    """Limits count code points of the whole file.

    `untrusted_writes` is what happens to a change of behaviour that untrusted text may have suggested. The results of
    `trusted_tools` are trusted.
    """

    memory_enabled: bool = True
    user_profile_enabled: bool = True
    memory_char_limit: int = DEFAULT_MEMORY_CHAR_LIMIT
    user_char_limit: int = DEFAULT_USER_CHAR_LIMIT
    write_approval: WriteApproval = "off"
    untrusted_writes: UntrustedWrites = "propose"
    trusted_tools: tuple[str, ...] = ()
    lock_timeout: float = 10.0

    def enabled(self, target: Target) -> bool:
        return self.memory_enabled if target == "memory" else self.user_profile_enabled

    def limit(self, target: Target) -> int:
        return self.memory_char_limit if target == "memory" else self.user_char_limit

    def targets(self) -> tuple[Target, ...]:
        return tuple(target for target in TARGETS if self.enabled(target))
