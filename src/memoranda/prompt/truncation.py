"""Showing the beginning and the end of a text that is too long, and saying that something is missing."""

_HEAD_SHARE = 0.75


def truncate_middle(text: str, most: int, name: str) -> str:
    """A text with at most `most` characters: its head and its tail in whole lines, and between them what is missing."""
    if len(text) <= most:
        return text
    marker = f"\n[… {len(text):,} characters in all: the middle of {name} is left out here; read the file for it …]\n"
    room = most - len(marker)
    if room <= 0:
        return text[: max(0, most)]
    head = text[: int(room * _HEAD_SHARE)]
    tail = text[len(text) - (room - len(head)) :] if room > len(head) else ""
    return _whole_lines(head) + marker + _whole_lines(tail[::-1])[::-1]


def _whole_lines(text: str) -> str:
    """Without the piece of a line at its end, unless nearly all of it is that piece."""
    end = text.rfind("\n")
    return text[:end] if end > len(text) // 2 else text


def fair_shares(wanted: list[int], total: int) -> list[int]:
    """What each gets of a total: all it wants if there is enough, else the large ones give way first."""
    shares = [0] * len(wanted)
    left = total
    by_size = sorted(range(len(wanted)), key=lambda index: wanted[index])
    for place, index in enumerate(by_size):
        shares[index] = min(wanted[index], left // (len(wanted) - place))
        left -= shares[index]
    return shares
