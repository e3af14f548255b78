"""What is done to one job."""

from spinney.client.calls import Call, json_body, path, request, verb
from spinney.schemas import VerbResult


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
