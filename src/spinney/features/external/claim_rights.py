"""The rights of accounts for which an external worker claims: what it may claim, and what its subjobs may
name."""

from collections.abc import Iterable, Mapping

from spinney.model.access import Role
from spinney.model.errors import Forbidden
from spinney.model.external import ExternalWorker
from spinney.model.jobs import Submission
from spinney.model.queue_selection import ALL, QueueSelection
from spinney.model.types import TypeSpec
from spinney.service.order_scope import require_priority, require_queue_within
from spinney.service.service import ASK, Service, limits
from spinney.service.submit_rights import require_type


def require_claims(service: Service, lanes: Iterable[tuple[str, str]]) -> None:
    """Raise Forbidden unless the caller may claim all these (job type, stage) pairs."""
    for type_, _ in lanes:
        if not service.rights.claims(type_):
            raise Forbidden(f"{service.by} may not claim external stages of job type {type_!r}; {ASK}")


def claimable_queues(service: Service) -> QueueSelection:
    """Return the queues from which the caller may claim. Raises Forbidden for one who is limited to collections, which
    a claim cannot tell apart."""
    within = service.rights.within
    if within.collections is not None or within.queues == ():
        raise Forbidden(
            f"{service.by} is limited to {limits(service.rights)}, and an external worker is given jobs of "
            f"every collection; {ASK}"
        )
    return ALL if within.queues is None else QueueSelection(active=within.queues)


def require_same_limits(service: Service, external_worker: ExternalWorker) -> None:
    """Raise Forbidden when the caller has been limited since the external worker joined: its row still admits
    queues from which the caller may not claim any more."""
    allowed = claimable_queues(service)
    named = external_worker.serves.active
    if not allowed.all and (not named or not set(named) <= set(allowed.active)):
        raise Forbidden(
            f"the limits of {service.by} have changed since external worker {external_worker.name} joined (now: "
            f"{limits(service.rights)}); let it join again"
        )


def require_may_name(service: Service, submission: Submission, types: Mapping[str, TypeSpec]) -> None:
    """Raise Forbidden for a subjob that names what the caller may not.

    What is neither named nor its type's own is the parent's, which the external worker has been given. For
    types whose stages it may claim, an external worker is a part of the application; jobs of other types it
    submits as anybody does.
    """
    rights = service.rights
    if not rights.claims(submission.type):
        require_type(service, types[submission.type], submission.params)
    if submission.priority is not None:
        require_priority(service, submission.priority)
    if submission.queue is None:
        for queue in sorted(
            {stage.queue for stage in types[submission.type].stages if stage.queue is not None}
        ):
            require_queue_within(service, queue, f"make {submission.type!r} jobs, which come into")
    named: tuple[tuple[str, str | None, bool], ...] = (
        (
            "queue",
            submission.queue,
            rights.within.queues is None or submission.queue in rights.within.queues,
        ),
        ("share", submission.share, submission.share is None or rights.names_share(submission.share)),
        ("submitter", submission.submitter, rights.permits(Role.OPERATOR)),
    )
    for kind, name, allowed in named:
        if name is not None and not allowed:
            raise Forbidden(
                f"{service.by} may not name the {kind} {name!r} for a subjob; name none, or {ASK}"
            )
    if submission.needs and not rights.everywhere:
        raise Forbidden(
            f"{service.by} is limited to {limits(rights)} and may not name jobs that a subjob needs; {ASK}"
        )
