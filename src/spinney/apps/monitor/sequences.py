"""Sequences: requests to check services, each a job with a job for every service.

A sequence is a share of the queue of checks, so that sequences take turns whatever their lengths. Which services it
checks is decided when it is expanded and not when it is requested; a check that is spawned names its service by number,
and finds out itself whether that has been retired since."""

import hashlib
import re
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from spinney import Job
from spinney.apps.monitor import inventory, settings
from spinney.apps.monitor.application import CHECKS, checks, sequences, tables_awaited
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.tasks import task_list

TYPE = "monitor.sequence"
CHECK_TYPE = "monitor.check"
_AT_ONCE = 1000  # how many checks one call spawns
_CENTURY_S = 3_155_760_000.0  # behind it, no database can compare the time
_LOCK_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


class Selection(BaseModel):
    """Which services a sequence checks: those of one of the fields, the first that is set in the order below,
    or all services."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    gids: tuple[int, ...] = Field(default=(), max_length=100_000)
    """These services, in this order."""
    eid: int | None = None
    """All services of this entity."""
    description: str | None = Field(default=None, max_length=500)
    """A pattern of SQL on the services' descriptions."""
    unchecked_s: float | None = Field(default=None, ge=0, le=_CENTURY_S)
    """Those without a result for so many seconds."""
    state: Literal["error"] | None = None
    """Those of which a task found an error."""

    def services(self) -> list[Service]:
        """Return the services that are selected now, without retired ones, in the order in which they are
        checked. Raises TablesUnusable."""
        tables = database()
        if self.gids:
            return inventory.services.by_numbers(tables, self.gids)
        if self.eid is not None:
            return inventory.services.of_entity(tables, self.eid)
        if self.description is not None:
            return inventory.services.like_description(tables, self.description)
        if self.unchecked_s is not None:
            return inventory.services.unchecked_since(
                tables, int((time.time() - self.unchecked_s) * 1_000_000)
            )
        if self.state is not None:
            return inventory.services.failing(tables, task_list.counted(settings.load()))
        return inventory.services.all_present(tables)


@sequences.stage(max_attempts=5)
@tables_awaited()
def expand(job: Job, name: str, selection: Selection) -> Mapping[str, int]:
    """Make a job for each service; the value: how many ``services`` they are."""
    kind = checks.options(queue=CHECKS)
    selected = selection.services()
    for start in range(0, len(selected), _AT_ONCE):
        part = selected[start : start + _AT_ONCE]
        job.spawn_many(kind, [{"gid": service.gid, "host": host_of(service.uri)} for service in part])
    return {"services": len(selected)}


@sequences.stage(again=True)
def summary(job: Job) -> Mapping[str, int]:
    """Count the checks by the state in which their jobs settled."""
    return Counter(child.state for child in job.children())


def params(name: str, selection: Selection) -> dict[str, Any]:
    """Return the parameters of a sequence with a name for people; only the fields of the selection that say
    something."""
    return {"name": name, "selection": selection.model_dump(mode="json", exclude_defaults=True)}


def host_of(uri: str) -> str:
    """Return the host of a URI as part of a lock's name; ``none`` where it has none, and a digest where it
    could not be part of a name. All services of one host share the lock, whatever their ports."""
    try:
        host = urlsplit(uri if "//" in uri else f"//{uri}").hostname or "none"
    except ValueError:
        host = "none"
    return (
        host
        if _LOCK_NAME.fullmatch(host) and ".." not in host
        else hashlib.sha256(host.encode()).hexdigest()[:32]
    )
