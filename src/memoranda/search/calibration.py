"""What each measure of a hit counts for, in points: for the relevance floor, and for how sure a search is.

Points are log-odds. A hit clears the floor with no fewer than zero points. The constants are rounded results of a
logistic regression over development questions and prompts; `python -m benchmarks.relevance --data DIR --fit` prints
them, and docs/explanation/how-relevance-was-measured.md says what they mean on data that was not used for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Confidence = Literal["unsure", "likely", "sure"]
CONFIDENCES: tuple[Confidence, ...] = ("unsure", "likely", "sure")
# In points: a probability of 0.8, and of 0.5.
SURE = 1.4
LIKELY = 0.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """The points of a hit: a constant, and the weight of each measure."""

    constant: float
    weights: Mapping[str, float]


FLOOR_BY_WORDS = Calibration(
    -9.1,
    {
        "density": 2.9, "words": 2.7, "absent": -1.2, "lead": 2.6, "missing_name": -0.9,
        "question": 2.7, "about": 2.1, "here": -0.5, "how_to": -0.6,
    },
)  # fmt: skip
FLOOR_BY_MEANING = Calibration(
    -11.7,
    {
        "density": 2.1, "words": 3.0, "absent": -0.7, "lead": 1.3, "missing_name": -1.1,
        "question": 3.5, "about": 1.9, "here": -0.7, "how_to": -1.1, "meaning": 4.4,
    },
)  # fmt: skip
SEARCH_BY_WORDS = Calibration(-6.1, {"density": 2.5, "words": 1.6, "absent": -0.3, "lead": 4.2})
SEARCH_BY_MEANING = Calibration(-6.1, {"density": 2.0, "words": 1.4, "absent": 0.0, "lead": 3.4, "meaning": 2.1})
