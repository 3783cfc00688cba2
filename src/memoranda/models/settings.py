"""Settings of the chat model."""

from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The user's choice of a model; `memoranda.models.model_factory` fills in what is empty or 0.

    `provider` is a name from `memoranda.models.model_factory`; any other OpenAI-compatible service is "openai" with a
    `base_url`. `deadline_seconds` covers a whole call with all its `tries`.
    """

    provider: str = ""
    name: str = ""
    base_url: str = ""
    window: int = 0
    max_tokens: int = 0
    deadline_seconds: float = 300.0
    api_key_env: str = ""
    tries: int = 4
