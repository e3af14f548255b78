"""Estimates the sizes of payloads before they are fetched."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

from spinney.apps.ingest.fetch import response_headers, urls
from spinney.apps.ingest.fetch.downloads import size_of
from spinney.apps.ingest.fetch.errors import Halt, TryFailed
from spinney.apps.ingest.fetch.http_client import HttpClient, status_error
from spinney.apps.ingest.fetch.parallel_tasks import ParallelTasks
from spinney.apps.ingest.fetch.rules import Estimate, FetchFailed, Rules
from spinney.files.paths import NotAdmitted

_NO_HEAD = frozenset({405, 501})
"""The statuses of a server that does not support HEAD (RFC 9110 sections 15.5.6 and 15.6.2)."""


def estimate(
    urls_: Sequence[str],
    rules: Rules,
    *,
    at_once: int = 16,
    stopped: Callable[[], bool] = lambda: False,
    answered: Callable[[str], None] = lambda host: None,
    skipped_hosts: frozenset[str] = frozenset(),
) -> list[Estimate]:
    """Return the size of each URL by HEAD (``file:`` by the file system), in the order given.

    A problem with one URL stops no other, and is a warning: only fetching shows whether a file is available. (A URL
    signed for GET answers HEAD with 403.) But a host that does not answer ends the call, since waiting for its other
    files would be in vain; hosts in ``skipped_hosts`` are not asked, and their sizes are unknown. ``answered``: as in
    ``fetch_all``. Raises FetchFailed, Stopped.
    """
    halt = Halt()
    rules = replace(rules, skipped_hosts=rules.skipped_hosts | skipped_hosts)
    client = HttpClient(rules, halt, at_once=at_once, answered=answered)

    def estimate_url(url: str, _count: Callable[[int], None]) -> Estimate:
        try:
            return Estimate(url=url, size_bytes=_size(client, url, rules))
        except NotAdmitted as error:
            return Estimate(url=url, problem=str(error))
        except TryFailed as failure:
            shown = urls.shown_text(url)
            if failure.unresponsive and failure.host not in skipped_hosts:
                raise FetchFailed(shown, failure.reason, True, name=shown, host=failure.host) from None
            return Estimate(url=url, problem=f"{shown}: {failure.reason}")
        except OSError as error:
            shown = urls.shown_text(url)
            return Estimate(url=url, problem=f"{shown} cannot be read ({error.strerror}); make it readable")

    with closing(client):
        return ParallelTasks(
            urls_, estimate_url, at_once=at_once, halt=halt, progress=lambda _: None, stopped=stopped
        ).run()


def _size(client: HttpClient, url: str, rules: Rules) -> int | None:
    """Return the size of one file; None: its server does not give it. Raises NotAdmitted, TryFailed, OSError."""
    parsed = urls.admitted(url)
    if parsed.scheme == "file":
        return size_of(*urls.beneath(parsed, rules.file_roots))
    try:
        return _content_length(client, url, rules)
    except TryFailed as failure:
        if failure.unresponsive or not failure.retryable:
            raise
        # Once more, since a connection that was kept alive may close just as it is used again; downloads have more
        # tries.
        return _content_length(client, url, rules)


def _content_length(client: HttpClient, url: str, rules: Rules) -> int | None:
    """Return the length that a server announces for HEAD; None where it refuses HEAD or encodes the content.
    Raises TryFailed for another status, or when there is no answer."""
    with client.request("HEAD", url, {}) as answer:
        if answer.status in _NO_HEAD:
            return None
        if answer.status != 200:
            raise status_error(answer, rules)
        if response_headers.encoding_of(answer.headers):
            return None
        return response_headers.length_of(answer.headers)
