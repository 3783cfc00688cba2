"""Which model is chosen, and which error explains that none can be."""

import subprocess
import sys

import pytest

from memoranda.errors import ModelAuthError, ModelError
from memoranda.models import model_factory
from memoranda.models.model import Reply
from memoranda.models.model_factory import model_for
from memoranda.models.openai import OpenAIChat
from memoranda.models.settings import ModelSettings
from memoranda.testing.scripted.server import ScriptedServer

pytestmark = pytest.mark.slow

KEYS = {"ANTHROPIC_API_KEY": "a-key", "OPENAI_API_KEY": "o-key", "OPENROUTER_API_KEY": "r-key"}


@pytest.mark.parametrize(
    ("settings", "keys", "provider", "name"),
    [
        (ModelSettings(), {"ANTHROPIC_API_KEY": "k"}, "anthropic", "claude-sonnet-5-5"),
        (ModelSettings(), {"OPENAI_API_KEY": "k"}, "openai", "gpt-5.6-terra"),
        (ModelSettings(), KEYS, "anthropic", "claude-sonnet-5-5"),
        (ModelSettings(name="claude-opus-5"), KEYS, "anthropic", "claude-opus-5"),
        (ModelSettings(name="gpt-5.5"), KEYS, "openai", "gpt-5.5"),
        (ModelSettings(name="deepseek/deepseek-v4"), KEYS, "openrouter", "deepseek/deepseek-v4"),
        (ModelSettings("openrouter", "a/b"), KEYS, "openrouter", "a/b"),
        (ModelSettings("ollama", "qwen3"), {}, "ollama", "qwen3"),
        (ModelSettings(name="m", base_url="http://localhost:8080/v1"), {}, "openai", "m"),
    ],
)
def test_the_model_follows_from_settings_and_keys(
    settings: ModelSettings, keys: dict[str, str], provider: str, name: str
) -> None:
    """A provider that is named, else the one that the name means, else one that there is a key for."""
    model = model_for(settings, keys)
    assert (model.provider, model.name) == (provider, name)


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        (ModelSettings(), "ANTHROPIC_API_KEY"),
        (ModelSettings("openai"), "OPENAI_API_KEY"),
        (ModelSettings("openai", api_key_env="MY_KEY"), "MY_KEY"),
        (ModelSettings(name="claude-opus-5"), "ANTHROPIC_API_KEY"),
    ],
)
def test_the_error_for_a_missing_key_says_how_to_set_it(settings: ModelSettings, variable: str) -> None:
    """It has the name, the command, and what works without a key."""
    with pytest.raises(ModelAuthError, match=f"memoranda secret set {variable}") as caught:
        model_for(settings, {})
    assert "ollama" in str(caught.value)


def test_the_error_for_an_unknown_provider_names_the_known_ones() -> None:
    """It also says how to use any other service."""
    with pytest.raises(ModelError, match=r"openrouter.*base_url"):
        model_for(ModelSettings("acme"), {})
    with pytest.raises(ModelError, match=r"model\.name"):
        model_for(ModelSettings("openrouter"), KEYS)


def test_the_error_for_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """This is true when the model is chosen and when it is called."""
    monkeypatch.setattr(model_factory, "find_spec", lambda _: None)
    with pytest.raises(ModelError, match=r"pip install 'memoranda\[anthropic\]'"):
        model_for(ModelSettings(), KEYS)
    monkeypatch.setattr(OpenAIChat, "package", "no_such_sdk")
    with pytest.raises(ModelError, match=r"pip install 'memoranda\[no_such_sdk\]'"):
        OpenAIChat(ModelSettings(name="m"), "k").reply("", [])


def test_settings_reach_the_service() -> None:
    """Address, key of another name, window and limit."""
    with ScriptedServer([Reply("Hi")], key="mine") as server:
        settings = ModelSettings("openai", "m", server.openai_url, 9_000, 50, api_key_env="MINE")
        model = model_for(settings, {"MINE": " mine\n"})
        assert model.reply("", [{"role": "user", "content": "Hi"}]).text == "Hi"
    assert model.window == 9_000
    assert server.received[0].json["max_tokens"] == 50


def test_choosing_a_model_imports_no_sdk() -> None:
    """They take seconds; the first question may, the start of a program may not."""
    program = (
        "import sys; from memoranda.models.model_factory import model_for\n"
        "from memoranda.models.settings import ModelSettings\n"
        "model_for(ModelSettings(), {'ANTHROPIC_API_KEY': 'k'}); model_for(ModelSettings(), {'OPENAI_API_KEY': 'k'});"
        "print([name for name in ('openai', 'anthropic', 'httpx2', 'pydantic') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
