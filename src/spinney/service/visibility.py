"""What a limited caller is shown of holds, locks, messages and results of verbs that also concern jobs of others.

The store is queried once for all job ids that an answer names. A sentence that would name a job that is not visible is
reworded without it, and without counts of what others have.

The engine words its messages without knowing who will read them. Which messages may name other jobs is known by facts
(``_names_jobs``); the ids in them are recognized by the forms that it uses (``_NAMED``). Who adds a sentence about
another job to the engine has to use one of these forms."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spinney.model.access import AccessScope
from spinney.model.errors import DuplicateKey, Refused, SpinneyError
from spinney.model.jobs import Filter, Job
from spinney.model.settings.holds import Hold, Scope, UnderHold

if TYPE_CHECKING:
    from spinney.model.operators.bulk_runs import BulkStep
    from spinney.model.operators.locks import LockInfo
    from spinney.store.parts import Store

_NAMED = re.compile(r"\b(its subjob|job) (\d+)(?=(?:, which it needs,| above it)? (?:is |was |failed))")
"""How the engine words because of which job another failed, or cannot be opened again."""
_NAMED_IN_RING = re.compile(r"\b(its subjob|job) (\d+)")
"""How the message of a deadlock names jobs."""
_DEADLOCK = "a deadlock: "
"""How the message of a deadlock begins."""
_NOBODY = {"its subjob": "one of its subjobs", "job": "a job"}
_PAGE = 10_000
_HIDDEN_HOLD = "a hold that is not within your limits"


class Visibility:
    """What a caller with limits may see of one store."""

    def __init__(self, store: "Store", within: AccessScope) -> None:
        self._store, self._within = store, within

    def visible(self, job_ids: Iterable[int]) -> set[int]:
        """Return which of these jobs are visible."""
        ids = sorted(set(job_ids))
        visible: set[int] = set()
        for start in range(0, len(ids), _PAGE):
            page = tuple(ids[start : start + _PAGE])
            visible.update(self._store.job_lists.find(Filter(ids=page, within=self._within), limit=_PAGE))
        return visible

    def any_of(self, **named: Any) -> bool:
        """Return whether a job that matches is visible."""
        return self._store.job_lists.count(Filter(within=self._within, **named), most=1) > 0

    def count(self, job_filter: Filter, *, most: int) -> int:
        """Return how many visible jobs match, counted up to ``most``."""
        return self._store.job_lists.count(replace(job_filter, within=self._within), most=most)

    # --- jobs -----------------------------------------------------------------------------

    def jobs(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the visible ones of these jobs, with their messages reworded."""
        visible = [job for job in jobs if self._within.holds(job.collection, job.queue)]
        named = (job_id for job in visible if _names_jobs(job) for job_id in _named(job.message or ""))
        visible_ids = self.visible(named)
        return [self._job(job, visible_ids) for job in visible]

    def _job(self, job: Job, visible_ids: Collection[int]) -> Job:
        """Return a visible job whose message names only visible jobs and holds."""
        if job.waits_for == "hold":
            # Its message is a hold's, whose name may be that of others.
            return replace(job, message="; ".join(map(str, self.holds_on(job.id))) or _HIDDEN_HOLD)
        if job.message is None or not _names_jobs(job):
            return job
        return replace(job, message=_without(job.message, visible_ids))

    # --- holds ----------------------------------------------------------------------------

    def holds(self, holds: Iterable[Hold]) -> list[Hold]:
        """Return the holds that cover, or would cover, something visible."""
        return [shown for hold in holds if (shown := self._hold(hold)) is not None]

    def holds_on(self, job_id: int) -> list[Hold]:
        """Return the holds over a visible job. A hold on something that is not visible (a tree's top) loses its name
        and its reason."""
        return [self._hold_on(hold) for hold in self._store.holds.covering(job_id)]

    def _hold_on(self, hold: Hold) -> Hold:
        return self._hold(hold) or replace(hold, name="", reason=_HIDDEN_HOLD)

    def _hold(self, hold: Hold) -> Hold | None:
        if not self._concerned(hold):
            return None
        # The reason of a circuit breaker is a failure's message, and that may have been another's job.
        return replace(hold, reason="a circuit breaker stopped it") if hold.automatic else hold

    def _concerned(self, hold: Hold) -> bool:
        """Return whether a hold covers, or would cover, something visible."""
        within = self._within
        if hold.scope is Scope.QUEUE:
            return within.queues is None or hold.name in within.queues
        if hold.scope is Scope.COLLECTION and within.collections is not None:
            return hold.name in within.collections
        if hold.scope is Scope.COLLECTION:
            return self.any_of(collection=hold.name)
        if hold.scope is Scope.SUBMITTER:
            return self.any_of(submitter=hold.name)
        if hold.scope in (Scope.TREE, Scope.JOB):
            return bool(self.visible([int(hold.name)]))
        return True

    # --- refusals and results of verbs ------------------------------------------------------

    def refusal(self, error: SpinneyError) -> SpinneyError:
        """Return the refusal of a key that a job has which is not visible, without that job, and that of a release
        under a hold without what is not visible of it; any other as it is."""
        if isinstance(error, UnderHold):
            return UnderHold(error.job_id, self._hold_on(error.hold))
        if isinstance(error, DuplicateKey) and not self.visible([error.job_id]):
            return Refused(f"the key {error.key!r} is taken; choose another key")
        return error

    def step(self, step: "BulkStep") -> "BulkStep":
        """Return what a step of a verb did, without jobs that are not visible."""
        refused = dict(step.refused)
        refused |= {job_id: str(self.refusal(error)) for job_id, error in step.errors.items()}
        named = (job_id for text in refused.values() for job_id in _named(text))
        visible_ids = self.visible([*step.reopened, *named])
        return replace(
            step,
            reopened=[job_id for job_id in step.reopened if job_id in visible_ids],
            refused={job_id: _without(text, visible_ids) for job_id, text in refused.items()},
        )

    # --- locks ----------------------------------------------------------------------------

    def locks(self, locks: "Sequence[LockInfo]") -> "list[LockInfo]":
        """Return the locks, without owners that are not visible."""
        visible_ids = self.visible(info.owner_id for info in locks if info.owner_id is not None)
        return [
            info
            if info.owner_id is None or info.owner_id in visible_ids
            else replace(info, owner_id=None, node=None, since_us=None)
            for info in locks
        ]


def _names_jobs(job: Job) -> bool:
    """Return whether the engine may name other jobs in the job's message, which else is of the job's own code."""
    return job.failed_because is not None or (job.message or "").startswith(_DEADLOCK)


def _named(text: str) -> list[int]:
    return [int(n) for _, n in _pattern(text).findall(text)]


def _without(text: str, visible_ids: Collection[int]) -> str:
    return _pattern(text).sub(
        lambda m: m.group(0) if int(m.group(2)) in visible_ids else _NOBODY[m.group(1)], text
    )


def _pattern(text: str) -> re.Pattern[str]:
    return _NAMED_IN_RING if _DEADLOCK in text else _NAMED
