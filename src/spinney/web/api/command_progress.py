"""Commands that tell how far they are: their answer as lines of JSON, one for each piece of progress."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request

from spinney.commands import Command
from spinney.model.errors import Refused
from spinney.web.api.json_routes import line
from spinney.web.problems import of_error
from spinney.web.request_context import RequestContext


class CommandRun:
    """One run of such a command, in a thread of the server's for what is long; it ends when nobody waits for it."""

    def __init__(self, context: RequestContext, request: Request, command: Command) -> None:
        self._context, self._request, self._command = context, request, command
        self._names = {type_: name for name, type_ in command.progress.items()}
        self._gone = threading.Event()
        """Nobody waits for it any more."""
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    async def answer(self) -> Any:
        """Do it, and return its answer."""
        try:
            return await self._context.run(
                lambda control: control.do(self._command, tell=self._tell), long=self._command.is_long()
            )
        except asyncio.CancelledError:
            self._gone.set()
            raise

    async def lines(self) -> AsyncIterator[bytes]:
        """Do it: a line for each piece of progress, and one for the answer or for what went wrong."""
        done = asyncio.create_task(self.answer())
        done.add_done_callback(lambda _: self._lines.put_nowait(None))
        try:
            while (text := await self._lines.get()) is not None:
                yield text
            error = done.exception()
            if error is None:
                yield line({"report": done.result()})
            else:
                problem = of_error(error, instance=self._request.url.path)  # type: ignore[arg-type]
                yield b'{"problem":' + bytes(problem.body) + b"}\n"
        finally:
            self._gone.set()

    def _tell(self, progress: Any) -> None:
        if self._gone.is_set():
            raise Refused("nobody waits for it any more; it was stopped, and the same request does the rest")
        text = line({self._names[type(progress)]: progress})
        self._loop.call_soon_threadsafe(self._lines.put_nowait, text)
