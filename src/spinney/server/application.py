"""Put the web application together: the layers that each request passes, and the background tasks.

What parts share is in ``app.state``, where each part finds it by its name: ``stores``, ``settings``,
``identity``, ``quotas``, ``refusals``, ``feed``, ``counters`` and others. ``app.state.beside`` lists what
lives as long as the application; it is started in its order, after the store pool, and stopped in the reverse
one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from spinney.features.stats import metrics
from spinney.features.webhooks.sender import WebhookSender
from spinney.server import api, extensions, head_requests, health, request_guard
from spinney.server import pages as ui
from spinney.server.maintenance import ServerMaintenance
from spinney.store.parts import Store
from spinney.version import VERSION
from spinney.wakeup import wake_all
from spinney.web import problems, refusal_log
from spinney.web.events import routes as events
from spinney.web.long_requests.quotas import Quotas
from spinney.web.request_context import LOOKS, REFRESH_S, Authenticator, now_us
from spinney.web.settings import ServerSettings
from spinney.web.store_pool import StorePool
from spinney.web.telemetry import instrumentation
from spinney.web.telemetry.counters import ServerCounters

DISK_THREADS = 1_000
"""The most threads for what reads and writes files. Only as many are started as are needed at once: requests that wait
for a disk that does not answer must not keep others waiting."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What an application is made of. Tests pass another authenticator here."""

    settings: ServerSettings
    open_store: Callable[[], Store]
    """Opens a store; it is called once in each thread."""
    folders: Path
    """The folder root."""
    run_dir: str | None
    """Where nodes of this host listen for wake-ups."""
    identity: Callable[[StorePool, ServerSettings], Authenticator]
    """The function that makes the authenticator of callers."""
    refresh_s: float = REFRESH_S
    """How often a long request checks its caller's rights again, in seconds."""


def make(parts: Parts) -> FastAPI:
    """Make the application; it opens nothing before it is started.

    The order of the ``add_to`` calls is that of the layers: a middleware that is added later is further
    outside, routes that are added first are compared first, and error pages extend the handlers that are
    there by then. Raises UsageError where a package that a setting needs is not installed."""
    stores = StorePool(parts.open_store, threads=parts.settings.threads)
    app = FastAPI(
        title="Spinney",
        version=VERSION,
        summary="Durable batch processing for long pipelines on machines of your own",
        openapi_url=None,
        docs_url=None,  # they would load scripts from other hosts
        redoc_url=None,
        redirect_slashes=False,  # an address with one more slash is another one, and is not found
        lifespan=_lifespan(stores),
    )
    app.state.settings, app.state.stores, app.state.run_dir = parts.settings, stores, parts.run_dir
    app.state.folders = parts.folders
    app.state.quotas = Quotas(parts.settings)
    app.state.identity = parts.identity(stores, parts.settings)
    app.state.refresh_s, app.state.looks = parts.refresh_s, asyncio.Semaphore(LOOKS)
    app.state.registry = CollectorRegistry()
    counters = app.state.counters = ServerCounters(app.state.registry)
    stores.on_error = counters.store_failed
    app.state.beside = []  # pieces that live as long as the application, in the order in which they start
    app.state.beside += [
        ServerMaintenance(
            stores,
            now_us=now_us,
            wake_nodes=lambda store: wake_all(store, parts.run_dir),
            folders=parts.folders,
        ),
        WebhookSender(stores, private=parts.settings.webhook_private, measure=counters.delivered),
    ]
    refusal_log.add_to(app)
    problems.add_to(app)
    health.add_to(app)
    events.add_to(app)
    metrics.add_to(app)
    api.add_to(app)
    extensions.add_routes(app)
    ui.add_to(app, extensions.page_sets())
    head_requests.add_to(app)
    request_guard.add_to(app, parts.settings, app.state.quotas, long_s=parts.refresh_s)
    instrumentation.add_to(app, parts.settings)
    return app


def _lifespan(stores: StorePool) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Return the lifespan handler that starts and stops all background tasks, with the store pool around them: the pool
    is opened first and closed last, since the others call it until they end."""

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(DISK_THREADS, "disk"))
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(stores)
            for beside in app.state.beside:
                await stack.enter_async_context(beside)
            yield

    return running
