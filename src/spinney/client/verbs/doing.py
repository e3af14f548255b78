"""What is done to jobs: to one, or to many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from spinney.answers import Done, Planned, Reported
from spinney.client.calls import Call, do, path, said, verb
from spinney.client.verbs.which import Which
from spinney.model import durations


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A few jobs first; more only while few of those fail."""

    first: int
    stop_at: float = 0.1
    """The share of failures, 0 to 1, at which it stops."""
    patience_s: float = 600.0
    """So long it waits for jobs to come to rest; may be given as any length of time."""

    def __post_init__(self) -> None:
        durations.in_seconds(self, "patience_s")


class Particulars(TypedDict, total=False):
    """What verbs on many jobs may be told."""

    reason: str | None
    stage: str | None
    """retry, rerun: from this stage on."""
    and_after: bool
    tree: bool
    """cancel: with all below."""
    queue: str | None
    """move: where to; retry, rerun: in this queue."""
    priority: int | None
    until: int | None
    """hold: ends by itself at this time (µs since 1970 UTC)."""
    expect: int | None
    """Refuse unless it would be done to so many jobs, as ``plan`` said."""


class DoingVerbs:
    """Each raises Refused with what the state of a job says."""

    @verb
    def retry(
        self: None, job: int, *, stage: str | None = None, queue: str | None = None, reason: str | None = None
    ) -> Call[Done]:
        """Open what failed: behind the last stage that passed, or from an earlier one."""
        return do("POST", path("/jobs/{}/retry", job), Done, said(stage=stage, queue=queue, reason=reason))

    @verb
    def rerun(
        self: None, job: int, *, stage: str | None = None, queue: str | None = None, reason: str | None = None
    ) -> Call[Done]:
        """Run a settled job again, whatever had passed."""
        return do("POST", path("/jobs/{}/rerun", job), Done, said(stage=stage, queue=queue, reason=reason))

    @verb
    def cancel(self: None, job: int, *, tree: bool = False, reason: str | None = None) -> Call[Done]:
        """Cancel a job, or it and all below."""
        return do("POST", path("/jobs/{}/cancel", job), Done, said(tree=tree, reason=reason))

    @verb
    def hold(self: None, job: int, reason: str, *, until: int | None = None) -> Call[Done]:
        """Let nothing of it start until it is released."""
        return do("POST", path("/jobs/{}/hold", job), Done, said(reason=reason, until=until))

    @verb
    def release(self: None, job: int, *, reason: str | None = None) -> Call[Done]:
        """Let a held job go on."""
        return do("POST", path("/jobs/{}/release", job), Done, said(reason=reason))

    @verb
    def move(self: None, job: int, queue: str, *, reason: str | None = None) -> Call[Done]:
        """Move a job into another queue."""
        return do("POST", path("/jobs/{}/move", job), Done, said(queue=queue, reason=reason))

    @verb
    def prioritise(self: None, job: int, priority: int, *, reason: str | None = None) -> Call[Done]:
        """Give a job another priority: 0 is first, 99 last."""
        return do("POST", path("/jobs/{}/priority", job), Done, said(priority=priority, reason=reason))

    @verb
    def delete(self: None, job: int, *, reason: str | None = None) -> Call[Done]:
        """Delete a job with all below it, and their folders."""
        return do("DELETE", path("/jobs/{}", job), Done, reason=reason)

    @verb
    def plan(
        self: None,
        verb: str,
        *,
        ids: Sequence[int] | None = None,
        which: Which | None = None,
        **how: Unpack[Particulars],
    ) -> Call[Planned]:
        """To how many jobs a verb would be done."""
        body = _to_many(verb, ids, which, how) | {"dry_run": True}
        return do("POST", "/jobs/verbs", Planned, body)

    @verb
    def carry_out(
        self: None,
        verb: str,
        *,
        ids: Sequence[int] | None = None,
        which: Which | None = None,
        canary: Canary | None = None,
        **how: Unpack[Particulars],
    ) -> Call[Reported]:
        """Do a verb to many jobs: those of ``ids``, those that fit ``which``, or of these those that fit. ``follow``
        of a client tells meanwhile how far it is."""
        return do("POST", "/jobs/verbs", Reported, _to_many(verb, ids, which, how) | said(canary=canary))


def _to_many(verb: str, ids: Sequence[int] | None, which: Which | None, how: Particulars) -> dict[str, Any]:
    fits: Mapping[str, Any] | None = None if which is None else said(**which)
    return said(verb=verb, ids=ids, filter=fits, **how)
