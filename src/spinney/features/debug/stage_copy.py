"""A copy of a job as one of its stages finds it: parameters, data, results of earlier stages, subjobs and
folders.

The stage runs in this process. Its handle answers from memory, so that it writes nothing to the store and
takes no lock that others wait for; it writes files into copies of the folders. The fence is one higher than
that of the last attempt, but no lease exists for it, so nothing could be recorded even by mistake.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinney.app.application import Spinney
from spinney.define.job import Assignment, Child, Job
from spinney.define.job.memory_port import MemoryPort
from spinney.define.jobtype.job_types import Runner
from spinney.define.params.values import to_text
from spinney.features.files.job_folder import elsewhere
from spinney.files.disk_space import free_bytes
from spinney.model import jobs
from spinney.model.errors import NoSuch, Refused, UsageError
from spinney.model.outcomes import PASSED
from spinney.model.types import Isolation, TypeSpec
from spinney.model.values.paths import OWN, job_folder
from spinney.node.worker.stage_runners import StageRunners
from spinney.store.parts import Store

_FIRST_CHILD_ID = 10**11
"""The ids of jobs that the stage spawns begin here, so that none is that of a real job."""
_CHILDREN_PAGE = 1000
"""How many subjobs are read in one query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCopy:
    """A stage of a job, ready to run in this process on copies."""

    job: Job
    """The handle that the function of the stage gets."""
    params: str
    """The parameters as JSON, as a worker gets them."""
    port: MemoryPort
    """What the handle is connected to: it answers from memory, and keeps what the stage changes."""
    runner: Runner
    """Calls the function of the stage, or starts its program, with the parameters and the handle."""


def copy_stage(
    store: Store, app: Spinney, job_id: int, stage: str | None, *, root: Path, copies: Path
) -> StageCopy:
    """Return a copy of a stage, by default the one that failed last.

    ``root``: the folder root of this host. ``copies``: an empty folder, where the folders of the job, its parent and
    its root are copied to.

    Raises NoSuchJob; NoSuch where no stage has failed and none is named; UsageError for a stage or type that the
    application lacks; Refused where the job's folder is on another host, or the disk of ``copies`` has no room."""
    row = store.job(job_id)
    type_spec = _type_spec(app, row)
    home = elsewhere(store, job_id, root)
    if home is not None:
        raise Refused(f"the folder of job {job_id} is on {home}; run this command there")
    attempts = store.attempts(job_id)
    stage = stage or _failed_stage(attempts, job_id)
    _require_runnable(type_spec, stage)
    family = {id_ for id_ in (row.id, row.parent_id, row.root_id) if id_ is not None}
    _require_room([root / job_folder(id_) for id_ in family], copies)
    for id_ in family:
        _copy_folder(root / job_folder(id_), copies / job_folder(id_))
    earlier = [item.name for item in type_spec.stages]
    earlier = earlier[: earlier.index(stage)]
    results = store.results(job_id)
    port = MemoryPort(
        {id_: dict(store.get_data(id_)) for id_ in family},
        results={name: value for name, value in results.items() if name in earlier},
        children=_children(store, job_id),
        ancestry=family,
        first_id=_FIRST_CHILD_ID,
        place="a debugged stage",
    )
    params = to_text(row.params, "the parameters")
    assignment = Assignment(
        job_id=row.id,
        fence=max((item.fence for item in attempts), default=0) + 1,
        type=row.type,
        stage=stage,
        attempt=sum(item.stage == stage for item in attempts) + 1,
        params=params,
        parent_id=row.parent_id,
        root_id=row.root_id,
        folder_root=copies,
        has_marked_root=False,
    )
    return StageCopy(
        job=Job(assignment, port, app.types),
        params=params,
        port=port,
        runner=StageRunners(app.types).blocking(row.type, stage),
    )


