"""Releases jobs from folders that are lost: the jobs continue on other hosts, with empty folders."""

from collections.abc import Sequence

from spinney.model.errors import Refused
from spinney.model.homes import Home
from spinney.model.values import names
from spinney.model.values.hints import did_you_mean, listed
from spinney.service.service import Service


class Homes(Service):
    """Releases jobs from their homes, in stores whose folders are local.

    Every change is audited; no file is touched. Rights are checked by the commands: it takes an admin
    without limits, who may see the paths of hosts.
    """

    def on_host(self, host: str) -> Sequence[Home]:
        """Return the folder roots of a host that have not been released. Raises Refused when there is none."""
        homes = [home for home in self.store.homes.all() if not home.given_up]
        on_host = [home for home in homes if home.host == host]
        if not on_host:
            hosts = sorted({home.host for home in homes})
            others = f"those that have: {listed(hosts)}" if hosts else "and no other has"
            raise Refused(f"no host {host!r} has job folders{did_you_mean(host, hosts)}; {others}")
        return on_host

    def let_go_of_job(self, job_id: int, *, reason: str | None = None) -> Home:
        """Release a job from its home, and return that home.

        Wherever the job runs next, it continues with the stage where it stopped, in an empty folder.
        Raises BadName (the reason), NoSuchJob, Refused (it is running, or has no home).
        """
        _require_label(reason)
        home = self.store.homes.let_go_of_job(job_id, self.actor(reason), now_us=self.clock())
        self.wake_nodes()
        return home

    def let_go(self, home_id: int, *, reason: str | None = None) -> Home:
        """Release all jobs of a home at once, and return it. Raises BadName (the reason), Refused (a
        node of that home is active)."""
        _require_label(reason)
        done = self.store.homes.let_go(home_id, self.actor(reason), now_us=self.clock())
        self.wake_nodes()
        return done


def _require_label(reason: str | None) -> None:
    if reason is not None:
        names.label("reason", reason)
