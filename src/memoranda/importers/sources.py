"""Lists the programs that can be imported from, and builds the commands that resume their sessions.

A reader is loaded when it is needed.
"""

import shlex
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from memoranda.importers.reader_protocol import ConversationReader, ResumableReader
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_later


@dataclass(frozen=True, slots=True)
class ImportSource:
    """One program; `reader` is the module and class of its reader.

    `variable` is the environment variable that moves the program's directory. `settings_variable` moves the directory
    in which every program keeps its settings, if this one keeps conversations there too. `has_notes` marks a program
    whose memories become notes, and `needs_path` one that has no directory of its own.
    """

    name: str
    program: str
    reader: str
    variable: str = ""
    settings_variable: str = ""
    has_notes: bool = False
    needs_path: bool = False

    @property
    def help(self) -> str:
        if self.has_notes:
            return f"Import what {self.program} remembers, and the conversations that it keeps."
        return f"Import the conversations that you had with {self.program}."

    def load(self, settings: Path | None = None) -> ConversationReader:
        """Return its reader; `settings` is the directory that `settings_variable` names, if it is set."""
        module, class_name = self.reader.split(":")
        reader_class = getattr(import_module(f"memoranda.importers.{module}"), class_name)
        return cast(ConversationReader, reader_class(settings) if settings else reader_class())


SOURCES = {
    source.name: source
    for source in (
        ImportSource("claude-code", "Claude Code", "coding_agents.claude_code:ClaudeCode", "CLAUDE_CONFIG_DIR"),
        ImportSource("codex", "Codex", "coding_agents.codex:Codex", "CODEX_HOME"),
        ImportSource("cursor", "Cursor", "coding_agents.cursor:Cursor", settings_variable="XDG_CONFIG_HOME"),
        ImportSource("gemini-cli", "Gemini CLI", "coding_agents.gemini_cli:GeminiCli", "GEMINI_CLI_HOME"),
        ImportSource("opencode", "OpenCode", "coding_agents.opencode:OpenCode", "XDG_DATA_HOME"),
        ImportSource("hermes", "Hermes", "hermes.reader:Hermes", "HERMES_HOME"),
        ImportSource("chatgpt", "ChatGPT (an export)", "exports.chatgpt:ChatGPT"),
        ImportSource("claude", "Claude (an export)", "exports.claude:ClaudeExport"),
        ImportSource("jsonl", "other programs (JSON lines)", "exports.jsonl:JsonLines", needs_path=True),
        ImportSource("openclaw", "OpenClaw", "openclaw.reader:OpenClaw", "OPENCLAW_STATE_DIR"),
        ImportSource("aider", "Aider", "coding_agents.aider:Aider"),
        ImportSource("cline", "Cline", "coding_agents.cline:Cline", settings_variable="XDG_CONFIG_HOME"),
        ImportSource("roo", "Roo Code", "coding_agents.cline:Roo", settings_variable="XDG_CONFIG_HOME"),
        ImportSource("continue", "Continue", "coding_agents.continue_dev:Continue", "CONTINUE_GLOBAL_DIR"),
        ImportSource(
            "copilot-chat",
            "Copilot Chat",
            "coding_agents.copilot_chat:CopilotChat",
            settings_variable="XDG_CONFIG_HOME",
        ),
        ImportSource("copilot-cli", "Copilot CLI", "coding_agents.copilot_cli:CopilotCli", "COPILOT_HOME"),
        ImportSource("goose", "Goose", "coding_agents.goose:Goose", "GOOSE_PATH_ROOT"),
        ImportSource("zed", "Zed", "coding_agents.zed:Zed"),
        ImportSource("llm", "llm (Simon Willison's command line)", "chat_apps.llm:Llm", "LLM_USER_PATH"),
        ImportSource("open-webui", "Open WebUI", "chat_apps.open_webui:OpenWebUI"),
        ImportSource("librechat", "LibreChat (an export)", "chat_apps.librechat:LibreChat"),
        ImportSource("lm-studio", "LM Studio", "chat_apps.lm_studio:LMStudio"),
        ImportSource("jan", "Jan", "chat_apps.jan:Jan"),
        ImportSource("letta", "Letta", "memory_programs.letta:Letta", has_notes=True),
        ImportSource("zep", "Zep or Graphiti", "memory_programs.zep:Zep", has_notes=True, needs_path=True),
        ImportSource(
            "claude-mem", "claude-mem", "memory_programs.claude_mem:ClaudeMem", "CLAUDE_MEM_DATA_DIR", has_notes=True
        ),
        ImportSource(
            "obsidian",
            "Obsidian and basic-memory",
            "memory_programs.vault:Vault",
            has_notes=True,
            settings_variable="XDG_CONFIG_HOME",
        ),
        ImportSource("mem0", "mem0", "memory_programs.mem0:Mem0", "MEM0_DIR", has_notes=True),
        ImportSource("langgraph", "LangGraph", "memory_programs.langgraph:LangGraph", has_notes=True, needs_path=True),
        ImportSource(
            "openai-agents", "OpenAI Agents SDK", "memory_programs.openai_agents:OpenAIAgents", needs_path=True
        ),
    )
}


# Session ids of other programs. A shell could take anything else for an option or for another command.
_SESSION_ID = compile_later(r"[A-Za-z0-9][A-Za-z0-9._:@/+=-]{0,199}")
_ABSOLUTE_PATH = compile_later(r"/|[A-Za-z]:[\\/]|\\\\")


def resume_command(session: Mapping[str, Any]) -> str:
    """Return the exact command for a session row; "" when it was not imported, or its program has no such command."""
    source = SOURCES.get(_text_column(session, "host"))
    name = _text_column(session, "host_session_id")
    if source is None or not _SESSION_ID.fullmatch(name):
        return ""
    directory = _text_column(session, "directory")
    if directory and not (_ABSOLUTE_PATH.match(directory) and directory.isprintable()):
        # The directory cannot be named safely in a command.
        return ""
    reader = source.load()
    command = reader.resume_command(name, directory or None) if isinstance(reader, ResumableReader) else ""
    return command if command.isprintable() else ""


def in_directory(command: str, directory: str | None) -> str:
    """Return a command that runs in a directory, if one is known."""
    return f"cd {shlex.quote(directory)} && {command}" if directory else command


def _text_column(session: Mapping[str, Any], name: str) -> str:
    value = session.get(name)
    return value if isinstance(value, str) else ""
