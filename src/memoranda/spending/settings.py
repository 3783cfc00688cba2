"""How much background work may spend in a day."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """Limits for one home and one calendar day; None is no limit, and 0 in either allows no background call at all.

    Calls whose price is unknown cost nothing that could be counted, so the limit on tokens is theirs.
    """

    daily_usd: float | None = 0.50
    daily_tokens: int | None = 2_000_000

    @property
    def allows_nothing(self) -> bool:
        return self.daily_usd == 0 or self.daily_tokens == 0
