"""Builds the model client that the settings and the available keys call for, from the known model services."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Literal

from memoranda.errors import ModelAuthError, ModelError
from memoranda.models.anthropic.client import AnthropicMessages
from memoranda.models.model import ChatModel
from memoranda.models.openai import OpenAIChat
from memoranda.models.sdk_model import missing_package
from memoranda.models.settings import ModelSettings
from memoranda.support.lazy_dataclass import dataclass


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


_HELP = (
    "Store a key with 'memoranda secret set {key}' (or put it into the environment). Without one, 'ollama' as "
    "model.provider uses a model on this machine."
)


def model_for(settings: ModelSettings, secrets: Mapping[str, str]) -> ChatModel:
    """Returns the configured model; without settings, the default model of the first vendor that has a key.

    Raises ModelAuthError when a key is missing, and ModelError for other settings that a person must correct.
    """
    vendor = _vendor(settings, secrets)
    chosen = replace(
        settings,
        provider=vendor.name,
        name=settings.name or vendor.model,
        base_url=settings.base_url or vendor.base_url,
        window=settings.window or vendor.window,
    )
    if not chosen.name:
        raise ModelError(f"{vendor.name} serves many models: set model.name to one of them.")
    key = _key(chosen, vendor, secrets)
    # Checked before the conversation starts; importing the SDK takes a second, so that happens with the first call.
    if find_spec(vendor.api) is None:
        raise missing_package(vendor.api)
    return AnthropicMessages(chosen, key) if vendor.api == "anthropic" else OpenAIChat(chosen, key)


def _vendor(settings: ModelSettings, secrets: Mapping[str, str]) -> Vendor:
    if settings.provider:
        if settings.provider not in VENDORS:
            raise ModelError(
                f"There is no model provider {settings.provider!r} (known: {', '.join(VENDORS)}). For another "
                "OpenAI-compatible service, use 'openai' and its address in model.base_url."
            )
        return VENDORS[settings.provider]
    if settings.name.startswith("claude"):
        return VENDORS["anthropic"]
    if settings.base_url or settings.name.startswith(("gpt-", "o1", "o3", "o4")):
        return VENDORS["openai"]
    for vendor in VENDORS.values():
        # Without a model name, only a vendor with a default model can be used.
        if vendor.key and secrets.get(vendor.key) and (settings.name or vendor.model):
            if settings.name and "/" in settings.name and vendor.name != "openrouter":
                continue
            return vendor
    raise ModelAuthError(f"No model is set up yet. {_HELP.format(key='ANTHROPIC_API_KEY')}")


def _key(chosen: ModelSettings, vendor: Vendor, secrets: Mapping[str, str]) -> str:
    variable = chosen.api_key_env or vendor.key
    key = secrets.get(variable, "").strip() if variable else ""
    # A self-hosted server often needs no key; it refuses the request if it does.
    optional = not vendor.key or (chosen.base_url and chosen.base_url != vendor.base_url and not chosen.api_key_env)
    if not key and not optional:
        raise ModelAuthError(f"There is no key for {vendor.name}. {_HELP.format(key=variable)}")
    return key
