"""What stands behind a running attempt, and comes back without its worker's help.

A worker that is recalled hands back what it has not begun. But it can do so only from what it has read, and only when
its interpreter looks at signals: not what arrived while an attempt runs, not in a long call of C code, not when it is
stopped. The page tells enough without it. Before each attempt a worker looks there whether its list is recalled, and
then puts the attempt's fence there; fences are never used twice. So when everything sent to it is recalled and the
same attempt is there at two looks after that, nothing behind it has begun, and nothing of it will: the worker meets
the recall before. (Two looks, because at the first the recall may have come just behind the worker's own look.)
"""

from collections.abc import Iterable, Sequence

from spinney.node.workers.shared_page import CELL_RECALL, SharedPage


class Backlog:
    """Of one worker that runs one attempt at a time: what was seen of it, and what was taken back from it."""

    __slots__ = ("_seen", "_taken")

    def __init__(self) -> None:
        self._seen = (0, 0)
        """The last list sent, all being recalled, and the attempt that was running then."""
        self._taken: set[int] = set()

    def blocking_fence(self, page: SharedPage, lists: int) -> int:
        """The attempt behind which nothing begins any more of the ``job_lists`` sent so far; 0: none, or not known yet.

        To be asked every so often: it is known at the second look.
        """
        if page.cells[CELL_RECALL] != lists:
            return 0
        before, self._seen = self._seen, (lists, page.fence())
        return self._seen[1] if self._seen == before else 0

    def take(self, fences: Iterable[int]) -> None:
        """These are taken back; what the worker still says of them is no news."""
        self._taken.update(fences)

    def not_taken(self, fences: Sequence[int]) -> list[int]:
        """Of what the worker hands back, that which was not taken back before."""
        fresh = [fence for fence in fences if fence not in self._taken]
        self._taken.difference_update(fences)
        return fresh
