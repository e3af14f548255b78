"""The queue of records that the store has not written yet.

It connects the two halves of a node: whatever ends an attempt adds a record, and the recorder removes records
when a transaction with them was committed. Between the two a record is only in this memory. A node that dies
then loses it, and its stage runs again, because its lease still exists."""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice

from spinney.model.jobs import Record


class RecordQueue:
    """A queue that keeps a record until the store has written it. It is used in the event loop."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque()
        self._wake = asyncio.Event()
        self._claim_requested = False
        self._taken = asyncio.Event()
        self.recorded = 0
        """How many records the store has written."""

    # --- for those who add ----------------------------------------------------------------

    def add(self, records: Sequence[Record]) -> None:
        """Add records behind those that wait already, and wake the recorder, which writes them with the next
        exchange."""
        self._records.extend(records)
        self._wake.set()

    def request_claim(self) -> None:
        """Request a claim, because jobs may have become claimable, or a slot can take more."""
        self._claim_requested = True
        self._wake.set()

    async def flushed(self) -> None:
        """Wait until all records that have been added by now are written. Records that are added meanwhile do
        not prolong it. It waits for as long as the database is away."""
        last = self.recorded + len(self._records)
        while self.recorded < last:
            await self._taken.wait()

    # --- for those who look ---------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._records)

    def pending(self) -> list[Record]:
        """Return the records that are not in the store yet, as far as another thread can see them."""
        return list(self._records)

    # --- for the recorder -----------------------------------------------------------------

    async def wait(self) -> None:
        """Wait until there may be something to exchange with the store."""
        await self._wake.wait()
        self._wake.clear()

    def begin_exchange(self) -> bool:
        """Return whether an exchange is due, and clear the request for a claim: one that comes during the
        exchange causes another."""
        is_due = bool(self._records) or self._claim_requested
        self._claim_requested = False
        return is_due

    def first(self, count: int) -> list[Record]:
        """Return the oldest records, at most ``count``; they stay in the queue."""
        return list(islice(self._records, count))

    def remove(self, count: int) -> None:
        """Remove the ``count`` oldest records, which the store has written or refused."""
        for _ in range(count):
            self._records.popleft()
        self.recorded += count
        self._taken.set()  # wakes only those that wait now
        self._taken.clear()
