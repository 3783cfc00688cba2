"""Settings of the daily budget for background work."""

from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """Limits for one home and one calendar day; None means no limit, and 0 in either allows no background call.

    Calls with an unknown price count only against the limit on tokens.
    """

    daily_usd: float | None = 0.50
    daily_tokens: int | None = 2_000_000

    @property
    def allows_nothing(self) -> bool:
        return self.daily_usd == 0 or self.daily_tokens == 0
