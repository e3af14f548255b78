"""Refuse names in a filter that do not exist, and suggest the nearest one that does.

This is checked only when a filter has matched nothing, so that a match is never refused and costs no second query.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from spinney.model.access import AccessScope
from spinney.model.errors import NoSuchJob, UsageError
from spinney.model.jobs import Filter, Job
from spinney.model.operators.bulk_orders import ALLOWED_STATES, Verb
from spinney.model.states import State
from spinney.model.types import known_type
from spinney.model.values.hints import did_you_mean, first_of, listed, some_of

if TYPE_CHECKING:
    from spinney.store.parts import Store

_ALL = AccessScope()
_PICKED = 1_000
"""How many of the picked jobs, the newest ones, are read to find the types whose stages a message lists."""
_MISSING = {
    "queue": "no queue {} is known to this store",
    "node": "no node {} has ever joined this store",
    "collection": "no job belongs to a collection {}",
    "submitter": "no job has the submitter {}",
}
"""What is said of a name that nothing has, by what it names."""


def require_known(store: "Store", job_filter: Filter, *, labels: bool, within: AccessScope = _ALL) -> None:
    """Raise UsageError (or its kin) when the filter names a type, queue, stage, node or tree that does not exist.

    ``labels``: also a collection or submitter that no job has. To list the jobs of a collection before its first job
    arrives is no mistake; to change them is. ``within``: what the caller may see; no other names are suggested."""
    if job_filter.type is not None:
        known_type(store.types(), job_filter.type)
    if job_filter.stage is not None:
        types = store.types()
        specs = [types[job_filter.type]] if job_filter.type is not None else types.values()
        where = "no job type" if job_filter.type is None else f"the job type {job_filter.type!r} does not"
        verb = "has" if job_filter.type is None else "have"
        _require(
            job_filter.stage, {s.name for spec in specs for s in spec.stages}, f"{where} {verb} a stage {{}}"
        )
    for kind in ("queue", "node", *(("collection", "submitter") if labels else ())):
        name = getattr(job_filter, kind)
        if name is not None:
            _require(name, _names(store, kind, within), _MISSING[kind])
    _require_tree(store, job_filter, within)


def require_queue(store: "Store", name: str, *, within: AccessScope = _ALL) -> None:
    """Raise UsageError unless this queue is declared or has jobs, so that no new queue comes from a typo."""
    names = store.bulk.names("queue")
    if name not in names and not store.job_lists.count(Filter(queue=name), most=1):
        _require(name, store.bulk.names("queue", within=within), _MISSING["queue"])


def require_stage(store: "Store", name: str, picked: Filter) -> None:
    """Raise UsageError for a stage that no job type has. ``picked``: the filter of the jobs that are meant; the
    message lists the stages of their types."""
    types = store.types()
    if any(name == stage.name for spec in types.values() for stage in spec.stages):
        return
    if picked.type is not None:
        specs = [known_type(types, picked.type)]
    else:
        of_jobs = {job.type for job in store.jobs(picked, limit=_PICKED, newest=True)}
        specs = [spec for name, spec in types.items() if name in of_jobs] or list(types.values())
    hint = did_you_mean(name, [stage.name for spec in specs for stage in spec.stages])
    lists = first_of([f"type {s.name!r} has {', '.join(stage.name for stage in s.stages)}" for s in specs])
    advice = f"choose a stage: {lists}" if lists else "no job type is registered; start a node"
    raise UsageError(f"no job type has a stage {name!r:.80}{hint}; {advice}")


def require_possible(verb: Verb, states: Collection[State]) -> None:
    """Raise UsageError when the verb is not allowed for jobs in one of these states."""
    for state in states:
        if state in ALLOWED_STATES[verb]:
            continue
        instead = f"use it for those that are {listed(ALLOWED_STATES[verb])}"
        if (verb, state) == (Verb.RETRY, State.COMPLETED):
            instead = "'spinney rerun' runs such jobs again"
        raise UsageError(f"{verb} is not for jobs that are {state}; {instead}")


def _names(store: "Store", kind: str, within: AccessScope) -> Collection[str] | None:
    """Return the names that the caller may see; None: only a scan of all jobs could tell."""
    if within.everywhere or kind == "node":
        return store.bulk.names(kind)
    return {"collection": within.collections, "queue": within.queues}.get(kind)


def _require(name: str, names: Collection[str] | None, sentence: str) -> None:
    if names is None or name in names:
        return
    hint = did_you_mean(name, names)
    if not hint:
        hint = f"; use one of: {some_of(names)}"
    raise UsageError(f"{sentence.format(repr(name))}{hint}")


def _require_tree(store: "Store", job_filter: Filter, within: AccessScope) -> None:
    if job_filter.parent_id is not None:
        _visible_job(store, job_filter.parent_id, within)
    if job_filter.root_id is None:
        return
    root = _visible_job(store, job_filter.root_id, within)
    if root.parent_id is not None:
        raise UsageError(f"job {root.id} is not at the top of its tree; that is job {root.root_id}")


def _visible_job(store: "Store", job_id: int, within: AccessScope) -> Job:
    job = store.job(job_id)
    if not within.holds(job.collection, job.queue):
        raise NoSuchJob(job_id)
    return job
