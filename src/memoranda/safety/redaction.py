"""Takes credentials out of text that is about to be recorded; what the model and its tools see stays as it was.

Two kinds are known: the very values that this machine holds (from the environment and `.env`), wherever they occur, and
text in the form that issuers give their credentials. Each becomes `[redacted:<kind>]`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from memoranda.safety.secrets import find_secrets

# Shorter values are words that happen to be settings, and would be found everywhere.
_SHORTEST_VALUE = 8
# "pwd=" and a value that counts as one.
_SHORTEST_TEXT = 12
_MOST_PARTS = 2_000_000


class Redactor:
    """Redacts text and JSON-like values, and counts what it took out until the count is collected."""

    def __init__(self, known_values: Iterable[str] = ()) -> None:
        plain = {value for value in known_values if len(value) >= _SHORTEST_VALUE}
        # Inside JSON text, such as the arguments of a tool call, a value may be written with escapes.
        escaped = {json.dumps(value, ensure_ascii=ascii)[1:-1] for value in plain for ascii in (True, False)}
        long_enough = plain | escaped
        # The longest first, so that a value that contains another is taken whole.
        self._known = tuple(sorted(long_enough, key=lambda value: (-len(value), value)))

    def text(self, text: str) -> tuple[str, int]:
        """The text without credentials, and how many there were."""
        if len(text) < _SHORTEST_VALUE:
            return text, 0
        count = 0
        for value in self._known:
            if value in text:
                count += text.count(value)
                text = text.replace(value, "[redacted:known_value]")
        found = find_secrets(text) if len(text) >= _SHORTEST_TEXT else []
        if not found:
            return text, count
        pieces, position = [], 0
        for secret in found:
            pieces += [text[position : secret.start], f"[redacted:{secret.kind}]"]
            position = secret.end
        return "".join(pieces) + text[position:], count + len(found)

    def value(self, value: Any) -> tuple[Any, int]:
        """A JSON-like value with every string in it redacted; the value that was given is not changed.

        All its text is looked at in one go; only when there is something in it, the value is taken apart.
        """
        texts: list[str] = []
        _collect(value, texts)
        together = "\n".join(texts)
        if not find_secrets(together) and not any(known in together for known in self._known):
            return value, 0
        return self._replaced(value)

    def _replaced(self, value: Any) -> tuple[Any, int]:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            pairs = [(self._replaced(key), self._replaced(item)) for key, item in value.items()]
            return {key: item for (key, _), (item, _) in pairs}, sum(key[1] + item[1] for key, item in pairs)
        if isinstance(value, list | tuple):
            items = [self._replaced(item) for item in value]
            return [item for item, _ in items], sum(count for _, count in items)
        return value, 0


def _collect(value: Any, texts: list[str]) -> None:
    """Every text in a value that is long enough to be a credential or to hold one, keys included."""
    waiting = [value]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        each = waiting.pop()
        if isinstance(each, str):
            if len(each) >= _SHORTEST_VALUE:
                texts.append(each)
        elif isinstance(each, dict):
            waiting += each.values()
            texts += [key for key in each if isinstance(key, str) and len(key) >= _SHORTEST_VALUE]
        elif isinstance(each, list | tuple):
            waiting += each
        elif isinstance(each, Mapping):
            waiting.append(dict(each))
    raise RecursionError("A value has too many parts, or contains itself.")
