"""The settings of skills."""

from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SkillSettings:
    """Without `agent_writes` only a person may change skills; limits count code points."""

    enabled: bool = True
    agent_writes: bool = True
    skill_char_limit: int = 50_000
    file_char_limit: int = 200_000
    index_char_limit: int = 8_000
    lock_timeout: float = 10.0
