"""What somebody may submit: where to, with which priority, on whose account.

Asked before anything is stored, of everybody who has not the store itself at hand. What he leaves out is filled in
where only one thing can be meant: the one collection that he is limited to, and his own name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from spinney.control.hand import ASK, Hand, limits
from spinney.control.reaching import require_priority, require_queue_within
from spinney.model.access import Role
from spinney.model.errors import Forbidden, NoSuchJob
from spinney.model.jobs import Filter, Submission
from spinney.model.types import TypeSpec, passed_queues

_PAGE = 1_000
"""Needs that are looked up at a time."""


def admitted(hand: Hand, submissions: Sequence[Submission]) -> Sequence[Submission]:
    """These, as they may be submitted. Raises Forbidden, NoSuchJob (a need that is out of sight)."""
    if hand.at_hand:
        return submissions
    types = {} if hand.rights.within.queues is None else hand.store.types()
    found = [_admitted(hand, submission, types) for submission in submissions]
    if not hand.rights.everywhere:
        _require_needs(hand, {need for submission in submissions for need in submission.needs if need > 0})
    return found


def _admitted(hand: Hand, submission: Submission, types: Mapping[str, TypeSpec]) -> Submission:
    rights = hand.rights
    if rights.within.queues is not None:
        for queue in sorted(passed_queues(types[submission.type], submission.queue)):
            require_queue_within(hand, queue, f"submit {submission.type!r} jobs, which come into")
    if submission.priority is not None:
        require_priority(hand, submission.priority)
    if submission.share is not None and not rights.names_share(submission.share):
        raise Forbidden(
            f"{hand.by} may not name the share {submission.share!r}, but {_listed(rights.shares)}; name no share, or "
            f"{ASK}"
        )
    submitter = submission.submitter or hand.by
    if submitter != hand.by and not rights.permits(Role.OPERATOR):
        raise Forbidden(
            f"{hand.by} is a submitter and may not submit in the name of {submitter}: name no submitter, or {ASK}"
        )
    return replace(submission, submitter=submitter, collection=_collection(hand, submission.collection))


def _collection(hand: Hand, named: str | None) -> str | None:
    allowed = hand.rights.within.collections
    if allowed is None or named in allowed:
        return named
    if named is None and len(allowed) == 1:
        return allowed[0]
    where = "without a collection" if named is None else f"into collection {named!r}"
    raise Forbidden(
        f"{hand.by} is limited to {limits(hand.rights)} and may not submit {where}; name {_listed(allowed)}, or {ASK}"
    )


def _require_needs(hand: Hand, needs: Iterable[int]) -> None:
    todo = sorted(needs)
    for start in range(0, len(todo), _PAGE):
        page = tuple(todo[start : start + _PAGE])
        there = hand.store.bulk.find(Filter(ids=page, within=hand.rights.within), limit=len(page))
        if missing := set(page) - set(there):
            raise NoSuchJob(min(missing))


def _listed(names: Sequence[str] | None) -> str:
    return " or ".join(names or ()) or "none"
