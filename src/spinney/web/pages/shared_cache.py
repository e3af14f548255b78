"""What seldom changes and may be a little old, looked at once for all who see the same: names that fields propose.

Not for what a live page tells of: it asks because something has changed, and an answer from before that would stand
there until the next change. That is what ``coalescing`` is for.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")

KEPT_MAX = 200


@dataclass(slots=True, kw_only=True)
class _Answer:
    task: "asyncio.Task[Any]"
    made_s: float


class SharedCache:
    """Answers by what was asked, and by who may see them: the key has to say both."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._answers: dict[Hashable, _Answer] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]], *, for_s: float = 1.0) -> T:
        """What ``make`` answers, or answered less than ``for_s`` ago. What it raises is raised to all who wait, and
        not kept."""
        now_s = self._monotonic()
        found = self._answers.get(key)
        if found is None or (found.task.done() and now_s - found.made_s >= for_s):
            found = self._begin(key, make)
        # A reader who goes away must not end the work that others wait for.
        return cast(T, await asyncio.shield(found.task))

    def _begin(self, key: Hashable, make: Callable[[], Awaitable[Any]]) -> _Answer:
        if len(self._answers) >= KEPT_MAX:
            self._answers = {k: a for k, a in self._answers.items() if not a.task.done()}

        async def work() -> Any:
            return await make()

        answer = _Answer(task=asyncio.create_task(work()), made_s=self._monotonic())
        self._answers[key] = answer

        def done(task: "asyncio.Task[Any]") -> None:
            answer.made_s = self._monotonic()
            bad = task.cancelled() or task.exception() is not None
            if bad and self._answers.get(key) is answer:
                del self._answers[key]

        answer.task.add_done_callback(done)
        return answer
