"""Rewrites the refusals of memory writes for people, who use commands instead of tool arguments."""

from memoranda.memory.curated.operations import MemoryRefusal
from memoranda.memory.curated.settings import FILE_NAMES


def refusal_for_person(refusal: MemoryRefusal) -> str:
    """Returns the message of a refusal, with the commands that help."""
    name = FILE_NAMES[refusal.target]
    if refusal.reason == "no_match":
        hint = (
            " An entry differs only in capitals:" if refusal.matches else " 'memoranda memory list' shows the entries."
        )
        return f"No entry of {name} contains that text. Nothing was written.{hint}"
    if refusal.reason == "ambiguous":
        return (
            f"{len(refusal.matches)} different entries of {name} contain that text. Nothing was written. "
            "Type a longer part that only one of them has:"
        )
    if refusal.reason == "over_budget":
        sizes = refusal.message.partition(" Nothing was written.")[0]
        return (
            f"{sizes} Nothing was written. Shorten an entry with 'memoranda memory replace' or remove one with "
            "'memoranda memory remove', then try again. "
            f"'memoranda config set memory.{refusal.target}_char_limit' raises the limit."
        )
    return refusal.message