def _type_spec(app: Spinney, row: jobs.Job) -> TypeSpec:
    """Return the job type as the application declares it. Raises UsageError when the application lacks it."""
    kind = app.types.get(row.type)
    if kind is None:
        raise UsageError(
            f"the application has no job type {row.type!r}; name the application whose node ran job {row.id}"
        )
    return kind.spec


def _require_runnable(type_spec: TypeSpec, stage: str) -> None:
    """Raise UsageError when the type has no such stage, or only an external worker runs it."""
    names = [spec.name for spec in type_spec.stages if spec.isolation is not Isolation.EXTERNAL]
    if stage not in names:
        raise UsageError(
            f"job type {type_spec.name!r} has no stage {stage!r} that runs here; it has: {', '.join(names)}"
        )


def _failed_stage(attempts: list[jobs.Attempt], job_id: int) -> str:
    """Return the stage of the latest attempt that failed with an error. Raises NoSuch when there is none."""
    for attempt in reversed(attempts):
        if attempt.outcome is not None and attempt.outcome not in PASSED and attempt.error:
            return attempt.stage
    raise NoSuch(f"no stage of job {job_id} has failed with an error; name one with --stage")


def _children(store: Store, job_id: int) -> Iterator[Child]:
    """Yield all subjobs as the handle shows them, read from the store in pages."""
    after = 0
    while page := store.children(job_id, after=after, limit=_CHILDREN_PAGE):
        for job in page:
            yield Child(
                job.id, job.type, job.state, job.stage, job.code, job.message, job.warnings, job.params
            )
        after = page[-1].id


def _file_sizes(folder: Path) -> Iterator[int]:
    """Yield the lengths of the plain files that a copy of a job's folder has, without those that vanish meanwhile."""
    for directory, subfolders, names in os.walk(folder):
        if Path(directory) == folder and OWN in subfolders:
            subfolders.remove(OWN)
        for name in names:
            with suppress(FileNotFoundError):
                status = (Path(directory) / name).lstat()
                if stat.S_ISREG(status.st_mode):
                    yield status.st_size


def _require_room(folders: list[Path], copies: Path) -> None:
    """Raise Refused when the copies of these folders would not fit on the disk of ``copies``, which may be the memory
    of a host with nodes. A sparse file counts with its length, because its copy has no holes."""
    needed = sum(size for folder in folders for size in _file_sizes(folder))
    copies.mkdir(parents=True, exist_ok=True)
    free = free_bytes(copies)
    if needed > free:
        raise Refused(
            f"the folders of the job, its parent and its root have {needed:,} bytes, and {copies} has room for "
            f"{free:,}; have them copied to a disk with room: --keep FOLDER"
        )


def _copy_folder(source: Path, target: Path) -> None:
    """Copy files, directories and links; leave out what the engine keeps there, pipes, sockets and devices, and what
    vanishes meanwhile: other jobs of the tree may be writing into the folders of parent and root."""
    if not source.is_dir():
        return

    def left_out(directory: str, names: list[str]) -> set[str]:
        folder = Path(directory)
        return {name for name in names if (folder == source and name == OWN) or not _is_copied(folder / name)}

    try:
        shutil.copytree(source, target, symlinks=True, ignore=left_out, copy_function=_copy_file)
    except shutil.Error as error:
        for path, _, why in error.args[0]:
            if os.path.lexists(path):
                raise OSError(f"cannot copy {path}: {why}") from error


def _copy_file(source: str, target: str) -> None:
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)


def _is_copied(path: Path) -> bool:
    """Return whether this is copied: a plain file, a directory, or a link, which stays one."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def summary(copy: StageCopy) -> Iterator[tuple[str, Any]]:
    """Yield what the stage did through its handle, as pairs of a name and a value, and the job's data as they
    are now; only what there is."""
    port = copy.port
    if port.spawned:
        yield "subjobs spawned", len(port.spawned)
    if port.submitted:
        yield "jobs submitted", len(port.submitted)
    if port.locks:
        yield "locks taken", ", ".join(port.locks)
    yield from ((f"data[{name!r}]", value) for name, value in sorted(port.data_of(copy.job.id).items()))
