"""What happens in a turn, for whoever watches: a terminal, a log, a test."""

from dataclasses import dataclass

from memoranda.agent.session_views import Compression
from memoranda.llm.model import ToolCall, Usage
from memoranda.tools import JsonObject


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """The model has answered, or called tools; this is what the call used."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The model wants a tool; the call is recorded and about to be carried out."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool has answered, and its result is recorded."""

    call: ToolCall
    result: JsonObject


@dataclass(frozen=True, slots=True)
class ContextCompressed:
    """The context was full, and the conversation goes on with a shorter one."""

    compression: Compression


@dataclass(frozen=True, slots=True)
class AnswerTruncated:
    """The answer is as long as it may be, and was cut off there."""


Event = ModelAnswered | ToolCalled | ToolReturned | ContextCompressed | AnswerTruncated
