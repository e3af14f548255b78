"""Calling back: guarded as downloads are, so that no profile makes us knock at private doors."""

from typing import TYPE_CHECKING

from spinney.apps.ingest.config import profiles, settings
from spinney.errors import UsageError

if TYPE_CHECKING:
    import httpx

_ADVICE = "have it added, with its port, to the hosts of the profile if it may be reached"


def transport() -> "httpx.BaseTransport":
    """What carries one callback: to public addresses, and to the hosts that profiles allow."""
    from spinney.safe_http import SafeTransport  # with httpx, which only a call needs

    try:
        found = settings.load()
        hosts = frozenset[str]().union(
            *(profiles.load(found, name).hosts for name in profiles.names_of(found))
        )
    except UsageError as error:
        raise OSError(
            f"no host can be looked up now: {error}"
        ) from None  # so that it is tried again, once mended
    return SafeTransport(hosts=hosts, advice=_ADVICE)
