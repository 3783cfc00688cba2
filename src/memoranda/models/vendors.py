"""The known model services: address, environment variable of the key, default model."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Vendor:
    """A model service. `api` names the protocol it speaks; `key` is the variable of its key, empty if it needs none."""

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
        # Ollama's default context is far smaller than the window that a model was trained for.
        Vendor("ollama", "openai", base_url="http://localhost:11434/v1", window=8_192),
    )
}
