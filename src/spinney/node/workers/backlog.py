"""The backlog behind a running attempt, which can be taken back without its worker's help.

A recalled worker hands back attempts that it has not begun. But it can only hand back what it has read, and only when
its interpreter checks signals: not what arrived while an attempt runs, not in a long call of C code, not when it is
stopped. The page suffices without it. Before each attempt a worker checks there whether its list is recalled, and then
writes the attempt's fence there; fences are never used twice. So when everything sent to it is recalled and the page
shows the same attempt at two checks after that, nothing behind it has begun, and nothing will: the worker sees the
recall first. (Two checks, because the recall may have been written just after the worker's own check.)"""

from collections.abc import Iterable, Sequence

from spinney.node.workers.shared_page import CELL_RECALL, SharedPage


class Backlog:
    """The backlog of one worker that runs one attempt at a time."""

    __slots__ = ("_last_recall", "_taken")

    def __init__(self) -> None:
        self._last_recall = (0, 0)
        """The last list sent when all were recalled, and the attempt that was running then."""
        self._taken: set[int] = set()

    def blocking_fence(self, page: SharedPage, lists: int) -> int:
        """Return the attempt behind which nothing of the ``lists`` sent so far begins any more; 0: none, or not known
        yet.

        To be called repeatedly: it is known at the second call.
        """
        if page.cells[CELL_RECALL] != lists:
            return 0
        before, self._last_recall = self._last_recall, (lists, page.fence())
        return self._last_recall[1] if self._last_recall == before else 0

    def take(self, fences: Iterable[int]) -> None:
        """Note that the attempts with these fences are taken back, so that the worker's own messages about them are
        ignored."""
        self._taken.update(fences)

    def not_taken(self, fences: Sequence[int]) -> list[int]:
        """Return the fences of those attempts that the worker hands back and that were not taken back before."""
        fresh = [fence for fence in fences if fence not in self._taken]
        self._taken.difference_update(fences)
        return fresh
