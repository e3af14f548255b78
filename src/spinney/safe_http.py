"""HTTP to addresses that users name, which reaches no private network unless it is allowed to.

``SafeTransport`` is a transport of httpx for single requests. ``SafeAddresses`` is the rule that it follows, for code
with connections and limits of its own."""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.host.resolver import Resolve as Resolve
    from spinney.host.resolver import resolve as resolve
    from spinney.model.settings.webhooks import require_url as require_url
    from spinney.model.values.networks import bracketed as bracketed
    from spinney.model.values.networks import is_exempt as is_exempt
    from spinney.model.values.networks import is_loopback as is_loopback
    from spinney.model.values.networks import is_public as is_public
    from spinney.reports.safe_addresses import ForbiddenAddress as ForbiddenAddress
    from spinney.reports.safe_addresses import SafeAddresses as SafeAddresses
    from spinney.reports.safe_transport import SafeTransport as SafeTransport
else:
    __all__, __getattr__, __dir__ = on_demand(
        __name__,
        {
            "spinney.host.resolver": "Resolve resolve",
            "spinney.model.settings.webhooks": "require_url",
            "spinney.model.values.networks": "bracketed is_exempt is_loopback is_public",
            "spinney.reports.safe_addresses": "ForbiddenAddress SafeAddresses",
            "spinney.reports.safe_transport": "SafeTransport",
        },
    )
