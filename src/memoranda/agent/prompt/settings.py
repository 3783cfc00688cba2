"""Settings of the system prompt."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """With `project_file_chars` of 0 the model's window decides. `timezone` is an IANA name; "" is the machine's.

    `platform_hints` contains, by platform, text to append to its hint, or a mapping with `replace` and `append`.
    """

    guidance: bool = True
    project_files: bool = True
    project_file_chars: int = 0
    timezone: str = ""
    platform_hints: Mapping[str, Any] = field(default_factory=dict)
