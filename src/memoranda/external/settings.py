"""The settings of external memory, the tool names that no provider may use, and the names of a provider's files."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import OWN_TOOLS

# `context`: recalled text joins each turn; `tools`: the model asks by itself; `hybrid`: both.
Mode = Literal["hybrid", "context", "tools"]
MODES: tuple[Mode, ...] = get_args(Mode)

# The tools that agents such as Hermes usually have.
_AGENT_TOOLS = frozenset({
    "clarify", "terminal", "process", "execute_code", "read_file", "write_file", "edit_file", "patch", "search_files",
    "list_files", "web_search", "web_extract", "web_fetch", "vision_analyze", "image_generate", "text_to_speech",
    "send_message", "cronjob", "browser_navigate", "browser_snapshot", "browser_click", "browser_type",
    "browser_scroll", "browser_back", "browser_press", "browser_console", "browser_get_images", "browser_vision",
    "bash", "python", "mixture_of_agents",
})  # fmt: skip
CORE_TOOLS = _AGENT_TOOLS.union(OWN_TOOLS)

_QUALIFIERS = ("home", "installed")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Limits that end in `_chars` count characters; the manager enforces every limit that ends in `_seconds`.

    A delivery that fails is retried after `first_retry_seconds`, then after twice that, up to `max_retry_seconds`. It
    is parked after `max_attempts` if others were delivered meanwhile, and then retried after longer pauses.
    """

    mode: Mode = "hybrid"
    recall_chars: int = 4_000
    every_n_turns: int = 1
    recall_seconds: float = 2.0
    prompt_chars: int = 4_000
    tool_chars: int = 50_000
    begin_seconds: float = 2.0
    start_seconds: float = 5.0
    call_seconds: float = 2.0
    tool_seconds: float = 60.0
    deliver_seconds: float = 60.0
    shutdown_seconds: float = 2.0
    lease_seconds: float = 30.0
    first_retry_seconds: float = 1.0
    max_retry_seconds: float = 600.0
    max_attempts: int = 12

    def narrowed(self, limits: Mapping[str, Any]) -> "ProviderSettings":
        """These settings with the tighter limits of a provider; a limit that is wider, or not a limit, is ignored."""
        mode = limits.get("mode")
        return replace(
            self,
            mode=mode if self.mode == "hybrid" and mode in MODES else self.mode,
            recall_chars=int(_number(limits.get("recall_chars"), self.recall_chars, min)),
            every_n_turns=int(_number(limits.get("every_n_turns"), self.every_n_turns, max)),
            recall_seconds=_number(limits.get("recall_seconds"), self.recall_seconds, min),
        )


def turns_per_delivery(limits: Mapping[str, Any]) -> int:
    """How many turns a provider wants in one delivery; 1 if it does not say."""
    return int(_number(limits.get("turns_per_delivery"), 1, max))


def _number(asked: object, allowed: float, tighter: Any) -> float:
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not 0 < asked < float("inf"):
        return allowed
    return float(tighter(asked, allowed))


def file_stem(provider: str) -> str:
    """The name of a provider in file names: `home:notes` becomes `home.notes`, because Windows forbids colons."""
    return provider.replace(":", ".", 1)


def provider_of(stem: str) -> str:
    """The provider that has a file of this name."""
    qualifier, _, name = stem.partition(".")
    return f"{qualifier}:{name}" if name and qualifier in _QUALIFIERS else stem
