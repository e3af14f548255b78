"""HTTP to addresses that users name: a transport that reaches no private network unless it is allowed to."""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.model.settings.webhooks import require_url
    from spinney.model.values.networks import bracketed, is_exempt, is_public
    from spinney.reports.safe_transport import SafeTransport

__all__ = ["SafeTransport", "bracketed", "is_exempt", "is_public", "require_url"]

_HOMES = {
    "spinney.model.settings.webhooks": ("require_url",),
    "spinney.model.values.networks": (
        "bracketed",
        "is_exempt",
        "is_public",
    ),
    "spinney.reports.safe_transport": ("SafeTransport",),
}
__getattr__, __dir__ = on_demand(__name__, _HOMES)
