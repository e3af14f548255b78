"""Folders that nobody will reach any more, let go of: their jobs go on elsewhere, with empty ones."""

from collections.abc import Sequence

from spinney.model.access import Role
from spinney.model.errors import Refused
from spinney.model.homes import Home
from spinney.model.values import names
from spinney.model.values.hints import did_you_mean, listed
from spinney.service.service import Service


class Homes(Service):
    """For stores whose folders are local. Every change is audited; no file is touched. It takes an operator, and for a
    whole host one without limits; others get Forbidden."""

    def on_host(self, host: str) -> Sequence[Home]:
        """The folder roots of a host that nobody has let go of. Raises Refused when there is none."""
        self.require_everywhere(Role.OPERATOR, "let go of job folders")
        known = [home for home in self.store.homes.all() if not home.given_up]
        found = [home for home in known if home.host == host]
        if not found:
            hosts = sorted({home.host for home in known})
            there = f"those that have: {listed(hosts)}" if hosts else "and no other has"
            raise Refused(f"no host {host!r} has job folders{did_you_mean(host, hosts)}; {there}")
        return found

    def let_go_of_job(self, job_id: int, *, reason: str | None = None) -> Home:
        """Bind a job to no host any more: where it begins next, it goes on from the stage where it stopped, in an
        empty folder. Raises BadName, NoSuchJob, Refused."""
        self._require_job(job_id)
        _require_label(reason)
        home = self.store.homes.let_go_of_job(job_id, self.actor(reason), now_us=self.clock())
        self.wake_nodes()
        return home

    def let_go(self, home: Home, *, reason: str | None = None) -> Home:
        """The same for all jobs whose folders are in this root, at once. Raises BadName, Refused."""
        self.require_everywhere(Role.OPERATOR, "let go of job folders")
        _require_label(reason)
        done = self.store.homes.let_go(home.id, self.actor(reason), now_us=self.clock())
        self.wake_nodes()
        return done

    def _require_job(self, job_id: int) -> None:
        self.require(Role.OPERATOR, "let go of job folders")
        if not self.rights.everywhere:
            self.require_within(self.store.job(job_id))


def _require_label(reason: str | None) -> None:
    if reason is not None:
        names.label("reason", reason)
