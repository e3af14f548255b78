"""Whether a batch kept its promises: looked up in the archive and in the jobs' history afterwards."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from spinney.apps.ingest import bagging, inventory
from spinney.model.jobs import Attempt
from spinney.model.outcomes import PASSED, Outcome
from spinney.stores.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was looked at, and what was wrong with it."""

    jobs: int
    attempts: int
    interrupted: int
    """Attempts that a death of their node or worker cut off."""
    bags: int
    digests: int
    """Verified now, against the manifests in the bags."""
    faults: tuple[str, ...]


def audit(store: Store, batch: int, archive: Path, deposit: str) -> Audit:
    """Look at every attempt of a batch and every byte of its bags.

    No stage may have run again after it had been recorded as passed (this holds as long as no
    operator asked for it and nothing regrew); every file must have the digest of its manifest.
    """
    faults: list[str] = []
    jobs = [j.id for j in store.tree(batch, limit=1_000_000)]
    attempts = interrupted = digests = 0
    for job in jobs:
        history = store.attempts(job)
        attempts += len(history)
        interrupted += sum(a.outcome in (Outcome.LOST, Outcome.DIED) for a in history)
        faults += [f"job {job}: stage {stage} ran again after it had passed" for stage in ran_twice(history)]
    entries = inventory.entries(archive / inventory.FILE_NAME, deposit)
    for entry in entries:
        found = bagging.verify_bag(archive / entry.bag)
        digests += found.digests
        faults += found.faults
    return Audit(
        jobs=len(jobs), attempts=attempts, interrupted=interrupted, bags=len(entries), digests=digests,
        faults=tuple(faults),
    )  # fmt: skip


def ran_twice(history: Iterable[Attempt]) -> list[str]:
    """Stages that have an attempt behind the one that passed."""
    passed: set[str] = set()
    again: list[str] = []
    for attempt in sorted(history, key=lambda a: a.fence):
        if attempt.stage in passed:
            again.append(attempt.stage)
        if attempt.outcome in PASSED:
            passed.add(attempt.stage)
    return again
