"""The events of a turn, for a terminal, a log or a test that watches it."""

from memoranda.agent.session_views import Compression
from memoranda.models.model import ToolCall, Usage
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """The model answered or called tools; `usage` is what that call used."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The model called a tool; the call is recorded and about to be executed."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool returned, and its result is recorded."""

    call: ToolCall
    result: JsonObject


@dataclass(frozen=True, slots=True)
class ContextCompressed:
    """The context was full, and the conversation continues with a shorter one."""

    compression: Compression


@dataclass(frozen=True, slots=True)
class AnswerTruncated:
    """The answer reached the model's length limit and ends there."""


@dataclass(frozen=True, slots=True)
class PartialAnswerKept:
    """The user interrupted the answer, and the part that was shown is recorded."""

    text: str


Event = ModelAnswered | ToolCalled | ToolReturned | ContextCompressed | AnswerTruncated | PartialAnswerKept
