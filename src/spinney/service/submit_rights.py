"""What a caller may submit: of which types, where to, with which priority, in whose name.

This is checked before anything is stored, for every caller who has not opened the store itself. What the submission
leaves out is filled in where only one value is possible: the one collection that the caller is limited to, and the
caller's name."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import orjson

from spinney.model.access import Role
from spinney.model.errors import Forbidden, NoSuchJob, Refused
from spinney.model.jobs import Submission
from spinney.model.rights.submit_rights import BeyondLimit, beyond_limit
from spinney.model.types import INTERNAL, TypeSpec, passed_queues
from spinney.service.filter_checks import require_queue
from spinney.service.order_scope import require_priority, require_queue_within
from spinney.service.service import ASK, Service, limits
from spinney.service.visibility import Visibility


def authorized(
    service: Service,
    submissions: Sequence[Submission],
    types: Mapping[str, TypeSpec],
    *,
    internal: bool = False,
) -> Sequence[Submission]:
    """Return the submissions that the caller may make, with collection and submitter filled in.

    ``types``: those that the store has. ``internal``: the caller is code of the application, or has the store itself,
    and answers for the parameters of jobs of internal types.

    Raises Forbidden, Refused (an internal type, on an opened store), NoSuchJob (a need that is not visible).
    """
    for submission in submissions:
        require_type(service, types[submission.type], submission.params, internal=internal)
    if service.is_local:
        return submissions
    admitted = [_admitted(service, submission, types) for submission in submissions]
    if not service.rights.everywhere:
        _require_needs(service, submissions)
    return admitted


def default_type(service: Service, queue: str) -> str:
    """Return the job type of submissions that name this queue but no type.

    Raises UsageError when the queue has none, or does not exist; Forbidden when it is not visible."""
    require_queue_within(service, queue, "submit into")
    spec = service.store.queue_admin.in_force(queue)
    if spec.type is None:
        require_queue(service.store, queue, within=service.rights.within)
    return spec.default_type()


def require_type(service: Service, spec: TypeSpec, params: Sequence[str], *, internal: bool = False) -> None:
    """Raise Forbidden or Refused unless jobs of this type with these parameters (JSON texts) may be submitted."""
    if spec.submit == INTERNAL:
        _require_internal(service, spec, internal=internal)
    elif not service.is_local:
        service.require(Role(spec.submit), f"submit {spec.name!r} jobs")
    if not spec.submit_limits or service.is_local:
        return
    for text in params:
        beyond = beyond_limit(spec, orjson.loads(text), service.rights, service.by)
        if beyond is not None:
            raise Forbidden(_words(service, spec, beyond))


def _require_internal(service: Service, spec: TypeSpec, *, internal: bool) -> None:
    """Raise Refused on an opened store, Forbidden through a server, unless the caller answers for jobs of an internal
    type."""
    if internal:
        return
    why = f"{spec.name!r} jobs are made by stages and schedules of their application alone"
    if service.is_local:
        raise Refused(
            f"{why}; use the commands of the application, or give --internal to submit this job nevertheless"
        )
    raise Forbidden(f"{service.by} may not submit it: {why}; use the commands of the application")


def _words(service: Service, spec: TypeSpec, beyond: BeyondLimit) -> str:
    """Return the sentence that refuses a parameter which names what the caller may not."""
    subject = f"job type {spec.name!r}: parameter {beyond.parameter!r}"
    if beyond.limit == "submitter":
        who = f"in whose name the job is, and {service.by} is a submitter"
        return f"{subject} says {who}: give {service.by!r}, or {ASK}"
    limited = f"shares {_listed(beyond.allowed)}" if beyond.limit == "share" else limits(service.rights)
    return (
        f"{subject} names the {beyond.limit}, and {service.by} is limited to {limited}; give "
        f"{_listed(beyond.allowed)}, or {ASK}"
    )


def _admitted(service: Service, submission: Submission, types: Mapping[str, TypeSpec]) -> Submission:
    """Return a submission with submitter and collection filled in. Raises Forbidden for a queue, priority, share,
    submitter or collection that the caller may not name."""
    rights = service.rights
    if rights.within.queues is not None:
        for queue in sorted(passed_queues(types[submission.type], submission.queue)):
            require_queue_within(service, queue, f"submit {submission.type!r} jobs, which come into")
    if submission.priority is not None:
        require_priority(service, submission.priority)
    if submission.share is not None and not rights.names_share(submission.share):
        raise Forbidden(
            f"{service.by} may not name the share {submission.share!r}, but {_listed(rights.shares)}; name no share, "
            f"or {ASK}"
        )
    submitter = submission.submitter or service.by
    if submitter != service.by and not rights.permits(Role.OPERATOR):
        raise Forbidden(
            f"{service.by} is a submitter and may not submit in the name of {submitter}: name no submitter, or {ASK}"
        )
    return replace(submission, submitter=submitter, collection=_collection(service, submission.collection))


def _collection(service: Service, named: str | None) -> str | None:
    """Return the collection of a submission: the one that is named, or else the only one to which the caller is
    limited. Raises Forbidden for another, and where several are possible."""
    allowed = service.rights.within.collections
    if allowed is None or named in allowed:
        return named
    if named is None and len(allowed) == 1:
        return allowed[0]
    where = "without a collection" if named is None else f"into collection {named!r}"
    raise Forbidden(
        f"{service.by} is limited to {limits(service.rights)} and may not submit {where}; name "
        f"{_listed(allowed)}, or {ASK}"
    )


def _require_needs(service: Service, submissions: Sequence[Submission]) -> None:
    """Raise NoSuchJob for a need that is not visible, in the words of the store for one that does not exist."""
    needed_by: dict[int, int] = {}
    total = 0
    for submission in submissions:
        for need in submission.needs:
            needed_by.setdefault(need, total + 1)
        total += len(submission.params)
    needs = {need for need in needed_by if need > 0}
    if missing := needs - Visibility(service.store, service.rights.within).visible(needs):
        need = min(missing)
        raise NoSuchJob(need, needed_by=needed_by[need] if total > 1 else None)


def _listed(names: Sequence[str] | None) -> str:
    return " or ".join(names or ()) or "none"
