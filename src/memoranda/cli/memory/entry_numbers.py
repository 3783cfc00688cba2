"""Numbers of entries, as `memoranda memory list` shows them, where a command expects a part of an entry."""

from collections.abc import Sequence

from memoranda.cli.context import Invocation
from memoranda.memory.curated.settings import FILE_NAMES, Target
from memoranda.memory.curated.store import MemoryStore


def number_to_handle(invocation: Invocation, store: MemoryStore, targets: Sequence[Target], old_text: str) -> str:
    """The handle of the entry with this number; `old_text` itself if it is not the number of an entry.

    Ends the command where the number is also a part of another entry: it must not change the one that was not meant.
    """
    if not old_text.isdecimal():
        return old_text
    views = [store.view(target) for target in targets]
    if any(entry.text == old_text for view in views for entry in view.entries):
        return old_text
    number = int(old_text)
    numbered = [(view.target, view.entries[number - 1]) for view in views if 1 <= number <= len(view.entries)]
    containing = [(view.target, entry) for view in views for entry in view.entries if old_text in entry.text]
    found = numbered + [each for each in containing if each not in numbered]
    if not numbered:
        return old_text
    if len(found) == 1:
        return numbered[0][1].handle
    handles = [entry.handle for _, entry in found]
    lines = [f"{entry.handle}  {FILE_NAMES[target]}  {entry.visible_text}" for target, entry in found]
    message = (
        f"{old_text} can mean several entries: by its number, or as a part of one. Nothing was changed; use a handle."
    )
    invocation.fail("\n  - ".join([message, *lines]), {"reason": "ambiguous", "error": message, "matches": handles})
