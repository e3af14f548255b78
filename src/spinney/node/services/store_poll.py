"""Poll the store: wake-ups may be lost, but polling detects every commit.

One cheap query, ``Store.signature``, whose answer differs after any commit of another process. Everything
that depends on such commits listens to the signal ``committed`` instead of polling for itself."""

from spinney.node.context import NodeContext
from spinney.node.services.loop import every


class StorePoll:
    """Sends the signal ``committed`` whenever the store's signature has changed. ``run`` is its task."""

    def __init__(self, context: NodeContext) -> None:
        self._context, self._signature = context, -1

    async def run(self) -> None:
        """Poll every ``poll_s`` seconds until the task is cancelled."""
        await every(self._context.settings.poll_s, self._poll, "polling")

    async def _poll(self) -> None:
        signature = await self._context.reader.call(lambda store: store.signature())
        if signature != self._signature:
            self._signature = signature
            self._context.signals.committed()
