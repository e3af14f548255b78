"""Queries for the homes of jobs, and the release of jobs from homes that are lost.

A job's row has the node of its last attempt, and that node has a home: that is where the job's folder is.
Nothing else records it, so a release of one job forgets the node, and a release of a home marks the home as
gone for all its jobs at once.
"""

from collections.abc import Sequence

from spinney.model.errors import Refused
from spinney.model.homes import Home
from spinney.model.rights.actor import Actor
from spinney.model.states import State
from spinney.model.values.hints import first_of
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import list_text
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.homes import whereabouts
from spinney.store.sql.session import SqlPart
from spinney.store.sql.transitions.cascades import Cascade

_NAMED = 3
"""How many nodes a message names."""
_SKIPPED = 1_000_000
"""How many fences and events of webhooks are skipped after a restore: more than are likely to have been given since the
backup."""


class SqlHomes(SqlPart):
    """Where jobs have their folders, in a store whose folders are local (``spinney.model.homes``).

    A job's home is the folder root where its last attempt began; only nodes with that root may claim the job. Folders
    are never moved. A job that is released from its home begins with an empty folder wherever it runs next, at the
    stage where it stopped; no file is touched by that.
    """

    def all(self) -> Sequence[Home]:
        """Return every folder root that a node has joined with, also those that were released;
        nothing where folders are shared."""
        with self._session.look():
            return list(self._session.registry.homes.by_id.values())

    def of(self, job_id: int) -> Home | None:
        """Return the home of a job, or where it runs now; None where it has none yet, or folders are
        shared. Raises NoSuchJob."""
        with self._session.look() as tx:
            row = job_rows.find_visible(tx, job_id)
            return whereabouts(tx, self._session.registry.homes, row)

    def elsewhere(self, job_ids: Sequence[int], mark: str) -> Sequence[int]:
        """Return the jobs of this list whose folder is in another root than the one with this mark, also in one that
        was released. A job that has no home yet is not among them."""
        with self._session.look() as tx:
            homes = self._session.registry.homes
            this_home = next((home.id for home in homes.by_id.values() if home.mark == mark), 0)
            rows = tx.all(
                "select id, node_id from jobs where id in (select j.value from json_each(?) j)",
                (list_text(job_ids),),
            )
            return [job_id for job_id, node_id in rows if homes.of(tx, node_id) not in (0, this_home)]

    def waiting(self, home_id: int, *, most: int) -> int:
        """Return how many ready jobs only nodes of this home may claim, counted no further than ``most``."""
        with self._session.look() as tx:
            sql = "select 1 from lanes l join ready r on r.lane = l.id where l.home = ? limit ?"
            return int(tx.value(f"select count(*) from ({sql}) counted", (home_id, most)))

    def skip_numbers(self, highest_job: int, actor: Actor, *, now_us: int) -> bool:
        """Give no new job a number up to ``highest_job``, of which there is a folder; return whether
        that changed anything.

        If it did, this store is an older backup: jobs and attempts that were made since then are
        unknown to it, and their folders still exist. So fences that may have been given since then
        are skipped, too, and numbers of webhooks' events: a receiver would ignore a delivery whose id it
        has had.
        """
        with self._session.write() as tx:
            tx.run(
                "update counters set value = ? where name = 'job' and value < ?", (highest_job, highest_job)
            )
            if tx.changed() == 0:
                return False
            tx.take("fence", _SKIPPED)
            tx.take("webhook_event", _SKIPPED)
            details = {"job": highest_job, "fences": _SKIPPED, "events": _SKIPPED}
            note(tx, now_us, actor, "skip numbers", details, 1)
            return True

    def let_go_of_job(self, job_id: int, actor: Actor, *, now_us: int) -> Home:
        """Release a job from its home, and return that home.

        A pending job moves to the lane without a home in the same transaction. Raises NoSuchJob, and
        Refused (the job has no home, is running or deleted, or folders are shared).
        """
        with self._session.write() as tx:
            registry = self._session.registry
            self._require_local()
            row = job_rows.find_visible(tx, job_id)
            home = whereabouts(tx, registry.homes, row)
            if row.state is State.DELETED:
                raise Refused(f"job {job_id} is deleted; the nodes of its host remove its folder")
            if home is None:
                raise Refused(
                    f"job {job_id} is bound to no host: where it begins next, there will be its folder"
                )
            if job_rows.leased_fence(tx, job_id) is not None:
                raise Refused(f"job {job_id} is running on {home}; wait until it has ended, or cancel it")
            job_rows.move_final(tx, job_id)  # before the node is forgotten
            cascade = Cascade(tx, registry, now_us)
            was_ready = row.state is State.PENDING and cascade.leave_ready(row)
            tx.run("update jobs set node_id = null where id = ?", (job_id,))
            if was_ready:
                cascade.return_to_ready(job_rows.find(tx, job_id))
                cascade.drain()
            note(tx, now_us, actor, "rehome", {"job": job_id, "host": home.host, "path": home.path}, 1)
            return home

    def let_go(self, home_id: int, actor: Actor, *, now_us: int) -> Home:
        """Release all jobs of a home at once, and forget the folders of its deleted jobs. When a node joins with that
        root again, it gets back the jobs that have not begun elsewhere. Raises Refused (a node of this home is there,
        it was released already, or folders are shared)."""
        with self._session.write() as tx:
            self._require_local()
            home = self._session.registry.homes.by_id.get(home_id)
            if home is None or home.given_up:
                raise Refused("that folder root was released already; 'spinney audit' shows by whom")
            active = tx.column("select name from nodes where home = ? and state <> 'left'", (home_id,))
            if active:
                raise Refused(
                    f"nodes run on {home}: {first_of(active, _NAMED)}; end such a node with SIGTERM, or, when "
                    f"it is dead, run 'spinney doctor --repair --dead {active[0]}'"
                )
            tx.run("update homes set gone = 1 where id = ?", (home_id,))
            self._session.registry.touch(tx)
            note(tx, now_us, actor, "rehome", {"host": home.host, "path": home.path}, 1)
            return home

    def _require_local(self) -> None:
        """Raise Refused in a store whose folders are shared."""
        if not self._session.registry.homes.local:
            raise Refused(
                "the folders of this store are shared, so that all its nodes see them; there is nothing to release"
            )
