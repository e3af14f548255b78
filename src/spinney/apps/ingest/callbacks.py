"""Calling back: the same guard for webhooks as for downloads, so that no profile makes us knock at private doors."""

import threading
from collections.abc import Iterator

import httpcore
import httpx

from spinney.apps.ingest import profiles, settings
from spinney.apps.ingest.fetching import Rules, Surroundings
from spinney.apps.ingest.fetching.connections import Guard
from spinney.apps.ingest.fetching.troubles import Trouble
from spinney.model.errors import UsageError


def transport() -> httpx.BaseTransport:
    """What carries one callback: to public addresses, and to the hosts that profiles allow."""
    try:
        found = settings.load()
        hosts = frozenset[str]().union(*(profiles.load(found, name).hosts for name in profiles.names_of(found)))
    except UsageError as error:
        raise OSError(f"no host can be looked up now: {error}") from None  # so that it is tried again, once mended
    return _Guarded(Rules(hosts=hosts))


class _Guarded(httpx.BaseTransport):
    def __init__(self, rules: Rules) -> None:
        self._pool = httpcore.ConnectionPool(network_backend=Guard(rules, threading.Event(), Surroundings()))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = self._pool.handle_request(asked)
        except Trouble as trouble:
            if trouble.retryable:
                raise httpx.ConnectError(trouble.reason) from None
            raise ValueError(trouble.reason) from None
        except httpcore.TimeoutException as error:
            raise httpx.ReadTimeout(str(error)) from None
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise httpx.ReadError(str(error)) from None
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions)

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._answer.iter_stream()
        except Trouble as trouble:
            raise httpx.ReadError(trouble.reason) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise httpx.ReadError(str(error)) from None

    def close(self) -> None:
        self._answer.close()
