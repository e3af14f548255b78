"""Builds the report from the facts: sorts the objects into completed, failed and others, counts them, and
compares them with the report before. Pure; a hundred thousand objects are possible."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spinney.apps.ingest.report.facts import BatchFacts, ObjectEnd

COMPLETED = frozenset({"completed"})
"""The states of objects that are listed as completed."""
FAILED = frozenset({"failed", "orphaned"})
"""States of objects that fail their batch. Cancelled ones do not, since a person decided on them."""
LEFT_OUT = frozenset({"cancelled", "deleted"})
"""The states of objects that are counted as cancelled and fail nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The counts and sizes of a report; files, bytes and digests are those of completed objects."""

    objects: int
    completed: int
    failed: int
    cancelled: int
    open: int
    """Objects that have not settled yet, in a report that is requested early."""
    unchanged: int
    """Completed objects of which no version was made, since their content was stored already."""
    files: int
    bytes: int
    """Files and bytes from depositors."""
    system_files: int
    system_bytes: int
    """Files and bytes that the service made and stored with them."""
    digests_verified: int
    seconds: float
    """The time from acceptance to this report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The differences from the previous report: labels of objects, sorted."""

    mended: tuple[str, ...]
    """Objects that had failed then and are completed now."""
    newly_failed: tuple[str, ...]
    """Objects that have failed now and had not then, whether they were in the other list or in none."""
    added: tuple[str, ...]
    """Objects that are completed now, and were in neither list then."""
    new_versions: tuple[str, ...]
    """Objects that are completed now as then, and have made another version since."""
    gone: tuple[str, ...]
    """Objects that were in one of the lists then and are in neither now: deleted, cancelled or open again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousReport:
    """The part of a report with which the next one is compared: labels by jid."""

    number: int
    completed: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    """The versions of completed objects, by jid; none in reports that earlier releases wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of a batch at one moment."""

    facts: BatchFacts
    state: str
    """``completed``; ``failed`` when an object or the batch as a whole failed; ``processing`` when some are open."""
    totals: Totals
    completed: tuple[ObjectEnd, ...]
    failed: tuple[ObjectEnd, ...]
    others: tuple[ObjectEnd, ...]
    """Objects that were cancelled, or have not settled yet."""
    changes: Changes | None
    """The differences from the previous report; None in the first report."""

    @property
    def is_update(self) -> bool:
        """Whether a report of this batch was sent before."""
        return self.facts.number > 1

    def head(self) -> dict[str, Any]:
        """Return all but the lists of objects, as JSON values: the beginning of ``report.json``, whose keys
        other programs read."""
        facts, changes = self.facts, self.changes
        described = values(facts)
        head = {"batch": described.pop("bid"), **described, "state": self.state}
        head |= {name: getattr(facts, name).isoformat() for name in ("accepted", "reported")}
        head["totals"] = values(self.totals)
        return head if changes is None else head | {"changes": values(changes)}


def build(facts: BatchFacts, ends: Iterable[ObjectEnd], before: PreviousReport | None = None) -> Report:
    """Build the report of a batch, with its objects in the given order.

    ``ends`` is read once. ``before``: the last report that was sent; None: this is the first. Raises
    ValueError for a number that does not follow that of ``before``: the differences would be those from
    another report.
    """
    if facts.number != (1 if before is None else before.number + 1):
        last = "none" if before is None else str(before.number)
        raise ValueError(
            f"report {facts.number} of {facts.bid} cannot follow {last}; give the last that was sent"
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
    """Return a flat dataclass as JSON values: tuples become lists.

    ``dataclasses.asdict`` copies deeply, which is slow for many objects.
    """
    attributes = {name: getattr(noun, name) for name in noun.__dataclass_fields__}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in attributes.items()}


def _state(facts: BatchFacts, totals: Totals) -> str:
    """Return the state that a report names: open objects come before failed ones, which may still be
    mended."""
    if totals.open:
        return "processing"
    return "failed" if totals.failed or facts.fault else "completed"


def _changes(before: PreviousReport, completed: list[ObjectEnd], failed: list[ObjectEnd]) -> Changes:
    """Return the differences between the previous report and these results."""
    good, bad = ({end.jid: end.label for end in ends} for ends in (completed, failed))
    labels = {**before.completed, **before.failed}
    newer = [
        end.jid
        for end in completed
        if not end.unchanged
        and end.jid in before.completed
        and before.versions.get(end.jid, end.version) != end.version
    ]
    return Changes(
        mended=_labels(good, good.keys() & before.failed.keys()),
        newly_failed=_labels(bad, bad.keys() - before.failed.keys()),
        added=_labels(good, good.keys() - labels.keys()),
        new_versions=_labels(good, newer),
        gone=_labels(labels, labels.keys() - good.keys() - bad.keys()),
    )


def _labels(labels: Mapping[str, str], jids: Iterable[str]) -> tuple[str, ...]:
    """Return the labels of these objects, sorted."""
    return tuple(sorted(labels[jid] for jid in jids))
