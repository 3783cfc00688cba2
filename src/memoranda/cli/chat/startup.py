"""From what was asked on the command line to a model, a session and an agent."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from memoranda import config
from memoranda.app import Memory, Session
from memoranda.cli.chat.output import ChatOutput
from memoranda.cli.context import EXIT_UNUSABLE
from memoranda.errors import ModelError
from memoranda.llm.model import ChatModel
from memoranda.llm.model_factory import model_for

_SOURCE = "cli"


def choose_model(memory: Memory, name: str | None, screen: ChatOutput) -> ChatModel:
    """Returns the configured model; when there is none, says how to set one up and exits."""
    settings = memory.config.model
    try:
        return model_for(replace(settings, name=name) if name else settings, config.credentials(memory.home))
    except ModelError as error:
        hint = "'memoranda demo' shows the memory at work without a model."
        exit_with_error(screen, f"{error}\n{hint}", type(error).__name__, EXIT_UNUSABLE)


def start_session(memory: Memory, model: ChatModel, session_id: str | None = None) -> Session:
    """A new session, or the one with that id, where its conversation stands now."""
    tip = memory.sessions.get_compression_tip(session_id) if session_id else None
    return memory.session(source=_SOURCE, model=model.name, session_id=tip or session_id, directory=_directory())


def _directory() -> Path | None:
    """Where the person is; None when that was deleted meanwhile."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def exit_with_error(screen: ChatOutput, text: str, kind: str, code: int) -> NoReturn:
    """Say why there can be no chat, and leave."""
    screen.trouble(text, kind)
    sys.exit(code)
