"""What has become of a job here, as Merritt's queue has it: its state, and the nodes that its steps write.

The rules are used by the consumer for jobs that it has taken, and by the mirror for those that were submitted
here. ``steps`` decides and changes nothing; ``write_parts`` writes only what differs, so that both may be
repeated.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, get_args
from urllib.parse import urlencode

from spinney.apps.ingest.deposits.orders import Stage
from spinney.bridges.merritt import STEPS, Job, JobState, MerrittNodeTooLarge, MerrittQueue, job_metadata
from spinney.bridges.merritt.codec import object_bytes
from spinney.jobs import SETTLED, State
from spinney.jobs import Job as SpinneyJob

_STATES: Mapping[str, JobState] = {stage: JobState(stage.capitalize()) for stage in get_args(Stage)}
"""The state there, by the stage here. ``processing`` stores, too: Storing is passed on the way to Recording."""
STAGES: Mapping[JobState, Stage] = {
    JobState.ESTIMATING: "estimating",
    JobState.PROVISIONING: "provisioning",
    JobState.DOWNLOADING: "downloading",
    JobState.PROCESSING: "processing",
}
"""The stage here before which a state is left to others; for later ones that is ``notify``."""
MESSAGE_MAX = 500
"""The longest message of a job there, in characters; a longer one is cut."""


def steps(before: JobState, job: SpinneyJob | None, ours: Collection[JobState] = STEPS) -> Sequence[JobState]:
    """Return the states that a job there has to enter, one transition each, until it says what holds here.

    ``job``: None for one that was deleted here. ``ours``: the states whose work is done here. The first other one is
    the last that is entered, as soon as the job has stopped before it.

    A job that failed first enters the step at which it did, so that it is requeued there. One that was requeued to a
    later step than the one that is repeated here stays there until that step is passed."""
    if job is None:
        return [JobState.FAILED]
    has_stopped = job.state is State.COMPLETED or (job.state is State.HELD and job.stage == "notify")
    at_stage = _STATES.get(job.stage or "", JobState.ESTIMATING)
    passing = _between(before, JobState.COMPLETED if job.state is State.COMPLETED else at_stage)
    others = next(
        (place for place, state in enumerate(passing) if state not in (*ours, JobState.COMPLETED)), None
    )
    if others is not None:
        passing = passing[: others + has_stopped]
    has_failed = job.state in SETTLED and job.state is not State.COMPLETED
    return [*passing, JobState.FAILED] if has_failed else passing


def _between(before: JobState, after: JobState) -> list[JobState]:
    """Return the states after ``before``, up to and with ``after``; none where that one comes first."""
    return list(STEPS[STEPS.index(before) + 1 : STEPS.index(after) + 1])


def message(job: SpinneyJob | None) -> str:
    """Return the sentence for the job there: why it failed, or what it waits for."""
    return "the job was deleted in Spinney" if job is None else (job.message or "")[:MESSAGE_MAX]


def write_parts(
    queue: MerrittQueue,
    job: Job,
    results: Mapping[str, Any],
    server: str | None,
    write: Callable[[str, bytes], str],
) -> Job:
    """Write the results of the stages that have passed, where the job does not have them yet, and return the job.

    ``server``: the URL of the server that serves manifests of what is stored; without one they have no URL. ``write``
    writes what is too large for a node to a file of that name, and returns its URL, which the node then has in place of
    all fields but ``primary_id``."""
    space = (results.get("provisioning") or {}).get("bytes")
    if space is not None and int(space) != job.space_needed:
        job = queue.jobs.set_space_needed(job, int(space))
    processed = results.get("processing")
    if not processed:
        return job
    parts: dict[str, dict[str, Any]] = {
        "identifiers": {"primary_id": processed["ark"], "local_id": list(processed["local_ids"])},
        "metadata": job_metadata(processed["who"], processed["what"], processed["when"], processed["ark"]),
    }
    if server is not None:
        query = urlencode({"ark": processed["ark"], "version": processed["version"]})
        manifest = {
            "manifest_url": f"{server.rstrip('/')}/api/v1/apps/ingest/manifest?{query}",
            "mode": "update" if job.configuration.get("update") else "add",
        }
        parts["store"] = manifest
        if "recording" in results:
            parts["inventory"] = manifest
    for name, fields in parts.items():
        try:
            object_bytes(name, fields)
        except MerrittNodeTooLarge:
            kept = {field: fields[field] for field in ("primary_id",) if field in fields}
            rest = {field: value for field, value in fields.items() if field not in kept}
            parts[name] = {**kept, "url": write(f"{job.id}-{name}.json", json.dumps(rest).encode())}
    changed = {name: fields for name, fields in parts.items() if getattr(job, name) != fields}
    return queue.jobs.set_parts(job, **changed) if changed else job
