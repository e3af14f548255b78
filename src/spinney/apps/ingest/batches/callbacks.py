"""The transport of callbacks, restricted as downloads are, so that no profile can reach private addresses."""

from typing import TYPE_CHECKING

from spinney.apps.ingest.config import profiles, settings
from spinney.errors import UsageError

if TYPE_CHECKING:
    import httpx

_ADVICE = "have it added, with its port, to the hosts of the profile if it may be reached"


def transport() -> "httpx.BaseTransport":
    """Return the transport of one callback, which reaches public addresses and the hosts that profiles allow. Raises
    OSError while settings or a profile cannot be read."""
    from spinney.safe_http import SafeTransport  # with httpx, which only a call needs

    try:
        config = settings.load()
        hosts = frozenset[str]().union(
            *(profiles.load(config, name).hosts for name in profiles.names_of(config))
        )
    except UsageError as error:
        raise OSError(f"no host can be looked up now: {error}") from None  # an OSError is tried again
    return SafeTransport(hosts=hosts, advice=_ADVICE)
