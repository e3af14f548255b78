"""The commands for jobs whose folders are on a host that is lost, in stores whose folders are local.

Every release is audited; no file is touched. It takes an admin without limits, who may see the paths of hosts.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field

from spinney.commands import Command
from spinney.commands.fields import JobNumber, Reason, Word
from spinney.model.access import Role
from spinney.model.errors import Refused
from spinney.model.homes import Home
from spinney.model.values.hints import did_you_mean, listed
from spinney.model.values.lists import All
from spinney.service.service import Service

COUNTED = 10_000
"""The number up to which jobs are counted."""
_ACTION = "let go of job folders"
"""The end of the sentence that refuses a caller without the role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeStatus(Home):
    """A folder root, and how many jobs wait for its nodes."""

    ready: int
    """How many jobs are ready for its nodes alone, counted to 10,000."""


class ListHomes(
    Command, route="GET /homes", role=Role.ADMIN, everywhere=True, to="see the folder roots of hosts"
):
    """List the folder roots of a host.

    Those that have not been released, each with the jobs that are ready for its nodes alone."""

    host: Word = Field(description="The host's name.", examples=["thor"])

    def run(self, service: Service) -> All[HomeStatus]:
        return All(
            items=[
                HomeStatus(**asdict(home), ready=service.store.homes.waiting(home.id, most=COUNTED))
                for home in _homes_on(service, self.host)
            ]
        )


class ReleaseHome(Command, route="POST /homes/{home}/release", role=Role.ADMIN, everywhere=True, to=_ACTION):
    """Release all jobs from a folder root.

    They continue on other hosts, with empty folders. Refused while a node of that root is there."""

    home: Annotated[int, Field(ge=1, le=2**62, description="The folder root's number.", examples=[1])]
    reason: Reason = None

    def run(self, service: Service) -> Home:
        home = service.store.homes.let_go(self.home, service.actor(self.reason), now_us=service.clock())
        service.wake_nodes()
        return home


class RehomeJob(Command, route="POST /jobs/{job}/rehome", role=Role.ADMIN, everywhere=True, to=_ACTION):
    """Release a job from its host.

    It continues where it is claimed next, at the stage where it stopped, with an empty folder."""

    job: JobNumber
    reason: Reason = None

    def run(self, service: Service) -> Home:
        home = service.store.homes.let_go_of_job(self.job, service.actor(self.reason), now_us=service.clock())
        service.wake_nodes()
        return home


def _homes_on(service: Service, host: str) -> Sequence[Home]:
    """Return the folder roots of a host that have not been released. Raises Refused when there is none."""
    homes = [home for home in service.store.homes.all() if not home.given_up]
    on_host = [home for home in homes if home.host == host]
    if not on_host:
        hosts = sorted({home.host for home in homes})
        others = (
            f"those that have: {listed(hosts)}" if hosts else "folders are shared, or no node has joined yet"
        )
        raise Refused(f"no host {host!r} has job folders{did_you_mean(host, hosts)}; {others}")
    return on_host
