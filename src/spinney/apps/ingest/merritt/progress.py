"""What has become of a job here, as Merritt's queue has it: its state, and the nodes that its steps write."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from spinney.bridges.merritt import STEPS, Job, JobState, MerrittQueue
from spinney.jobs import Job as SpinneyJob
from spinney.jobs import State

_STATES: Mapping[str, JobState] = {
    "estimating": JobState.ESTIMATING,
    "provisioning": JobState.PROVISIONING,
    "downloading": JobState.DOWNLOADING,
    "processing": JobState.PROCESSING,
    "recording": JobState.RECORDING,
    "notify": JobState.NOTIFY,
}
"""The state there, by the stage here. ``processing`` stores, too: Storing is passed on the way to Recording."""
MESSAGE_MAX = 500


def steps(before: JobState, job: SpinneyJob | None) -> Sequence[JobState]:
    """Return the states that a job there has to enter, one transition each, until it says what holds here.

    ``job``: None for one that was deleted here.

    A job that failed first enters the step at which it did, so that it is requeued there. One that was requeued to a
    later step than the one that is repeated here stays there until that step is passed."""
    if job is None:
        return [JobState.FAILED]
    if job.state is State.COMPLETED:
        return _between(before, JobState.COMPLETED)
    passing = _between(before, _STATES.get(job.stage or "", JobState.ESTIMATING))
    has_failed = job.state in (State.FAILED, State.ORPHANED, State.CANCELLED)
    return [*passing, JobState.FAILED] if has_failed else passing


def _between(before: JobState, after: JobState) -> list[JobState]:
    return list(STEPS[STEPS.index(before) + 1 : STEPS.index(after) + 1])


def message(job: SpinneyJob | None) -> str:
    """Return the sentence for the job there: why it failed, or what it waits for."""
    return "the job was deleted in Spinney" if job is None else (job.message or "")[:MESSAGE_MAX]


def write_parts(queue: MerrittQueue, job: Job, results: Mapping[str, Any], server: str | None) -> Job:
    """Write the results of the stages that have passed, where the job does not have them yet, and return the job.

    ``server``: the URL of the server that serves manifests of what is stored; without one they have no URL."""
    space = (results.get("provisioning") or {}).get("bytes")
    if space is not None and int(space) != job.space_needed:
        job = queue.jobs.set_space_needed(job, int(space))
    processed = results.get("processing")
    if not processed:
        return job
    parts: dict[str, dict[str, Any]] = {
        "identifiers": {"primary_id": processed["ark"], "local_id": list(processed["local_ids"])},
        "metadata": {
            "erc_who": processed["who"],
            "erc_what": processed["what"],
            "erc_when": processed["when"],
            "erc_where": processed["ark"],
        },
    }
    if server is not None:
        query = urlencode({"ark": processed["ark"], "version": processed["version"]})
        manifest = {
            "manifest_url": f"{server.rstrip('/')}/api/v1/ingest/manifest?{query}",
            "mode": "update" if job.configuration.get("update") else "add",
        }
        parts["store"] = manifest
        if "recording" in results:
            parts["inventory"] = manifest
    changed = {name: fields for name, fields in parts.items() if getattr(job, name) != fields}
    return queue.jobs.set_parts(job, **changed) if changed else job
