"""The jobs of this service, as rows of an older job server (``history``).

The states of that server are fewer: whatever ended without success counts as failed, and whatever is open as not done.
Submitters and collections that are numbers become its user and project ids."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from spinney.apps.receivers.application import TYPES
from spinney.apps.receivers.history import OldJob
from spinney.jobs import Filter, Job, State, job_folder
from spinney.operations import Control, all_jobs

_DONE = {State.COMPLETED: 1, State.FAILED: -1, State.CANCELLED: -1, State.ORPHANED: -1}


def own_jobs(control: Control, root: Path) -> Iterator[OldJob]:
    """Yield the jobs of this service, type by type and within one by id, read page by page. ``root``: the
    folder root; a job whose folder is gone has no path."""
    for type_ in TYPES:
        for job in all_jobs(control.queries, Filter(type=type_)):
            yield _old_job(control, job, root)


def _old_job(control: Control, job: Job, root: Path) -> OldJob:
    """Return a job as the old server would have it. Results and data get names that end in ``_``, as all that
    a job wrote."""
    written = {**control.queries.results(job.id), **control.queries.data(job.id)}
    generated = {name if name.endswith("_") else f"{name}_": value for name, value in written.items()}
    if job.message:
        generated["message_"] = job.message
    folder = root / job_folder(job.id)
    is_top = job.parent_id is None
    return OldJob(
        id=job.id,
        pid=job.parent_id,
        stump=job.root_id,
        ctime=job.created_us / 1e6,
        mtime=(job.settled_us or job.started_us or job.created_us) / 1e6,
        type=job.type.removeprefix("receivers."),
        done=_DONE.get(job.state, 0),
        queue=job.queue,
        path=str(folder) if folder.exists() else None,
        data=orjson.dumps({**job.params, **generated}).decode(),
        motusUserID=_number(job.submitter) if is_top else None,
        motusProjectID=_number(job.collection) if is_top else None,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() else None
