"""Builds the prompt of a session from the files, settings and tools that it depends on."""

from collections.abc import Collection, Sequence
from datetime import date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memoranda.agent.prompt.assembly import Prompt, Section, assemble, withhold_split_attacks
from memoranda.agent.prompt.context_files import DEFAULT_IDENTITY, ProjectFiles, read_identity, read_project_files
from memoranda.agent.prompt.guidance import guidance_for, hint_for
from memoranda.agent.prompt.settings import PromptSettings
from memoranda.memory.curated.snapshot import entries_in_block
from memoranda.memory.skills.catalogue import list_descriptions
from memoranda.support.lazy_dataclass import dataclass

# Not from the locale, which differs between processes.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """What a prompt depends on besides the settings; equal inputs produce equal bytes in any process.

    `directory` is where the user works, None where there is no directory (a gateway, a library). `window` is the
    model's context in tokens, 0 when it is not known. `tools` are the names of the tools that are offered.
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


def build_prompt(settings: PromptSettings, inputs: PromptInputs) -> Prompt:
    """Build the prompt for a new session, or for one that was compressed."""
    identity = read_identity(inputs.home)
    project = ProjectFiles()
    if settings.project_files and inputs.directory is not None:
        project = read_project_files(inputs.directory, window=inputs.window, limit=settings.project_file_chars)
    # A program whose instructions say who the agent is needs no default for it.
    own_identity = identity.text if identity.text != DEFAULT_IDENTITY else ""
    sections = [
        Section("identity", own_identity or ("" if inputs.instructions else identity.text), (own_identity,)),
        Section("guidance", guidance_for(inputs.tools) if settings.guidance else ""),
        Section("instructions", inputs.instructions),
        Section("skills", inputs.skills, list_descriptions(inputs.skills)),
        Section("project", project.text, project.parts),
        *(Section("memory", block, entries_in_block(block)) for block in inputs.memory if block),
        Section("provider", inputs.provider, (inputs.provider,) if inputs.provider else ()),
        Section("date", date_line(inputs.day)),
        Section("platform", hint_for(inputs.platform, settings.platform_hints)),
    ]
    sections, split = withhold_split_attacks(sections)
    return assemble(sections, [*identity.notices, *project.notices, *split])


def date_line(day: date) -> str:
    """The day without the time, so that prompts of one day are equal byte for byte."""
    return f"This conversation began on {_WEEKDAYS[day.weekday()]}, {day.isoformat()}."


def today(timezone: str = "") -> date:
    """Today in a time zone by its IANA name; in the machine's when the name is empty or not known."""
    try:
        zone = ZoneInfo(timezone) if timezone else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        zone = None
    return datetime.now(zone).date()
