"""Files compressed with Zstandard: the message that says what to install is right."""

import re
import tomllib
from pathlib import Path

from memoranda.importers.zstandard import MISSING_LIBRARY

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_named_extra_can_decompress() -> None:
    """After doing what the message says, packed files can be read."""
    named = re.search(r"pip install 'memoranda\[(\w+)\]'", MISSING_LIBRARY)
    assert named is not None
    extras = tomllib.loads(_PROJECT.read_text())["project"]["optional-dependencies"]
    assert any(each.startswith("zstandard") for each in extras[named[1]])
