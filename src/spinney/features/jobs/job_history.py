"""What operators did to a job and to those below it, as the audit records it.

The audit has no index by job: its latest entries are searched. An entry names the jobs that a step of a verb
has changed. So a verb on a batch that was carried out on its failed subjobs is found by those subjobs.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from spinney.commands import each
from spinney.commands.control import Control
from spinney.commands.fields import PAGE_MAX
from spinney.features.audit.commands import ListAuditEntries
from spinney.model.jobs import Filter, Job
from spinney.model.operators.audits import AuditEntry
from spinney.model.settings.holds import Scope
from spinney.model.values.unreadable import json_object

ENTRIES = 5_000
"""How many of the latest entries of the audit are searched for those that name the job or one below it."""
_AT_ONCE = 1_000
"""How many jobs of entries are looked up at a time."""


def entries(control: Control, job_id: int) -> tuple[list[AuditEntry], bool]:
    """Return the entries of the audit on a job and on those below it, and whether all of the job's life
    was searched.

    The entries are the newest first, one for each call of a verb, with the number of these jobs that it
    changed. The second value is False when the latest ``ENTRIES`` entries do not reach back to the job's
    creation. Raises NoSuchJob, and Forbidden for a caller who may not read the audit.
    """
    latest = [*islice(each(control, ListAuditEntries(limit=PAGE_MAX)), ENTRIES)]
    job = control.queries.job(job_id)
    whole = len(latest) < ENTRIES or latest[-1].at_us < job.created_us
    read = [
        (entry, json_object(entry.what, "the entry")) for entry in latest if entry.at_us >= job.created_us
    ]
    tree = {job_id, *_below(control, job, {n for _, details in read for n in _named(details)})}
    named = [
        replace(entry, count=count) for entry, details in read if (count := _concerned(entry, details, tree))
    ]
    return _calls(named), whole


def _below(control: Control, job: Job, job_ids: Collection[int]) -> Iterator[int]:
    """Yield those of the jobs that are below this one. For a job without subjobs, as most are, one query suffices."""
    if not control.queries.children(job.id, limit=1):
        return
    later = sorted(job_id for job_id in job_ids if job_id > job.id)  # a subjob is younger than its parent
    for start in range(0, len(later), _AT_ONCE):
        some = Filter(ids=tuple(later[start : start + _AT_ONCE]), below=job.lineage)
        yield from control.store.job_lists.find(some, limit=_AT_ONCE)


def _named(details: Mapping[str, Any]) -> Iterator[int]:
    """Yield the jobs that an entry names: by ``job``, by ``jobs``, or as the target of a hold on a job or
    tree."""
    jobs = details.get("jobs", ())
    yield from (
        n for n in (details.get("job"), *(jobs if isinstance(jobs, list) else ())) if isinstance(n, int)
    )
    name = details.get("name")
    if details.get("scope") in (Scope.JOB, Scope.TREE) and isinstance(name, str) and name.isdecimal():
        yield int(name)


def _concerned(entry: AuditEntry, details: Mapping[str, Any], tree: Collection[int]) -> int:
    """Return how many jobs of the tree an entry is about; 0: none. An entry without a list of jobs counts
    as it says itself."""
    jobs = details.get("jobs")
    if isinstance(jobs, list) and jobs:
        return sum(job_id in tree for job_id in jobs)
    return entry.count if any(job_id in tree for job_id in _named(details)) else 0


def _calls(named: Sequence[AuditEntry]) -> list[AuditEntry]:
    """Put the steps of a verb on many jobs together: the latest of them, with the number of all.

    A call is one use of a verb (``Actor.call``), whose steps are entries of their own, because each is a
    transaction.
    """
    calls: dict[tuple[str, str], AuditEntry] = {}
    for entry in named:
        latest = calls.get((entry.call, entry.verb))
        calls[entry.call, entry.verb] = (
            entry if latest is None else replace(latest, count=latest.count + entry.count)
        )
    return [*calls.values()]
