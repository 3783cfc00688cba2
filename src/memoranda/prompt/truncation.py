"""Shows the start and the end of project files that are too long for the prompt."""

from memoranda.support.shorten import shorten_middle

_HEAD_SHARE = 0.75


def truncate_middle(text: str, most: int, name: str) -> str:
    """Keeps the start and the end of a file in whole lines, and names the file to read for the rest."""
    file = name.replace("{", "{{").replace("}", "}}")
    note = f"\n[… {{total:,}} characters in all: the middle of {file} is left out here; read the file for it …]\n"
    return shorten_middle(text, most, note, head_share=_HEAD_SHARE, whole_lines=True)


def fair_shares(wanted: list[int], total: int) -> list[int]:
    """What each gets of a total: all it wants if there is enough, else the large ones give way first."""
    shares = [0] * len(wanted)
    left = total
    by_size = sorted(range(len(wanted)), key=lambda index: wanted[index])
    for place, index in enumerate(by_size):
        shares[index] = min(wanted[index], left // (len(wanted) - place))
        left -= shares[index]
    return shares
