"""The job type of a request, with one stage, which makes the package."""

import errno
import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, BinaryIO

from spinney import Fail, Job
from spinney.apps.ingest.access import bags, packages
from spinney.apps.ingest.access.packages import Package
from spinney.apps.ingest.access.requests import LARGE, SMALL
from spinney.apps.ingest.access.tickets import TYPE, AccessOrder
from spinney.apps.ingest.admission import admission, space_awaited
from spinney.apps.ingest.application import app
from spinney.apps.ingest.byte_progress import byte_progress
from spinney.apps.ingest.config import open_resources, settings
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits import priorities
from spinney.apps.ingest.storage import Damaged, NoSuchObject
from spinney.containers import pack
from spinney.files import disk_space

app.queue(LARGE)
accesses = app.pipeline(
    TYPE,
    queue=app.queue(SMALL),
    priority=priorities.FIRST,
    subject="{order.ark} version {order.version}",
    description="Make a package of a stored object on request",
)


@accesses.stage(max_attempts=3)
@space_awaited
def packing(job: Job, order: AccessOrder) -> dict[str, Any]:
    """Write the files of the version into an archive, each compared with its digests while it is read. The value is the
    description of the package (``Package``)."""
    with admission():
        config = settings.load()
    folder = config.packages / f"{job.id}-{order.secret}"
    package = packages.valid(folder, datetime.now(UTC))
    if package is None:  # otherwise an earlier attempt made it, and was killed before that was recorded
        package = _make_package(job, config, order, folder)
    return package.model_dump(mode="json")


def _make_package(job: Job, config: Settings, order: AccessOrder, folder: Path) -> Package:
    """Write the package into the token's folder. Raises NoRoom where there is no space for it; fails for damage, which
    is entered into the inventory."""
    disk_space.require(config.home, order.size_bytes)
    with admission():
        modified = _modified(config, order)
    began = time.monotonic()

    def write(out: BinaryIO) -> Package:
        with pack.writing(order.format, out, order.created) as archive:
            progress = byte_progress(job, order.size_bytes)
            files, content_bytes = bags.bag(archive, storage, order, progress, modified)
        now = datetime.now(UTC)
        return Package(
            file=f"{bags.name_of(order.ark, order.version)}.{order.format}",
            size_bytes=0,
            files=files,
            content_bytes=content_bytes,
            made=now,
            expires=now + timedelta(days=config.access.keep_days),
            seconds=time.monotonic() - began,
        )

    with admission():
        try:
            storage = open_resources.storage(config, order.storage)
            with disk_space.naming_the_folder(config.home, order.size_bytes):
                return packages.make(folder, job.fence, write)
        except (Damaged, NoSuchObject) as error:
            # The next audit reports it by mail.
            inventory = open_resources.inventory(config)
            inventory.audited(order.ark, datetime.now(UTC), order.files, order.size_bytes, [str(error)])
            raise Fail(f"{order.ark} is damaged: {error}", retryable=False) from error
        except OSError as error:
            if disk_space.is_full(error) or error.errno == errno.EROFS:
                raise
            why = error.strerror or error
            raise Fail(
                f"the package could not be made ({why}); check the disk and the storage, and retry"
            ) from error


def _modified(config: Settings, order: AccessOrder) -> dict[str, datetime]:
    """Return when the files of the version were last changed, where the depositor gave a date that can be parsed."""
    files = open_resources.inventory(config).files(order.ark, order.version)
    return {file.path: when for file in files if (when := parsed_date(file.modified)) is not None}


def parsed_date(text: str | None) -> datetime | None:
    """Parse a date in the format of ISO 8601 or of mail (RFC 5322), by default in UTC, and return it in UTC.

    Return None for other formats, also for ambiguous ones such as 05/04/2026, and for a date whose year in UTC is not
    between 1 and 9999.
    """
    if not text:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = read(text)
            return date.replace(tzinfo=date.tzinfo or UTC).astimezone(UTC)
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
    return None
