"""The prompt that a session would get now, section by section, for a person who wants to see what a model sees."""

from dataclasses import dataclass

from memoranda.api.services import HomeServices, new_session_id
from memoranda.api.session_options import SessionOptions
from memoranda.api.session_state import SessionState
from memoranda.models.tokens import estimate_text, estimate_tools


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One section of the prompt, or one tool; `tokens` is an estimate."""

    name: str
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class PromptPreview:
    """The sections in their order, the tools that are sent with them, and what was left out and why."""

    sections: tuple[PromptPart, ...]
    tools: tuple[PromptPart, ...]
    notices: tuple[str, ...]

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in (*self.sections, *self.tools))


def preview_prompt(services: HomeServices, user: str | None, source: str) -> PromptPreview:
    """Build the prompt of a new session without starting one: nothing is recorded, and no provider is started.

    A provider adds its own section and tools when a session starts; they are not part of this.
    """
    state = SessionState(services, new_session_id(), SessionOptions(source, user, external=False), is_new=True)
    prompt = state.frozen.prompt
    sections = [(section.name, services.redact(section.text)) for section in prompt.sections]
    return PromptPreview(
        tuple(PromptPart(name, text, estimate_text(text)) for name, text in sections),
        tuple(PromptPart(tool.name, tool.description, estimate_tools([tool])) for tool in state.tools),
        prompt.notices,
    )
