"""Which model answers, and within which bounds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What a user can set about the model; what is empty or 0 is found out by `memoranda.llm.model_factory`.

    `provider` is a name from `memoranda.llm.vendors`; any other OpenAI-compatible service is "openai" with a
    `base_url`. `deadline_seconds` holds for a whole call with all its tries.
    """

    provider: str = ""
    name: str = ""
    base_url: str = ""
    window: int = 0
    max_tokens: int = 0
    deadline_seconds: float = 300.0
    api_key_env: str = ""
    tries: int = 4
