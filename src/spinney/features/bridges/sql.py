"""Bridges and their links, as rows. Each bridge writes only its own.

For an entry that a bridge has claimed in the other system it writes the link first (``link``), then submits
the job and names it in the link (``name_jobs``); whenever the entry has been told of a change of the job, it
sets the position (``advance``), and ends the link with the last of them. Every update names the claim, so
that a process which was replaced meanwhile changes nothing of a link that was bound anew.
"""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from spinney.model.bridges import BridgeStatus, Link
from spinney.model.errors import Refused
from spinney.model.rights.actor import Actor
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import RowMap, unknown_name
from spinney.store.sql.session import SqlPart

AT_WORK_S = 60
"""Within how many seconds of its last report a bridge counts as at work."""
_STATUSES = RowMap(
    BridgeStatus,
    "bridges",
    columns={"links": "(select count(*) from bridge_links l where l.bridge = bridges.name)"},
)
_LINKS = RowMap(Link, "bridge_links")


class SqlBridges(SqlPart):
    """The bridges to other systems: which process runs each, how far behind it is, and its last trouble."""

    def take(self, name: str, system: str, owner: str, *, now_us: int) -> None:
        """Make a process (``owner``) the one that works under a name. The one before sees that at its next
        look, and ends."""
        with self._session.write() as tx:
            tx.run(
                "insert into bridges (name, system, owner, mark, seen_us, behind, in_trouble) "
                "values (?, ?, ?, ?, ?, 0, 0) "
                "on conflict (name) do update set system = excluded.system, owner = excluded.owner",
                (name, system, owner, uuid.uuid4().hex, now_us),
            )

    def owner(self, name: str) -> str | None:
        """Return the process that is to work under a name; None: no process ever has."""
        with self._session.look() as tx:
            process = tx.value("select owner from bridges where name = ?", (name,))
            return None if process is None else str(process)

    def mark(self, name: str) -> str:
        """Return what tells this store's bridge from another one of its name in the other system: random text that
        stays until the bridge is forgotten. Raises NoSuch for a bridge that has never been taken."""
        with self._session.look() as tx:
            mark: str = _require(tx, name, "mark")
            return mark

    def report(
        self, name: str, *, behind: int, behind_since_us: int | None, trouble: str | None, now_us: int
    ) -> None:
        """Record that a bridge is at work, and in which state it is.

        ``behind``: how many links have a job that has changed without the entry saying so yet, the oldest of
        them since ``behind_since_us``. ``trouble``: what the bridge suffers from now; None: nothing, and the
        last trouble stays visible as over. A power failure may undo a report.
        """
        with self._session.write(durable=False) as tx:
            tx.run(
                "update bridges set seen_us = ?1, behind = ?2, behind_since_us = ?3, trouble = coalesce(?4, trouble), "
                "trouble_us = case when ?5 = 0 then trouble_us else ?1 end, in_trouble = ?5 where name = ?6",
                (now_us, behind, behind_since_us, trouble, int(trouble is not None), name),
            )

    def forget(self, name: str, actor: Actor, *, now_us: int) -> None:
        """Remove a bridge that no longer runs, with its links. Its jobs stay. Raises NoSuch, and Refused for one that
        has reported within ``AT_WORK_S``."""
        with self._session.write() as tx:
            seen_us: int = _require(tx, name, "seen_us")
            if now_us - seen_us < AT_WORK_S * 1_000_000:
                raise Refused(
                    f"the bridge {name!r} has just reported; end it, wait {AT_WORK_S} s, and try again"
                )
            tx.run("delete from bridges where name = ?", (name,))
            tx.run("delete from bridge_links where bridge = ?", (name,))
            note(tx, now_us, actor, "bridge", {"forget": name}, 1)

    def statuses(self) -> Sequence[BridgeStatus]:
        """Return the status of all bridges by name, also of those that no process runs."""
        with self._session.look() as tx:
            return _STATUSES.all(tx, "order by name")

    def link(self, bridge: str, claims: Iterable[tuple[str, str]]) -> None:
        """Bind entries by their claims; jobs follow. A link with another claim of the same entry is replaced: that
        claim has been ended by the other system."""
        with self._session.write() as tx:
            for entry, claim in claims:
                tx.run(
                    "insert into bridge_links (bridge, entry, claim, position) values (?1, ?2, ?3, '') "
                    "on conflict (bridge, entry) do update set claim = excluded.claim, job_id = null, position = '' "
                    "where bridge_links.claim <> excluded.claim",
                    (bridge, entry, claim),
                )

    def name_jobs(self, bridge: str, jobs: Iterable[tuple[str, str, int]]) -> None:
        """Name the jobs of links, as triples of entry, claim and job. A link that has another claim by now is
        left alone."""
        with self._session.write() as tx:
            for entry, claim, job_id in jobs:
                tx.run(
                    "update bridge_links set job_id = ? where bridge = ? and entry = ? and claim = ?",
                    (job_id, bridge, entry, claim),
                )

    def advance(self, bridge: str, positions: Iterable[tuple[str, str, str | None]]) -> None:
        """Set the positions of links, as triples of entry, claim and position: what of the job has been
        passed on, in the bridge's own words. None instead of a position ends the link. A link that has
        another claim by now is left alone."""
        with self._session.write() as tx:
            for entry, claim, position in positions:
                link = "bridge = ? and entry = ? and claim = ?"
                if position is None:
                    tx.run(f"delete from bridge_links where {link}", (bridge, entry, claim))
                else:
                    sql = f"update bridge_links set position = ? where {link}"
                    tx.run(sql, (position, bridge, entry, claim))

    def links(self, bridge: str) -> Sequence[Link]:
        """Return the links of a bridge, ordered by entry. A link without a job is one whose job has not been
        named yet."""
        with self._session.look() as tx:
            return _LINKS.all(tx, "where bridge = ? order by entry", (bridge,))


def _require(tx: Tx, name: str, column: str) -> Any:
    """Return the value of a column of a bridge. Raises NoSuch."""
    value = tx.value(f"select {column} from bridges where name = ?", (name,))
    if value is None:
        raise unknown_name(tx, "bridges", "bridge", name, "spinney bridges")
    return value
