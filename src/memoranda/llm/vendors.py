"""The services that have a name here: their address, the variable that holds their key, the model to begin with."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Vendor:
    """A service. `api` is the form of its requests; `key` is empty where none is needed."""

    name: str
    api: Literal["openai", "anthropic"]
    key: str = ""
    base_url: str = ""
    model: str = ""
    window: int = 0


VENDORS = {
    vendor.name: vendor
    for vendor in (
        Vendor("anthropic", "anthropic", "ANTHROPIC_API_KEY", model="claude-sonnet-5-5"),
        Vendor("openai", "openai", "OPENAI_API_KEY", model="gpt-5.6-terra"),
        Vendor("openrouter", "openai", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
        # Ollama gives a model far less room than it was trained for, unless told otherwise.
        Vendor("ollama", "openai", base_url="http://localhost:11434/v1", window=8_192),
    )
}
