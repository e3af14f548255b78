"""Names in a filter that nothing bears: refused with the nearest that something does.

Asked when a filter found nothing, so that what was found is never refused and costs no second look.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from spinney.model.access import AccessScope
from spinney.model.errors import NoSuchJob, UsageError
from spinney.model.jobs import Filter, Job
from spinney.model.rights.operators import ALLOWED_STATES, Verb
from spinney.model.states import State
from spinney.model.values.hints import did_you_mean, listed
from spinney.service.submission_lines import known_type

if TYPE_CHECKING:
    from spinney.store.contract import Store

_ALL = AccessScope()
_LISTED = 20
"""So many names are told where none comes near."""


def require_known(store: "Store", which: Filter, *, labels: bool, within: AccessScope = _ALL) -> None:
    """Raise UsageError (or its kin) when the filter names a type, queue, stage, node or tree that is not there.

    ``labels``: also a collection or submitter that no job bears. Whoever looks before the first job of a
    collection came has made no mistake; whoever wants to change its jobs has. ``within``: what is in sight, so that
    no name is told that is not.
    """
    if which.type is not None:
        known_type(store.types(), which.type)
    if which.stage is not None:
        types = store.types()
        specs = [types[which.type]] if which.type is not None else types.values()
        where = "no job type" if which.type is None else f"the job type {which.type!r} does not"
        verb = "has" if which.type is None else "have"
        _require(which.stage, {s.name for spec in specs for s in spec.stages}, f"{where} {verb} a stage {{}}")
    if which.queue is not None:
        _require(which.queue, _names(store, "queue", within), "no queue {} is known to this store")
    if which.node is not None:
        _require(which.node, _names(store, "node", within), "no node {} has ever joined this store")
    if labels and which.collection is not None:
        _require(which.collection, _names(store, "collection", within), "no job belongs to a collection {}")
    if labels and which.submitter is not None:
        _require(which.submitter, _names(store, "submitter", within), "no job has the submitter {}")
    _require_tree(store, which, within)


def require_queue(store: "Store", name: str, *, within: AccessScope = _ALL) -> None:
    """Raise UsageError unless jobs can be put into this queue without inventing it."""
    known = store.bulk.names("queue")
    if name not in known and not store.bulk.count(Filter(queue=name), most=1):
        _require(name, store.bulk.names("queue", within=within), "no queue {} is known to this store")


def require_possible(verb: Verb, states: Collection[State]) -> None:
    """Raise UsageError when the verb cannot be meant for jobs of one of these states."""
    for state in states:
        if state in ALLOWED_STATES[verb]:
            continue
        instead = f"use it for those that are {listed(ALLOWED_STATES[verb])}"
        if (verb, state) == (Verb.RETRY, State.COMPLETED):
            instead = "'spinney rerun' runs such jobs again"
        raise UsageError(f"{verb} is not for jobs that are {state}; {instead}")


def _names(store: "Store", kind: str, within: AccessScope) -> Collection[str] | None:
    """Those in sight; None: that cannot be told without a look at every job."""
    if within.everywhere or kind == "node":
        return store.bulk.names(kind)
    return {"collection": within.collections, "queue": within.queues}.get(kind)


def _require(name: str, known: Collection[str] | None, sentence: str) -> None:
    if known is None or name in known:
        return
    hint = did_you_mean(name, known)
    if not hint:
        some = sorted(known)[:_LISTED]
        hint = f"; use one of: {listed(some)}{' …' if len(known) > _LISTED else ''}"
    raise UsageError(f"{sentence.format(repr(name))}{hint}")


def _require_tree(store: "Store", which: Filter, within: AccessScope) -> None:
    if which.parent_id is not None:
        _in_sight(store, which.parent_id, within)
    if which.root_id is None:
        return
    root = _in_sight(store, which.root_id, within)
    if root.parent_id is not None:
        raise UsageError(f"job {root.id} is not at the top of its tree; that is job {root.root_id}")


def _in_sight(store: "Store", job_id: int, within: AccessScope) -> Job:
    job = store.job(job_id)
    if not within.holds(job.collection, job.queue):
        raise NoSuchJob(job_id)
    return job
