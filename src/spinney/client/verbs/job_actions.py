"""What is done to jobs: to one, or to many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from spinney.client.calls import Call, json_body, path, request, verb
from spinney.client.verbs.filters import JobFilter
from spinney.model.values import durations
from spinney.schemas import BulkPreview, BulkResult, VerbResult


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


class BulkOptions(TypedDict, total=False):
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


class JobActionVerbs:
    """Each raises Refused with what the state of a job says."""

    @verb
    def retry(
        self: None, job: int, *, stage: str | None = None, queue: str | None = None, reason: str | None = None
    ) -> Call[VerbResult]:
        """Open what failed: behind the last stage that passed, or from an earlier one."""
        return request(
            "POST",
            path("/jobs/{}/retry", job),
            VerbResult,
            json_body(stage=stage, queue=queue, reason=reason),
        )

    @verb
    def rerun(
        self: None, job: int, *, stage: str | None = None, queue: str | None = None, reason: str | None = None
    ) -> Call[VerbResult]:
        """Run a settled job again, whatever had passed."""
        return request(
            "POST",
            path("/jobs/{}/rerun", job),
            VerbResult,
            json_body(stage=stage, queue=queue, reason=reason),
        )

    @verb
    def cancel(self: None, job: int, *, tree: bool = False, reason: str | None = None) -> Call[VerbResult]:
        """Cancel a job, or it and all below."""
        return request("POST", path("/jobs/{}/cancel", job), VerbResult, json_body(tree=tree, reason=reason))

    @verb
    def hold(self: None, job: int, reason: str, *, until: int | None = None) -> Call[VerbResult]:
        """Let nothing of it start until it is released."""
        return request("POST", path("/jobs/{}/hold", job), VerbResult, json_body(reason=reason, until=until))

    @verb
    def release(self: None, job: int, *, reason: str | None = None) -> Call[VerbResult]:
        """Let a held job go on."""
        return request("POST", path("/jobs/{}/release", job), VerbResult, json_body(reason=reason))

    @verb
    def move(self: None, job: int, queue: str, *, reason: str | None = None) -> Call[VerbResult]:
        """Move a job into another queue."""
        return request("POST", path("/jobs/{}/move", job), VerbResult, json_body(queue=queue, reason=reason))

    @verb
    def prioritise(self: None, job: int, priority: int, *, reason: str | None = None) -> Call[VerbResult]:
        """Give a job another priority: 0 is first, 99 last."""
        return request(
            "POST", path("/jobs/{}/priority", job), VerbResult, json_body(priority=priority, reason=reason)
        )

    @verb
    def delete(self: None, job: int, *, reason: str | None = None) -> Call[VerbResult]:
        """Delete a job with all below it, and their folders."""
        return request("DELETE", path("/jobs/{}", job), VerbResult, reason=reason)

    @verb
    def plan(
        self: None,
        verb: str,
        *,
        ids: Sequence[int] | None = None,
        which: JobFilter | None = None,
        **how: Unpack[BulkOptions],
    ) -> Call[BulkPreview]:
        """To how many jobs a verb would be done."""
        body = _to_many(verb, ids, which, how) | {"dry_run": True}
        return request("POST", "/jobs/verbs", BulkPreview, body)

    @verb
    def run_verb(
        self: None,
        verb: str,
        *,
        ids: Sequence[int] | None = None,
        which: JobFilter | None = None,
        canary: Canary | None = None,
        **how: Unpack[BulkOptions],
    ) -> Call[BulkResult]:
        """Do a verb to many jobs: those of ``ids``, those that fit ``which``, or of these those that fit. ``follow``
        of a client tells meanwhile how far it is."""
        return request(
            "POST", "/jobs/verbs", BulkResult, _to_many(verb, ids, which, how) | json_body(canary=canary)
        )


def _to_many(
    verb: str, ids: Sequence[int] | None, which: JobFilter | None, how: BulkOptions
) -> dict[str, Any]:
    fits: Mapping[str, Any] | None = None if which is None else json_body(**which)
    return json_body(verb=verb, ids=ids, filter=fits, **how)
