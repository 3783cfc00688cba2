"""The configuration of a home, split into one settings value for each part."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memoranda.agent.settings import AgentSettings, DelegationSettings
from memoranda.compression.settings import CompressionSettings
from memoranda.config.document import convert, look_up, read_document
from memoranda.config.environment import ENVIRONMENT
from memoranda.config.keys import KEYS, Key
from memoranda.curated.settings import CuratedSettings
from memoranda.errors import ConfigError
from memoranda.llm.settings import ModelSettings
from memoranda.prompt.settings import PromptSettings
from memoranda.providers.settings import ProviderSettings
from memoranda.recall.settings import RecallSettings
from memoranda.review.settings import ReviewSettings
from memoranda.skills.settings import SkillSettings
from memoranda.spending.settings import BudgetSettings
from memoranda.support.home import Home


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
    redact_secrets: bool = True
    provider: str = ""
    toolsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown_keys: tuple[str, ...] = ()


def load(home: Home, environ: Mapping[str, str] | None = None) -> Config:
    """The configuration of a home; raises ConfigError, naming key, value and file, when it is not usable."""
    environ = ENVIRONMENT if environ is None else environ
    document = read_document(home)
    values: dict[str, Any] = {}
    for key in KEYS:
        if environ.get(key.variable, "").strip():
            values[key.name] = convert(key, environ[key.variable], f"the environment variable {key.variable}")
        else:
            values[key.name] = convert(key, look_up(document, key, home), str(home.config_file))
    return Config(
        curated=CuratedSettings(
            memory_enabled=values["memory.memory_enabled"],
            user_profile_enabled=values["memory.user_profile_enabled"],
            memory_char_limit=values["memory.memory_char_limit"],
            user_char_limit=values["memory.user_char_limit"],
            write_approval=values["memory.write_approval"],
        ),
        recall=RecallSettings(answer_chars=values["search.answer_chars"]),
        external=ProviderSettings(
            mode=values["provider.mode"],
            recall_chars=values["provider.recall_chars"],
            every_n_turns=values["provider.every_n_turns"],
            recall_seconds=values["provider.recall_seconds"],
            begin_seconds=values["provider.begin_seconds"],
        ),
        prompt=PromptSettings(**_part(values, "prompt"), platform_hints=_platform_hints(document, home)),
        skills=SkillSettings(**_part(values, "skills")),
        model=ModelSettings(**_part(values, "model")),
        agent=AgentSettings(max_steps=values["agent.max_steps"]),
        delegation=DelegationSettings(max_depth=values["agent.delegation_depth"]),
        compression=CompressionSettings(**_part(values, "compression")),
        review=ReviewSettings(nudge_interval=values["memory.nudge_interval"]),
        budget=BudgetSettings(**_part(values, "budget")),
        redact_secrets=values["sessions.redact_secrets"],
        provider=values["memory.provider"],
        toolsets=_toolsets(document, home),
        unknown_keys=_unknown_keys(document),
    )


# Settings whose value is not in the part that their section is named after, or is called otherwise there.
_ELSEWHERE = {
    "memory.provider": ("", "provider"),
    "memory.nudge_interval": ("review", "nudge_interval"),
    "agent.delegation_depth": ("delegation", "max_depth"),
    "sessions.redact_secrets": ("", "redact_secrets"),
}
_PARTS = {"memory": "curated", "search": "recall", "provider": "external"}


def value_of(config: Config, key: Key) -> Any:
    """The value of one key in a loaded configuration."""
    section, _, name = key.name.partition(".")
    part, name = _ELSEWHERE.get(key.name, (_PARTS.get(section, section), name))
    return getattr(getattr(config, part) if part else config, name)


def _part(values: Mapping[str, Any], section: str) -> dict[str, Any]:
    """The settings of one section by their own names."""
    return {name.partition(".")[2]: value for name, value in values.items() if name.startswith(f"{section}.")}


def _platform_hints(document: Mapping[str, Any], home: Home) -> Mapping[str, Any]:
    """`platform_hints`: what to say about a platform, appended to what is known of it, or in its place."""
    hints = document.get("platform_hints") or {}
    if not isinstance(hints, Mapping):
        raise ConfigError(f"platform_hints in {home.config_file} must hold a text for each platform.")
    return dict(hints)


def _toolsets(document: Mapping[str, Any], home: Home) -> dict[str, tuple[str, ...]]:
    """`tools`: the toolsets of each platform, such as memory and session_search; one that is not named has them all."""
    tools = document.get("tools") or {}
    lists = tools.values() if isinstance(tools, Mapping) else [None]
    if not all(isinstance(each, list) and all(isinstance(name, str) for name in each) for each in lists):
        raise ConfigError(
            f"tools in {home.config_file} must hold a list of toolsets for each platform, such as 'telegram: [memory]'."
        )
    return {str(platform): tuple(map(str, names)) for platform, names in tools.items()}


def _unknown_keys(document: Mapping[str, Any]) -> tuple[str, ...]:
    known = {key.name for key in KEYS}
    sections = dict.fromkeys(name.partition(".")[0] for name in known)
    found = [f"{section}.{leaf}" for section in sections for leaf in document.get(section) or {}]
    return tuple(sorted(name for name in found if name not in known))
