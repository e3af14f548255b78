"""Commands that report progress: the response is lines of JSON, one for each report and one for the result.

    {"step": {…}}        any number of times, named as the command's ``progress`` has it
    {"report": {…}}      the last line, with the result; or
    {"problem": {…}}     the last line, with the reason why there is none

While there is nothing to report, an empty line goes out every ``BEAT_S`` seconds: a reverse proxy would close a silent
connection, and the command would be stopped; and a client could not know whether the server is still there.

The status is 200 before anything is known, so a client must read the last line to learn whether the command
succeeded. A response without either ended early: the connection was lost, and the same request does the
rest."""

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

BEAT_S = 15.0
"""The longest time without a line, in seconds."""


class CommandRun:
    """Runs one such command in a thread, and stops it when the client has gone. Call ``answer`` or ``lines``,
    and once."""

    def __init__(self, context: RequestContext, request: Request, command: Command) -> None:
        self._context, self._request, self._command = context, request, command
        self._names = {type_: name for name, type_ in command.progress.items()}
        self._ended = threading.Event()
        """Set when the client has gone."""
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    async def answer(self) -> Any:
        """Run the command and return its result, without the reports. Raises what the command raises. When
        the request is cancelled, the command ends at its next report."""
        try:
            return await self._context.run(
                lambda control: control.do(self._command, tell=self._tell),
                long=self._command.is_long(),
                disk=self._command.uses_folders(),
            )
        except asyncio.CancelledError:
            self._ended.set()
            raise

    async def lines(self) -> AsyncIterator[bytes]:
        """Run the command and yield a line for each report of progress, then one for its result or its
        problem. It raises nothing that the command raises, since the response has begun. When the client has
        gone, the command ends at its next report."""
        done = asyncio.create_task(self.answer())
        done.add_done_callback(lambda _: self._lines.put_nowait(None))
        try:
            while (text := await self._next()) is not None:
                yield text
            error = done.exception()
            if error is None:
                yield line({"report": done.result()})
            else:
                problem = of_error(error, instance=self._request.url.path)  # type: ignore[arg-type]
                yield b'{"problem":' + bytes(problem.body) + b"}\n"
        finally:
            self._ended.set()

    async def _next(self) -> bytes | None:
        """Return the next line, which is empty when nothing comes for ``BEAT_S``; None at the end."""
        try:
            async with asyncio.timeout(BEAT_S):
                return await self._lines.get()
        except TimeoutError:
            return b"\n"

    def _tell(self, progress: Any) -> None:
        """Queue a line for this report; the command calls this in its thread. Raises Refused when the client
        has gone, which stops the command between two steps."""
        if self._ended.is_set():
            raise Refused(
                "the client has disconnected and the command was stopped; send the same request to do the rest"
            )
        text = line({self._names[type(progress)]: progress})
        self._loop.call_soon_threadsafe(self._lines.put_nowait, text)
