"""The state of a session's provider: attaching, active, receiving deliveries, closed."""

from dataclasses import dataclass

from memoranda.external.active_provider import ActiveProvider
from memoranda.external.delivery import Delivery
from memoranda.external.guarded_call import PendingCall


@dataclass(slots=True)
class ProviderState:
    """Shared by the manager, which changes it, and the notifier, which reads it."""

    active: ActiveProvider | None = None
    attaching: PendingCall | None = None
    delivery: Delivery | None = None
    closed: bool = False

    @property
    def expected(self) -> bool:
        """Whether a provider is being loaded; notifications are queued for it meanwhile."""
        return self.active is None and self.attaching is not None and not self.attaching.done

    @property
    def ready(self) -> ActiveProvider | None:
        """The provider that can be called now."""
        return self.active if self.active is not None and self.active.ready and not self.closed else None

    def wake_delivery(self) -> None:
        if self.delivery is not None:
            self.delivery.wake()
