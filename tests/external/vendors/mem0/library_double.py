"""The stand-in of Mem0's library as a double: faults are what its model, its embedder or its store raise."""

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import memoranda.home.config.secrets  # noqa: F401  (provides the variables that are set before the import)
from memoranda.home.config.environment import ENVIRONMENT
from tests.external.vendors.vendor_service import RETRY_AFTER, Fault, VendorDouble

STAND_IN = Path(__file__).with_name("stand_in")
_PACKAGES = ("mem0", "qdrant_client")
_VARIABLES = ("MEM0_TELEMETRY", "MEM0_DIR")


class LibraryDouble(VendorDouble):
    """The library, as if it were installed."""

    def __init__(self, library: ModuleType) -> None:
        self.library: Any = library

    @classmethod
    @contextmanager
    def start(cls) -> Iterator["LibraryDouble"]:
        before = {name: ENVIRONMENT.pop(name, None) for name in _VARIABLES}
        hidden = _forget_packages()
        sys.path.insert(0, str(STAND_IN))
        importlib.invalidate_caches()
        try:
            yield cls(importlib.import_module("mem0"))
        finally:
            sys.path.remove(str(STAND_IN))
            _forget_packages()
            sys.modules.update(hidden)
            for name, value in before.items():
                ENVIRONMENT.pop(name, None)
                if value is not None:
                    ENVIRONMENT[name] = value

    def fail(self, fault: Fault | None) -> None:
        self.library.fault = None if fault is None else self._error(fault)

    def lose_next_answer(self) -> None:
        self.library.lose_next.append(True)

    def stored_texts(self) -> list[str]:
        return [memory["memory"] for memories in self.library.stored.values() for memory in memories]

    def texts(self, user_id: str = "default") -> list[str]:
        memories = [memory for memories in self.library.stored.values() for memory in memories]
        return [memory["memory"] for memory in memories if memory["user_id"] == user_id]

    def _error(self, fault: Fault) -> BaseException:
        if isinstance(fault, int):
            # Mem0 wraps the error of the model's client.
            error: BaseException = self.library.LLMError("LLM extraction failed")
            headers = {"retry-after": str(RETRY_AFTER)} if fault == 429 else {}
            error.__cause__ = self.library.ModelError(fault, headers)
            return error
        if fault in ("truncated", "garbage"):
            return json.JSONDecodeError("Expecting value", "<html>", 0)
        return TimeoutError("Request timed out.") if fault == "slow" else ConnectionError("Connection error.")


def _forget_packages() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] in _PACKAGES]
    return {name: sys.modules.pop(name) for name in names}
