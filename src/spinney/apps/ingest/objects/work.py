"""The object that a stage works on: its order, its profile, where it works, and the lists that stages hand on."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from spinney import Fail, Job
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.application import STAGES
from spinney.apps.ingest.config import profiles, settings
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits import url_queries
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.fetching import Rules
from spinney.apps.ingest.files import copies
from spinney.errors import UsageError

WANTED, FETCHED, UNPACKED, STORED = "wanted.jsonl", "fetched.jsonl", "unpacked.jsonl", "stored.jsonl"
PAYLOAD, CONTENT, MANIFEST = "payload", "content", "manifest"
PROMISING = "provisioning"
"""The stage that chooses the area of an object; those before it go by its profile."""
OWNER = "job"
"""In a folder of a working area: the number of the job whose it is, by which ``cleanup`` goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What every stage needs."""

    job: Job
    order: ObjectOrder
    settings: Settings
    profile: Profile
    area: str | None
    """The working area that it works in; None: its job's folder."""
    folder: Path
    """Where it works."""

    @property
    def syncs(self) -> bool:
        """Whether stages have to sync what they hand on. Not in the job's folder, which the engine syncs before it
        records that a stage has passed; a power cut before that has the stage run again. A working area is not the
        engine's."""
        return self.folder != self.job.folder

    @property
    def rules(self) -> Rules:
        """What may be fetched, and how."""
        return Rules(
            hosts=self.profile.hosts,
            file_roots=self.settings.file_roots,
            largest_bytes=self.settings.downloads.largest_bytes,
        )

    @property
    def url(self) -> str:
        """Of the payload, whole; empty where the batch has it itself."""
        payload, parent = self.order.payload, self.job.parent
        if payload.url is None or parent is None:
            return payload.url or ""
        return url_queries.whole(parent.folder, payload.url, payload.query)

    def held(self) -> Path | None:
        """The payload, where the batch has it in its own folder."""
        parent = self.job.parent
        if self.order.payload.held is None or parent is None:
            return None
        return parent.folder / self.order.payload.held


def algorithms(at: Work) -> tuple[str, ...]:
    """Of every file; by sha512 or sha256 the storage addresses it."""
    target = at.settings.storage[at.profile.storage]
    return tuple(dict.fromkeys((target.algorithm, at.profile.digest, "sha256")))


def work(job: Job, order: ObjectOrder) -> Work:
    """Raises Defer while settings or profile cannot be read, Fail where a drill was ordered."""
    with admission(lane=True):
        found = settings.load()
    with admission():
        profile = profiles.load(found, order.profile)
    _drill(job, found, order)
    area = _chosen(job, found, profile)
    folder = job.folder
    if area is not None:
        folder = _owned(_area(found, area), order.jid, job.id)
    return Work(job=job, order=order, settings=found, profile=profile, area=area, folder=folder)


def area_of(results: Mapping[str, Any], profile: str | None) -> str | None:
    """The area of an object with these results of stages: its profile's, until space was promised to it in one."""
    promised: str | None = results.get(PROMISING, {}).get("area", profile)
    return promised


def _chosen(job: Job, found: Settings, profile: Profile) -> str | None:
    if not found.areas or STAGES.index(job.stage) <= STAGES.index(PROMISING):
        return profile.area
    return area_of(job.results, profile.area)


def _area(found: Settings, name: str) -> Path:
    with admission():
        if name not in found.areas:
            raise UsageError(
                f"the settings have no working area {name!r} any more, where it is; name it again"
            )
        if not found.areas[name].is_dir():
            raise UsageError(
                f"the working area {name!r} is not there: mount the disk of {found.areas[name]}, or run "
                f"'spinney ingest init'"
            )
    return found.areas[name]


def _owned(area: Path, jid: str, job_id: int) -> Path:
    """The object's folder in a working area. Where its owner is named, its own name has been synced."""
    folder = area / jid
    owner, told = folder / OWNER, f"{job_id}\n".encode()
    if not owner.is_file() or owner.read_bytes() != told:
        folder.mkdir(exist_ok=True)
        copies.sync_folder(area)
        owner.write_bytes(told)
    return folder


def _drill(job: Job, found: Settings, order: ObjectOrder) -> None:
    """An ordered failure: once an object, so that to requeue it mends it."""
    if order.fail_at != job.stage or not found.test_mode or job.data.get("drilled"):
        return
    job.data["drilled"] = True
    raise Fail(f"a failure at {job.stage} was ordered with --fail-at; requeue it", retryable=False)


def passed(job: Job) -> str | None:
    """The last stage of this job that was successful."""
    return next((stage for stage in reversed(STAGES) if stage in job.results), None)


def write_list(path: Path, rows: Iterable[dict[str, Any]], *, sync: bool) -> None:
    """A JSON line a row; the file is whole or not there, whatever process dies. With ``sync`` also when the power goes,
    and durable on return."""
    beside = path.with_name(f"{path.name}.new")
    with beside.open("wb") as out:
        for row in rows:
            out.write(orjson.dumps(row) + b"\n")
        if sync:
            out.flush()
            os.fsync(out.fileno())
    beside.replace(path)
    if sync:
        copies.sync_folder(path.parent)


def read_list(path: Path, made_by: str) -> Iterator[dict[str, Any]]:
    """What ``write_list`` wrote. Raises Fail, when it is gone, with the stage that makes it anew."""
    try:
        with path.open("rb") as lines:
            for line in lines:
                yield orjson.loads(line)
    except FileNotFoundError:
        raise Fail(
            f"{path.name} is gone from the working folder; requeue this object from its stage '{made_by}'",
            retryable=False,
        ) from None
