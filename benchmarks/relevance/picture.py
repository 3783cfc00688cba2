"""Draws the curves of the relevance floor as an SVG picture: what is given for answerable questions, and for others.

The picture has a background, and other colours where the reader prefers dark ones.
"""

from collections.abc import Iterator, Mapping, Sequence

Points = Sequence[tuple[float, float]]

_COLORS = ("#c2410c", "#2563eb", "#15803d")
_WIDTH, _HEIGHT = 560, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 20, 44, 46
_MAX_FALSE = 0.3
_STYLE = """
text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#333}.b{fill:#fff}.g{stroke:#ddd}
.l{fill:none;stroke-width:2}.e{text-anchor:end}.m{text-anchor:middle}
@media (prefers-color-scheme:dark){text{fill:#ddd}.b{fill:#1b1d21}.g{stroke:#3a3d44}.l,circle{filter:brightness(1.5)}}
"""


def draw(curves: Mapping[str, Points]) -> str:
    """Return the picture as SVG; the circles are the floor as it is (no points needed, none missing)."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img">',
            "<title>How often the hook adds evidence: questions with an answer, against prompts without one</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="b" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>',
            *_axes(),
            *(part for number, (name, points) in enumerate(curves.items()) for part in _curve(number, name, points)),
            "</svg>",
            "",
        ]
    )


def _axes() -> Iterator[str]:
    for tenth in range(0, 11, 2):
        y = _y(tenth / 10)
        yield f'<line class="g" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text class="e" x="{_LEFT - 8}" y="{y + 4}">{tenth / 10:.1f}</text>'
    for twentieth in range(0, 7):
        x = _x(twentieth / 20)
        yield f'<line class="g" x1="{x}" x2="{x}" y1="{_y(0)}" y2="{_y(1)}"/>'
        yield f'<text class="m" x="{x}" y="{_HEIGHT - _BOTTOM + 18}">{twentieth / 20:.2f}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield f'<text class="m" x="{middle}" y="{_HEIGHT - 8}">share of such prompts with evidence</text>'
    yield f'<text x="{_LEFT - 44}" y="20">share of answerable questions with evidence, against:</text>'


def _curve(number: int, name: str, points: Points) -> Iterator[str]:
    color = _COLORS[number % len(_COLORS)]
    path = " ".join(f"{_x(false)},{_y(answered)}" for false, answered in points if false <= _MAX_FALSE)
    yield f'<polyline class="l" stroke="{color}" points="{path}"/>'
    left = _LEFT + 4 + number * 150
    yield f'<line class="l" x1="{left}" x2="{left + 18}" y1="34" y2="34" stroke="{color}"/>'
    yield f'<text x="{left + 24}" y="38">{name}</text>'
    false, answered = points[len(points) // 2]
    yield f'<circle cx="{_x(false)}" cy="{_y(answered)}" r="4" fill="{color}"/>'


def _x(value: float) -> float:
    return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * min(value, _MAX_FALSE) / _MAX_FALSE, 1)


def _y(value: float) -> float:
    return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value, 1)
