"""Chooses the model and starts the session of a chat."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from memoranda.api.memory import Memory
from memoranda.api.session import Session
from memoranda.cli.chat.output import ChatOutput
from memoranda.cli.context import EXIT_UNUSABLE
from memoranda.errors import ModelError
from memoranda.home import config
from memoranda.models.model import ChatModel
from memoranda.models.model_factory import model_for

_SOURCE = "cli"


def choose_model(memory: Memory, name: str | None, output: ChatOutput) -> ChatModel:
    """Returns the configured model; when there is none, says how to set one up and exits."""
    settings = memory.config.model
    try:
        return model_for(replace(settings, name=name) if name else settings, config.credentials(memory.home))
    except ModelError as error:
        hint = "'memoranda demo' shows the memory at work without a model."
        exit_with_error(output, f"{error}\n{hint}", type(error).__name__, EXIT_UNUSABLE)


def start_session(memory: Memory, model: ChatModel, session_id: str | None = None) -> Session:
    """Starts a new session, or resumes the latest session of the conversation that `session_id` belongs to."""
    latest = memory.sessions.get_compression_tip(session_id) if session_id else None
    return memory.session(
        source=_SOURCE, model=model.name, session_id=latest or session_id, directory=_current_directory()
    )


def _current_directory() -> Path | None:
    """Returns the current directory; None when it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def exit_with_error(output: ChatOutput, text: str, kind: str, code: int) -> NoReturn:
    """Shows why the chat cannot start, and exits."""
    output.show_error(text, kind)
    sys.exit(code)
