"""The report made of the facts. Pure; a hundred thousand objects are lawful."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spinney.apps.ingest.report.facts import BatchFacts, ObjectEnd

COMPLETED = frozenset({"completed"})
FAILED = frozenset({"failed", "orphaned"})
"""States of objects that fail their batch. Cancelled ones do not: somebody decided on them."""
LEFT_OUT = frozenset({"cancelled", "deleted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    objects: int
    completed: int
    failed: int
    cancelled: int
    open: int
    """Not settled yet, when a report is asked for before its time."""
    unchanged: int
    """Completed ones of which no version was made, for they had all of what came."""
    files: int
    bytes: int
    """Of depositors."""
    system_files: int
    system_bytes: int
    """That the service made and stored with them."""
    digests_verified: int
    """Files, bytes and digests are those of completed objects."""
    seconds: float
    """From acceptance to this report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is otherwise than in the report before: labels of objects, sorted."""

    mended: tuple[str, ...]
    """Failed then, completed now."""
    newly_failed: tuple[str, ...]
    added: tuple[str, ...]
    """Completed now, and in neither list then."""
    gone: tuple[str, ...]
    """In one of the lists then, and in neither now: deleted, cancelled or open again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the next report is compared with: labels by jid."""

    number: int
    completed: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a batch, as of one moment."""

    facts: BatchFacts
    state: str
    """``completed``; ``failed`` when an object or the batch as a whole failed; ``processing`` when some are open."""
    totals: Totals
    completed: tuple[ObjectEnd, ...]
    failed: tuple[ObjectEnd, ...]
    others: tuple[ObjectEnd, ...]
    """Cancelled, or not settled yet."""
    changes: Changes | None
    """None in a first report."""

    @property
    def is_update(self) -> bool:
        return self.facts.number > 1

    def head(self) -> dict[str, Any]:
        """All but the lists of objects, as JSON values."""
        facts, changes = self.facts, self.changes
        head: dict[str, Any] = {
            "batch": facts.bid,
            "job": facts.job,
            "number": facts.number,
            "state": self.state,
            "profile": facts.profile,
            "submitter": facts.submitter,
            "collections": list(facts.collections),
            "payload": facts.payload,
            "accepted": facts.accepted.isoformat(),
            "reported": facts.reported.isoformat(),
            "fault": facts.fault,
            "link": facts.link,
            "warnings": list(facts.warnings),
            "totals": values(self.totals),
        }
        return head if changes is None else head | {"changes": values(changes)}


def build(facts: BatchFacts, ends: Iterable[ObjectEnd], before: Told | None = None) -> Report:
    """The report of a batch, objects in the order in which they are given. ``before``: the last that was told.

    Raises ValueError when a number is out of turn, for it would be compared with the wrong one.
    """
    if facts.number != (1 if before is None else before.number + 1):
        last = "none" if before is None else str(before.number)
        raise ValueError(
            f"report {facts.number} of {facts.bid} cannot follow on {last}; give the last that was told"
        )
    completed, failed, others = list[ObjectEnd](), list[ObjectEnd](), list[ObjectEnd]()
    for end in ends:
        place = completed if end.state in COMPLETED else failed if end.state in FAILED else others
        place.append(end)
    cancelled = sum(end.state in LEFT_OUT for end in others)
    totals = Totals(
        objects=len(completed) + len(failed) + len(others),
        completed=len(completed),
        failed=len(failed),
        cancelled=cancelled,
        open=len(others) - cancelled,
        unchanged=sum(end.unchanged for end in completed),
        files=sum(end.files for end in completed),
        bytes=sum(end.bytes for end in completed),
        system_files=sum(end.system_files for end in completed),
        system_bytes=sum(end.system_bytes for end in completed),
        digests_verified=sum(end.verified for end in completed),
        seconds=round(max(0.0, (facts.reported - facts.accepted).total_seconds()), 1),
    )
    return Report(
        facts=facts,
        state=_state(facts, totals),
        totals=totals,
        completed=tuple(completed),
        failed=tuple(failed),
        others=tuple(others),
        changes=None if before is None else _changes(before, completed, failed),
    )


def values(noun: Any) -> dict[str, Any]:
    """A flat dataclass as JSON values. ``dataclasses.asdict`` copies deeply, which a hundred thousand times is slow."""
    found = {name: getattr(noun, name) for name in noun.__dataclass_fields__}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def _state(facts: BatchFacts, totals: Totals) -> str:
    if totals.open:
        return "processing"
    return "failed" if totals.failed or facts.fault else "completed"


def _changes(before: Told, completed: list[ObjectEnd], failed: list[ObjectEnd]) -> Changes:
    good, bad = ({end.jid: end.label for end in ends} for ends in (completed, failed))
    known = {**before.completed, **before.failed}
    return Changes(
        mended=_labels(good, good.keys() & before.failed.keys()),
        newly_failed=_labels(bad, bad.keys() - before.failed.keys()),
        added=_labels(good, good.keys() - known.keys()),
        gone=_labels(known, known.keys() - good.keys() - bad.keys()),
    )


def _labels(labels: Mapping[str, str], jids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(labels[jid] for jid in jids))
