"""The configuration as a value, and the table of all settings: name, accepted values and meaning of each.

`Config` has one settings object for each part, whose field defaults are the only defaults.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from memoranda.agent.compression.settings import CompressionSettings
from memoranda.agent.prompt.settings import PromptSettings
from memoranda.agent.review.settings import ReviewSettings
from memoranda.agent.settings import AgentSettings, DelegationSettings
from memoranda.errors import ConfigError
from memoranda.external.settings import MODES, ProviderSettings
from memoranda.memory.curated.settings import CuratedSettings, CuratorSettings
from memoranda.memory.record.settings import RetentionSettings, StoreSettings
from memoranda.memory.skills.settings import SkillSettings
from memoranda.models.settings import ModelSettings
from memoranda.models.spending.settings import BudgetSettings
from memoranda.search.settings import RecallSettings
from memoranda.support.home import is_server_url
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.suggestions import did_you_mean


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of one home, split by the part that it belongs to."""

    curated: CuratedSettings = field(default_factory=CuratedSettings)
    curate: CuratorSettings = field(default_factory=CuratorSettings)
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


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its dotted name, the accepted values in words, the parser of a raw value, and its meaning."""

    name: str
    accepts: str
    parse: Callable[[Any], Any]
    meaning: str

    @property
    def variable(self) -> str:
        return _VARIABLES.get(self.name) or "MEMORANDA_" + self.name.upper().replace(".", "_")

    @property
    def default(self) -> Any:
        return value_of(DEFAULTS, self)


_VARIABLES = {"store.url": "MEMORANDA_STORE"}
_PASSWORD = re.compile(r"(?<=://)([^/?#@:\s]*):[^/?#\s]*@")
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def _parse_flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int) else ""
    if word not in (*_YES, *_NO):
        raise ValueError
    return word in _YES


def _parse_count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError
    number = int(value)
    if number < 0:
        raise ValueError
    return number


def _at_least(lowest: int) -> Callable[[Any], int]:
    """A parser of whole numbers."""

    def parse(value: Any) -> int:
        number = _parse_count(value)
        if number < lowest:
            raise ValueError
        return number

    return parse


def _one_of(*words: str) -> Callable[[Any], str]:
    """A parser that accepts these words."""

    def parse(value: Any) -> str:
        word = value.strip() if isinstance(value, str) else value
        if word not in words:
            raise ValueError
        return str(word)

    return parse


def _parse_approval(value: Any) -> str:
    if value in ("propose", "explicit-only"):
        return str(value)
    # Other programs write a plain yes or no here.
    return "propose" if _parse_flag(value) else "off"


def _parse_name(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    raise ValueError


def _parse_origin(value: Any) -> str:
    """An address with a host and without a path; plain HTTP only on this machine."""
    address = _parse_name(value).rstrip("/")
    local = r"http://(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?"
    if address and not re.fullmatch(rf"https://[A-Za-z0-9.-]+(?::[0-9]{{1,5}})?|{local}", address):
        raise ValueError
    return address.lower()


def _parse_names(value: Any) -> tuple[str, ...]:
    """Names from a YAML list, or from a text with commas; each once."""
    if value is None:
        return ()
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def _parse_embedders(value: Any) -> tuple[str, ...]:
    names = _parse_names(value)
    if not all(name == "wordllama" or _names_one(name, "onnx:", "endpoint:") for name in names):
        raise ValueError
    return names


def _parse_reranker(value: Any) -> str:
    name = _parse_name(value)
    if name and name != "model" and not _names_one(name, "onnx:"):
        raise ValueError
    return name


def _names_one(name: str, *kinds: str) -> bool:
    return any(name.startswith(kind) and name != kind for kind in kinds)


def _parse_curate_mode(value: Any) -> str:
    # YAML reads a bare off as false.
    return _one_of("off", "propose", "auto")("off" if value is False else value)


def _parse_server(value: Any) -> str:
    url = _parse_name(value)
    if url and not is_server_url(url):
        raise ValueError
    return url


def _parse_servers(value: Any) -> tuple[str, ...]:
    urls = _parse_names(value)
    if not all(is_server_url(url) for url in urls):
        raise ValueError
    return urls


def _number_below(limit: float, *, zero: bool = False) -> Callable[[Any], float]:
    """A parser of numbers above 0, or also of 0."""

    def parse(value: Any) -> float:
        number = float(value)
        if isinstance(value, bool) or not (0 < number < limit or (zero and number == 0)):
            raise ValueError
        return number

    return parse


def _parse_amount(value: Any) -> float | None:
    """A number of 0 or more; None for an empty value or "none", which is no limit."""
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none")):
        return None
    number = float(value)
    if isinstance(value, bool) or not 0 <= number < float("inf"):
        raise ValueError
    return number


def _parse_limit(value: Any) -> int | None:
    amount = _parse_amount(value)
    return None if amount is None else _parse_count(value)


def _parse_timezone(value: Any) -> str:
    name = _parse_name(value)
    if name:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, OSError) as error:
            raise ValueError from error
    return name


_A_COUNT = "a whole number, 0 or more"
_parse_positive = _at_least(1)
_parse_seconds = _number_below(3_600)
KEYS = (
    Key("memory.memory_enabled", "true or false", _parse_flag, "Keep and show MEMORY.md."),
    Key("memory.user_profile_enabled", "true or false", _parse_flag, "Keep and show USER.md."),
    Key("memory.project_enabled", "true or false", _parse_flag, "Keep and show the memory of the current project."),
    Key("memory.memory_char_limit", _A_COUNT, _parse_count, "How many characters MEMORY.md may contain."),
    Key("memory.user_char_limit", _A_COUNT, _parse_count, "How many characters USER.md may contain."),
    Key("memory.project_char_limit", _A_COUNT, _parse_count, "How many characters each project's memory may contain."),
    Key("memory.write_approval", "off, propose or explicit-only", _parse_approval,
        "Whether a person must approve what the agent saves."),
    Key("memory.untrusted_writes", "propose or save", _one_of("propose", "save"),
        "Whether a person must approve what the agent saves after it read untrusted text, if that text may have "
        "suggested it and it would change what the agent does, or what the user said."),
    Key("memory.when_full", "refuse or make_room", _one_of("refuse", "make_room"),
        "Whether a write to a full file is refused, or moves what is of least use to notes."),
    Key("memory.trusted_tools", "a list of tools, or nothing", _parse_names,
        "Tools whose results are trusted like the user's words."),
    Key("memory.provider", "a provider's name, or nothing", _parse_name,
        "The external memory provider; see 'memoranda provider'."),
    Key("memory.providers", "a list of providers, or nothing", _parse_names,
        "Several external memory providers, instead of one; 'memoranda provider use' sets them."),
    Key("memory.nudge_interval", _A_COUNT, _parse_count,
        "After how many user turns a conversation is reviewed in the background; 0 means never."),
    Key("curate.mode", "off, propose or auto", _parse_curate_mode,
        "Whether the curator shows what it would tidy up in memory (propose), does it after a session, at most once a "
        "day (auto), or does nothing."),
    Key("curate.model", "a model's name, or nothing", _parse_name,
        "A model that suggests merges and shorter wordings to the curator, within the budget of background work; rules "
        "accept only what loses and adds nothing."),
    Key("provider.mode", "hybrid, context or tools", _one_of(*MODES),
        "Whether the provider recalls into each turn (context), offers tools, or both (hybrid)."),
    Key("provider.recall_chars", _A_COUNT, _parse_count, "How many characters of recall a turn may get."),
    Key("provider.every_n_turns", "a whole number, 1 or more", _parse_positive, "How often the provider is asked."),
    Key("provider.recall_seconds", "seconds, more than 0", _parse_seconds, "The longest that a turn waits for recall."),
    Key("provider.begin_seconds", "seconds, more than 0", _parse_seconds,
        "The longest that the start of a session waits for the provider."),
    Key("provider.start_seconds", "seconds, more than 0", _parse_seconds,
        "The longest that a provider may take to load and to start before that counts as a failure."),
    Key("provider.call_seconds", "seconds, more than 0", _parse_seconds,
        "The longest that a call of a provider may take which is neither recall, a tool nor a delivery."),
    Key("provider.tool_seconds", "seconds, more than 0", _parse_seconds,
        "The longest that a tool of a provider may take."),
    Key("provider.deliver_seconds", "seconds, more than 0", _parse_seconds,
        "The longest that a provider may take to accept a turn or another delivery."),
    Key("provider.shutdown_seconds", "seconds, more than 0", _parse_seconds,
        "The longest that the end of a session waits for deliveries and for the provider to close."),
    Key("provider.prompt_chars", _A_COUNT, _parse_count,
        "How many characters a provider may add to the system prompt."),
    Key("provider.tool_chars", "a whole number, 1000 or more", _at_least(1000),
        "How many characters an answer of a provider's tool may have."),
    Key("model.provider", "a provider of models, or nothing", _parse_name,
        "The service that runs the model: openai, anthropic, openrouter, ollama …; if empty, the model's name and the "
        "available keys decide."),
    Key("model.name", "a model's name, or nothing", _parse_name, "The model that answers."),
    Key("model.base_url", "an address, or nothing", _parse_name, "The address of an OpenAI-compatible service."),
    Key("model.api_key_env", "a variable's name, or nothing", _parse_name,
        "The environment variable that contains the key."),
    Key("model.window", _A_COUNT, _parse_count, "The model's context window in tokens; 0 means by its name."),
    Key("model.max_tokens", _A_COUNT, _parse_count,
        "How many tokens an answer may have; 0 means the provider's limit."),
    Key("agent.max_steps", "a whole number, 1 or more", _parse_positive, "How often a turn may call tools."),
    Key("agent.keep_interrupted", "true or false", _parse_flag,
        "Record what was shown of an answer before the user interrupted it, marked as interrupted."),
    Key("agent.delegation_depth", _A_COUNT, _parse_count, "How many levels of delegates there may be; 0 means none."),
    Key("compression.enabled", "true or false", _parse_flag, "Compress a context that is full."),
    Key("compression.threshold", "a number between 0 and 1", _number_below(1),
        "The share of the window at which a context is compressed."),
    Key("compression.protect_first", _A_COUNT, _parse_count, "How many first messages stay word for word."),
    Key("compression.protect_last", _A_COUNT, _parse_count, "How many last messages stay word for word."),
    Key("budget.daily_usd", "dollars, or none", _parse_amount, "What background work may cost in a day."),
    Key("budget.daily_tokens", "a whole number, or none", _parse_limit,
        "How many tokens background work may use in a day."),
    Key("skills.enabled", "true or false", _parse_flag, "Offer skills, and list them in the prompt."),
    Key("skills.agent_writes", "true or false", _parse_flag, "Let the agent write skills, not only people."),
    Key("prompt.guidance", "true or false", _parse_flag, "Explain the memory tools in the prompt."),
    Key("prompt.project_files", "true or false", _parse_flag, "Put AGENTS.md and similar files into the prompt."),
    Key("prompt.project_file_chars", _A_COUNT, _parse_count,
        "How many characters of project files the prompt shows; 0 means by the model's window."),
    Key("prompt.timezone", "an IANA name, or nothing", _parse_timezone,
        "The time zone of the date in the prompt; if empty, the machine's."),
    Key("store.url", "postgresql://user@host/database, or nothing", _parse_server,
        "The PostgreSQL server with the record; if empty, the record is state.db in the home. Its password belongs in "
        "the variable MEMORANDA_STORE_PASSWORD, in .env or in the environment."),
    Key("store.servers", "postgresql://user@host/database, several of them, or nothing", _parse_servers,
        "Further servers among which 'memoranda server shards' distributes users, in the same order on every node."),
    Key("sessions.redact_secrets", "true or false", _parse_flag,
        "Keep credentials out of recorded conversations."),
    Key("sessions.turn_wait", "seconds, 0 or more", _number_below(3_600, zero=True),
        "The longest that a turn waits while another turn of its conversation is in progress."),
    Key("sessions.auto_prune", "true or false", _parse_flag,
        "Delete old conversations automatically; 'memoranda sessions prune --automatic --dry-run' shows which."),
    Key("sessions.retention_days", "a whole number, 1 or more", _parse_positive,
        "How many days after its last message an ended conversation is old."),
    Key("sessions.min_interval_hours", "a whole number, 1 or more", _parse_positive,
        "How many hours there are at least between two automatic deletions."),
    Key("sessions.vacuum_after_prune", "true or false", _parse_flag,
        "Shrink state.db after an automatic deletion."),
    Key("hooks.helper", "true or false", _parse_flag,
        "Let the hooks of a host start a process that answers the next ones faster and ends when it is idle."),
    Key("server.public_url", "https://HOST, or nothing", _parse_origin,
        "The address of the service as clients see it through your proxy; with it, hosted MCP clients can connect."),
    Key("search.index", "node or user", _one_of("node", "user"),
        "One search index for all users of this node, or one file for each user of a server, built on first use."),
    Key("search.index_directory_mb", "a whole number, 1 or more", _parse_positive,
        "How many megabytes the index files of users may take; those not used for the longest time are deleted first."),
    Key("search.answer_chars", "a whole number, 4000 or more", _at_least(4000),
        "How many characters one answer of session_search may have."),
    Key("search.summarize", "true or false", _parse_flag,
        "Let a model summarize each conversation that a search finds, within the budget of background work."),
    Key("search.summary_model", "a model's name, or nothing", _parse_name,
        "The model that writes these summaries, at the same service as model.name; if empty, the model that answers."),
    Key("search.semantic", "true or false", _parse_flag,
        "Rank search results by meaning as well as by words; needs memoranda[semantic]."),
    Key("search.semantic_model", "wordllama, onnx:DIRECTORY or endpoint:MODEL, or several of them", _parse_embedders,
        "What compares meanings: the vectors in the package wordllama, an ONNX model with its tokenizer.json, or a "
        "model behind an OpenAI-compatible /embeddings."),
    Key("search.semantic_url", "an address, or nothing", _parse_name,
        "The address of that service, without /embeddings."),
    Key("search.semantic_api_key_env", "a variable's name, or nothing", _parse_name,
        "The variable that contains the key of that service, in .env or in the environment."),
    Key("search.semantic_index", "true or false", _parse_flag,
        "Store the vectors of all messages in a file, so that a search also finds what shares no word with it."),
    Key("search.semantic_seconds", "seconds, more than 0", _parse_seconds,
        "The longest that a search waits for meanings before it ranks by words only."),
    Key("search.rerank", "onnx:DIRECTORY, model, or nothing", _parse_reranker,
        "What compares the query with the first results one by one: a cross-encoder, or a chat model."),
    Key("search.rerank_model", "a model's name, or nothing", _parse_name,
        "The chat model that does so, at the same service as model.name; if empty, that model."),
    Key("search.rerank_seconds", "seconds, more than 0", _parse_seconds, "The longest that a search waits for it."),
    Key("search.expand", "true or false", _parse_flag,
        "Let a chat model suggest further words for every query; 'memoranda search --expand' does so once."),
    Key("search.expand_model", "a model's name, or nothing", _parse_name,
        "The chat model that suggests them, at the same service as model.name; if empty, that model."),
    Key("search.expand_seconds", "seconds, more than 0", _parse_seconds, "The longest that a search waits for it."),
)  # fmt: skip


SECTIONS = (*dict.fromkeys(key.name.partition(".")[0] for key in KEYS), "platform_hints", "tools")
"""The top level of config.yaml; the last two hold a value for each platform instead of settings."""


def value_of(config: Config, key: Key) -> Any:
    """The value of one setting in a loaded configuration."""
    part, name = attribute_of(key.name)
    return getattr(getattr(config, part) if part else config, name)


def shown_value(value: Any) -> Any:
    """A value as messages and lists show it: an address without its password."""
    if isinstance(value, tuple):
        return tuple(map(shown_value, value))
    return _PASSWORD.sub(r"\1:***@", value) if isinstance(value, str) else value


def find_key(name: str) -> Key:
    for key in KEYS:
        if key.name == name:
            return key
    suggestion = did_you_mean(name, [key.name for key in KEYS])
    raise ConfigError(f"{name} is not a setting.{suggestion} 'memoranda config list' shows all of them.")


def describe_unknown_key(name: str) -> str:
    """Says that a key or section of config.yaml has no effect, with the name that may have been meant."""
    names = [key.name for key in KEYS] if "." in name else [*SECTIONS]
    return f"{name} is not a setting and has no effect.{did_you_mean(name, names)}"
