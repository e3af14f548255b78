"""HTTP: the status of a service, its redirects, the end of its certificate, and how long it takes."""

from datetime import UTC, datetime, timedelta

from spinney.apps.monitor.checks.fetch import Unreachable, fetch
from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.tasks.findings import NOT_APPLICABLE, Finding, error, warning
from spinney.apps.monitor.tasks.modules import Context

NAME = "url_status_codes"
DESCRIPTION = "The service answers by HTTP, in time and with a valid certificate"
_HEAD_BYTES = 4096
"""How much of the body is read: the status matters, and a service may send any amount."""


def check(service: Service, context: Context) -> Finding:
    """Fetch the beginning of what the URI leads to, and report the gravest fault alone: no answer or a status
    from 300 on (errors), a certificate that ends soon, a redirect, a slow answer (warnings). It is not
    applicable to other schemes."""
    if not service.uri.lower().startswith(("http:", "https:")):
        return NOT_APPLICABLE
    try:
        fetched = fetch(service.uri, context, body_max=_HEAD_BYTES)
    except Unreachable as unreachable:
        return unreachable.finding
    if fetched.status >= 400:
        return error("http_status", f"Invalid HTTP status code {fetched.status}")
    if fetched.status >= 300:
        return error(
            "http_redirect", f"Invalid HTTP status code {fetched.status}: too many or broken redirects"
        )
    ends = fetched.certificate_ends
    if ends is not None and ends - datetime.now(UTC) < timedelta(days=context.network.certificate_days):
        return warning("certificate_ends", f"The TLS certificate ends on {ends:%Y-%m-%d}")
    if fetched.redirects:
        codes = ", ".join(map(str, fetched.redirects))
        return warning(
            "success_after_redirect", f"Success with http code {fetched.status} after redirection ({codes})"
        )
    if fetched.elapsed_s > context.network.slow_s:
        return warning("slow", f"The answer took {fetched.elapsed_s:.1f} s")
    return Finding(info=f"http_status_code: {fetched.status}")
