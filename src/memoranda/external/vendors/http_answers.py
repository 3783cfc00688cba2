"""What vendors expect of answers: a shape, and statuses that are answers like any other."""

from collections.abc import Callable
from typing import Any

from memoranda.errors import PermanentProviderError, TemporaryProviderError

JsonObject = dict[str, Any]


def unless_refused(call: Callable[[], Any], default: Any, *statuses: int) -> Any:
    """The result of a call; `default` if the service refuses it with one of the statuses, 404 if none is named."""
    try:
        return call()
    except PermanentProviderError as error:
        if error.status not in (statuses or (404,)):
            raise
        return default


def as_object(answer: Any, vendor: str) -> JsonObject:
    """An answer that must be an object; raises TemporaryProviderError: something else answers at the address."""
    if not isinstance(answer, dict):
        raise TemporaryProviderError(f"{vendor} answered with {type(answer).__name__} instead of an object.")
    return answer


def as_objects(answer: Any, vendor: str) -> list[JsonObject]:
    """An answer that must be a list of objects; raises TemporaryProviderError."""
    if not isinstance(answer, list) or not all(isinstance(row, dict) for row in answer):
        raise TemporaryProviderError(f"{vendor} answered with {type(answer).__name__} instead of a list of objects.")
    return answer
