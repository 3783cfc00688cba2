"""The loaded configuration: one settings object for each part, whose field defaults are the only defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from memoranda.agent.compression.settings import CompressionSettings
from memoranda.agent.prompt.settings import PromptSettings
from memoranda.agent.review.settings import ReviewSettings
from memoranda.agent.settings import AgentSettings, DelegationSettings
from memoranda.errors import ConfigError
from memoranda.external.settings import ProviderSettings
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.record.settings import RetentionSettings, StoreSettings
from memoranda.memory.skills.settings import SkillSettings
from memoranda.models.settings import ModelSettings
from memoranda.models.spending.settings import BudgetSettings
from memoranda.search.settings import RecallSettings


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of one home, split by the part that it belongs to."""

    curated: CuratedSettings = field(default_factory=CuratedSettings)
    recall: RecallSettings = field(default_factory=RecallSettings)
    external: ProviderSettings = field(default_factory=ProviderSettings)
    prompt: PromptSettings = field(default_factory=PromptSettings)
    skills: SkillSettings = field(default_factory=SkillSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    agent: AgentSettings = field(default_factory=AgentSettings)
    delegation: DelegationSettings = field(default_factory=DelegationSettings)
    compression: CompressionSettings = field(default_factory=CompressionSettings)
    review: ReviewSettings = field(default_factory=ReviewSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    public_url: str = ""
    """The address of the HTTP service as its clients see it, such as https://memory.example.com."""
    redact_secrets: bool = True
    hook_helper: bool = True
    turn_wait: float = 30.0
    """How many seconds a turn waits while another turn of its conversation is in progress."""
    provider: str = ""
    """The external memory; the first one where there are several."""
    providers: tuple[str, ...] = ()
    """All external memories, in the order in which they are asked."""
    toolsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown_keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Derive `provider` and `providers` from each other, so that a caller may give either of them."""
        providers = self.providers or ((self.provider,) if self.provider else ())
        if self.provider and self.provider not in providers:
            raise ConfigError(f"provider is {self.provider}, which is not one of providers: {', '.join(providers)}.")
        object.__setattr__(self, "providers", providers)
        object.__setattr__(self, "provider", providers[0] if providers else "")


DEFAULTS = Config()

# Settings that are stored in another part than their section, or under another name.
_ELSEWHERE = {
    "memory.provider": ("", "provider"),
    "memory.providers": ("", "providers"),
    "memory.nudge_interval": ("review", "nudge_interval"),
    "agent.delegation_depth": ("delegation", "max_depth"),
    "sessions.redact_secrets": ("", "redact_secrets"),
    "sessions.auto_prune": ("retention", "auto_prune"),
    "sessions.retention_days": ("retention", "retention_days"),
    "sessions.min_interval_hours": ("retention", "min_interval_hours"),
    "sessions.vacuum_after_prune": ("retention", "vacuum_after_prune"),
    "hooks.helper": ("", "hook_helper"),
    "server.public_url": ("", "public_url"),
    "sessions.turn_wait": ("", "turn_wait"),
}
_PARTS = {"memory": "curated", "search": "recall", "provider": "external"}


def attribute_of(setting: str) -> tuple[str, str]:
    """The part that stores a setting, and its attribute there; part "" is the configuration itself."""
    section, _, name = setting.partition(".")
    return _ELSEWHERE.get(setting, (_PARTS.get(section, section), name))
