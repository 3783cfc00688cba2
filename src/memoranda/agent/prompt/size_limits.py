"""Shortens files that are too long for a prompt, and divides the available characters between several of them."""

from memoranda.support.shorten import shorten_middle

_HEAD_SHARE = 0.75


def shorten_file(text: str, limit: int, name: str) -> str:
    """The start and the end of a file in whole lines, with a note in between that says what is missing."""
    shown_name = name.replace("{", "{{").replace("}", "}}")
    note = f"\n[… {{total:,}} characters in all: the middle of {shown_name} is left out here; read the file for it …]\n"
    return shorten_middle(text, limit, note, head_share=_HEAD_SHARE, whole_lines=True)


def fair_shares(wanted: list[int], total: int) -> list[int]:
    """Divide a total: each gets all it wants if there is enough, else the largest ones get less first."""
    shares = [0] * len(wanted)
    left = total
    by_size = sorted(range(len(wanted)), key=lambda index: wanted[index])
    for done, index in enumerate(by_size):
        shares[index] = min(wanted[index], left // (len(wanted) - done))
        left -= shares[index]
    return shares
