"""Everything that a session's prompt is made of, read once and put together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from memoranda.prompt.assembly import Prompt, Section, assemble
from memoranda.prompt.date import date_line
from memoranda.prompt.guidance import guidance_for
from memoranda.prompt.identity import DEFAULT_IDENTITY, read_identity
from memoranda.prompt.platforms import hint_for
from memoranda.prompt.project_files import ProjectFiles, read_project_files
from memoranda.prompt.settings import PromptSettings


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """What a prompt depends on beside the settings; equal ones give equal bytes in any process.

    `directory` is where the user works, None when that means nothing (a gateway, a library). `window` is the model's
    context in tokens, 0 when it is not known. `tools` are the names of the tools that are really offered.
    """

    home: Path
    day: date
    tools: Collection[str] = ()
    instructions: str = ""
    skills: str = ""
    directory: Path | None = None
    memory: Sequence[str | None] = ()
    provider: str = ""
    platform: str = ""
    window: int = 0


def build_prompt(settings: PromptSettings, ingredients: PromptInputs) -> Prompt:
    """The prompt for a new session, or for one that was compressed."""
    identity = read_identity(ingredients.home)
    project = ProjectFiles()
    if settings.project_files and ingredients.directory is not None:
        project = read_project_files(ingredients.directory, window=ingredients.window, most=settings.project_file_chars)
    sections = [
        # A program that says itself who the agent is needs no default for it.
        Section("identity", "" if ingredients.instructions and identity.text == DEFAULT_IDENTITY else identity.text),
        Section("guidance", guidance_for(ingredients.tools) if settings.guidance else ""),
        Section("instructions", ingredients.instructions),
        Section("skills", ingredients.skills),
        Section("project", project.text),
        *(Section("memory", block or "") for block in ingredients.memory),
        Section("provider", ingredients.provider),
        Section("date", date_line(ingredients.day)),
        Section("platform", hint_for(ingredients.platform, settings.platform_hints)),
    ]
    return assemble(sections, [*identity.notices, *project.notices])
