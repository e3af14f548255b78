"""The spans of attempts and of their records, for jobs that were submitted in a trace.

A span is sent only when its attempt is recorded, because only then it is known that the attempt counts. There are no
spans for what a node had not recorded when it died; the attempts that another node runs in their place have spans of
their own."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from spinney.model.jobs import Lease, Record
from spinney.model.outcomes import FAULTS
from spinney.tracing import traceparents

if TYPE_CHECKING:
    from spinney.tracing.otlp import SpanSender


class AttemptSpans:
    """Remembers the leases of traced jobs until their records are written, and sends two spans for each: the attempt,
    and below it the exchange with the store that recorded it.

    A node without ``otlp`` has none of these, and one that has leases of no traced job makes one test a list."""

    def __init__(self, sender: "SpanSender", node: str) -> None:
        self._sender, self._node = sender, node
        self._open: dict[int, Lease] = {}
        """By fence; as many as the node has leases of traced jobs."""

    def leased(self, leases: Iterable[Lease]) -> None:
        """Note the leases that the node got."""
        for lease in leases:
            # What stands in a damaged row must not end the node.
            if lease.trace is not None and traceparents.is_sampled(traceparents.valid(lease.trace)):
                self._open[lease.fence] = lease

    def recorded(
        self, records: Iterable[Record], refused: Collection[int], *, begun_us: int, ended_us: int
    ) -> None:
        """Send the spans of attempts whose records were written from ``begun_us`` to ``ended_us``
        (microseconds since 1970). ``refused``: the fences of records that the store did not take, because
        their lease was gone; they have no spans. Each fence is forgotten here, whether a span was sent for it
        or not."""
        if not self._open:
            return
        for record in records:
            lease = self._open.pop(record.fence, None)
            # A lease that was handed back before its attempt began has no span.
            if lease is not None and record.started_us and record.fence not in refused:
                self._send(lease, record, begun_us, ended_us)

    def _send(self, lease: Lease, record: Record, begun_us: int, ended_us: int) -> None:
        """Send two spans: the attempt, as a child of the submission's span, and its record, as a child of the
        attempt. The ids of both follow from the submission's trace and the fence, so that a stage could name
        the attempt's span before it was sent."""
        submission = lease.trace or ""
        attempt = traceparents.of_attempt(submission, lease.fence)
        attributes: dict[str, str | int] = {
            "spinney.job.id": lease.job_id,
            "spinney.job.type": lease.type,
            "spinney.job.stage": lease.stage,
            "spinney.job.attempt": lease.attempt,
            "spinney.node": self._node,
            "spinney.outcome": str(record.outcome),
        }
        self._sender.send(
            f"{lease.type} {lease.stage}",
            traceparent=attempt,
            parent=submission,
            begun_us=record.started_us,
            ended_us=max(record.started_us, record.ended_us),
            attributes=attributes,
            error=record.message or str(record.outcome) if record.outcome in FAULTS else None,
        )
        self._sender.send(
            "record",
            traceparent=traceparents.of_record(submission, lease.fence),
            parent=attempt,
            begun_us=begun_us,
            ended_us=ended_us,
            attributes={"spinney.job.id": lease.job_id, "spinney.node": self._node},
        )
