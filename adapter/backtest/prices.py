"""What workers and lateness cost, in the user's money."""

from dataclasses import dataclass

from adapter.core.rules import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in one currency; None is not priced."""

    worker_hour: float | None = None
    late_minute: float | None = None  # of a minute in which the backlog time exceeds its target

    @classmethod
    def of(cls, rules: Rules) -> "Prices":
        """The prices of a workload."""
        return cls(worker_hour=rules.worker_hour_price, late_minute=rules.late_minute_price)

    def or_else(self, others: "Prices") -> "Prices":
        """These prices, and those of others for what has none."""
        return Prices(
            worker_hour=others.worker_hour if self.worker_hour is None else self.worker_hour,
            late_minute=others.late_minute if self.late_minute is None else self.late_minute,
        )

    def workers(self, worker_hours: float | None) -> float | None:
        """The price of the workers; None if it or the amount is unknown."""
        return _product(self.worker_hour, worker_hours)

    def lateness(self, late_minutes: float | None) -> float | None:
        """The price of the late time; None if it or the amount is unknown."""
        return _product(self.late_minute, late_minutes)


def _product(price: float | None, amount: float | None) -> float | None:
    return None if price is None or amount is None else price * amount
