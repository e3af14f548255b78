"""The object that a stage works on: its order, profile and working folder, and the lists that stages hand on."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from spinney import Fail, Finish, Hold, Job
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.application import STAGES
from spinney.apps.ingest.config import open_resources, profiles, settings
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import OWNER, Settings
from spinney.apps.ingest.deposits import url_queries
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.fetch import Rules
from spinney.errors import UsageError
from spinney.files import copies

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory.inventory import Inventory

WANTED, FETCHED, UNPACKED, STORED = "wanted.jsonl", "fetched.jsonl", "unpacked.jsonl", "stored.jsonl"
PAYLOAD, CONTENT, MANIFEST = "payload", "content", "manifest"
PROMISING = "provisioning"
"""The stage that chooses the area of an object; those before it use the area of its profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The order, settings and folder that every stage needs."""

    job: Job
    order: ObjectOrder
    settings: Settings
    profile: Profile
    area: str | None
    """The working area of the object; None: it works in its job's folder."""
    folder: Path
    """The working folder."""

    @property
    def syncs(self) -> bool:
        """Whether stages have to sync the files that they hand on.

        Not in the job's folder, which the engine syncs before it records that a stage has passed; after a power cut
        before that the stage runs again. The engine does not sync working areas.
        """
        return self.folder != self.job.folder

    @property
    def inventory(self) -> "Inventory":
        """The inventory, which the process keeps open."""
        return open_resources.inventory(self.settings)

    @property
    def rules(self) -> Rules:
        """The rules of what may be fetched, and how."""
        return Rules(
            hosts=self.profile.hosts,
            file_roots=self.settings.file_roots,
            largest_bytes=self.settings.downloads.largest_bytes,
        )

    @property
    def url(self) -> str:
        """The complete URL of the payload; empty where the batch has the payload in its folder."""
        payload, parent = self.order.payload, self.job.parent
        if payload.url is None or parent is None:
            return payload.url or ""
        return url_queries.whole(parent.folder, payload.url, payload.query)

    def held(self) -> Path | None:
        """Return the path of the payload where the batch has it in its own folder, else None."""
        parent = self.job.parent
        if self.order.payload.held is None or parent is None:
            return None
        return parent.folder / self.order.payload.held


def algorithms(work: Work) -> tuple[str, ...]:
    """Return the digest algorithms for every file, that of the storage first."""
    target = work.settings.storage[work.profile.storage]
    return tuple(dict.fromkeys((target.algorithm, work.profile.digest, "sha256")))


def load_work(job: Job, order: ObjectOrder) -> Work:
    """Return the work of a stage: settings, profile and working folder, each as it is now.

    A folder in a working area is created, with the number of its job. Raises Defer while settings or profile
    cannot be read, or the area's disk is not mounted; Fail for a failure that the submitter ordered; Finish
    or Hold where another service continues.
    """
    with admission(lane=True):
        config = settings.load()
    with admission():
        profile = profiles.load(config, order.profile)
    _drill(job, config, order)
    _hand_over(job, order)
    area = _chosen_area(job, config, profile)
    folder = job.folder
    if area is not None:
        folder = _own_folder(_area_folder(config, area), order.jid, job.id)
    return Work(job=job, order=order, settings=config, profile=profile, area=area, folder=folder)


def area_of(results: Mapping[str, Any], profile: str | None) -> str | None:
    """Return the area of an object with these results of stages: its profile's, until space was promised in another.
    None: the folder of the job."""
    promised: str | None = results.get(PROMISING, {}).get("area", profile)
    return promised


def _chosen_area(job: Job, config: Settings, profile: Profile) -> str | None:
    """Return the area of an object: from the stage after ``provisioning`` on, the one in which space was
    promised."""
    if not config.areas or STAGES.index(job.stage) <= STAGES.index(PROMISING):
        return profile.area
    return area_of(job.results, profile.area)


def _area_folder(config: Settings, name: str) -> Path:
    """Return the folder of a working area. Raises Defer while it is not in the settings, or does not
    exist."""
    with admission():
        if name not in config.areas:
            raise UsageError(
                f"the settings have no working area {name!r} any more, where it is; name it again"
            )
        if not config.areas[name].is_dir():
            raise UsageError(
                f"the working area {name!r} is not there: mount the disk of {config.areas[name]}, or run "
                f"'spinney ingest init'"
            )
    return config.areas[name]


def _own_folder(area: Path, jid: str, job_id: int) -> Path:
    """Return the object's folder in a working area. Once it names its owner, its own name has been synced."""
    folder = area / jid
    owner, content = folder / OWNER, f"{job_id}\n".encode()
    if not owner.is_file() or owner.read_bytes() != content:
        folder.mkdir(exist_ok=True)
        copies.sync_folder(area)
        owner.write_bytes(content)
    return folder


def _drill(job: Job, config: Settings, order: ObjectOrder) -> None:
    """Raise an ordered failure, once for each object, so that the object passes when it is requeued."""
    if order.fail_at != job.stage or not config.test_mode or job.data.get("drilled"):
        return
    job.data["drilled"] = True
    raise Fail(f"a failure at {job.stage} was ordered with --fail-at; requeue it", retryable=False)


def _hand_over(job: Job, order: ObjectOrder) -> None:
    """End the object, or hold it once, where another service goes on. At ``notify`` there is its folder to clear."""
    if order.until != job.stage:
        return
    if not order.returns and job.stage != "notify":
        raise Finish("another service does the rest")
    if order.returns and not job.data.get("handed_over"):
        job.data["handed_over"] = True
        raise Hold("another service does the next step; the job continues when that has passed")


def write_list(path: Path, rows: Iterable[dict[str, Any]], *, sync: bool) -> None:
    """Write a JSON line for each row; the file is whole or absent, even if the process dies. With ``sync`` also after a
    power cut, and durable on return."""
    with copies.replacing(path, sync=sync) as out:
        for row in rows:
            out.write(orjson.dumps(row) + b"\n")
    if sync:
        copies.sync_folder(path.parent)


def read_list(path: Path, stage: str) -> Iterator[dict[str, Any]]:
    """Yield the rows that ``write_list`` wrote. Raises Fail when the file is gone, naming the stage that writes it."""
    try:
        with path.open("rb") as lines:
            for line in lines:
                yield orjson.loads(line)
    except FileNotFoundError:
        raise Fail(
            f"{path.name} is no longer in the working folder; requeue this object from its stage '{stage}'",
            retryable=False,
        ) from None
