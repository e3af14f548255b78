"""Homes: the folder roots of a store whose folders are local, each on one host or disk.

A root has a mark, a home is a root that a node has joined with, and a job's home is that of the node of its last
attempt that began. Its folder is there, so its row in ``ready`` is in a lane of that home, which nodes of other homes
do not serve (``Registry.closed_to``). The place of a job's folder is not stored elsewhere: ``jobs.node_id`` leads to
the node, and ``nodes.home`` to the home. An attempt whose start was not recorded (its node died before) leaves no home.

An operator may **release** a single job: then it has no home (its row names no node any more). Or a whole home: it is
marked, its lanes are open to all, and its jobs get the home where they begin next. When a node joins with that root
again, the remaining jobs belong to it again. No file is touched.

Where folders are shared all homes are 0, and these tables are not queried.
"""

from collections.abc import Mapping

from spinney.model.errors import NodeRefused
from spinney.model.homes import FolderRoot, Home
from spinney.model.jobs import NodeInfo
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import RowMap, insert
from spinney.store.sql.registry.job_rows import Row

FOLDERS, LOCAL = "folders", "local"
"""The row of ``meta`` for local folders, and its value."""
_HOMES = RowMap(Home, "homes", columns={"given_up": "gone"})
_OF_JOB = "coalesce((select n.home from nodes n where n.id = jobs.node_id), 0)"


class KnownHomes:
    """A registry's cache of the homes. The home of each node is kept, too, because it is set when a node
    joins and never changes; an object lives until the registry is read again."""

    def __init__(self, homes: Mapping[int, Home] | None) -> None:
        self.local = homes is not None
        self.by_id: Mapping[int, Home] = homes or {}
        self.given_up = frozenset(home.id for home in self.by_id.values() if home.given_up)
        self._of_node: dict[int, int] = {}

    @property
    def sql(self) -> str:
        """Return the home of a job, as SQL on ``jobs``."""
        return _OF_JOB if self.local else "0"

    def of(self, tx: Tx, node_id: int | None) -> int:
        """Return the home of a job whose last begun attempt ran on this node."""
        if not self.local or node_id is None:
            return 0
        home = self._of_node.get(node_id)
        if home is None:
            home = self._of_node[node_id] = tx.value("select home from nodes where id = ?", (node_id,)) or 0
        return home

    def admit(self, node: int, job: int) -> bool:
        """Return whether nodes of home ``node`` may get jobs of home ``job``."""
        return job in (0, node) or job in self.given_up


NONE = KnownHomes(None)


def read(tx: Tx) -> KnownHomes:
    """Return the homes, as the current transaction sees them."""
    if tx.value("select value from meta where name = ?", (FOLDERS,)) != LOCAL:
        return NONE
    return KnownHomes({home.id: home for home in all_(tx)})


def all_(tx: Tx) -> list[Home]:
    """Return all homes by id, also those that an operator has given up."""
    return _HOMES.all(tx, "order by id")


def whereabouts(tx: Tx, homes: KnownHomes, row: Row) -> Home | None:
    """Return where a job's folder is now: the home of the node that runs it, else its own home. None: it has none yet,
    or folders are shared."""
    at_work = tx.value("select node_id from leases where job_id = ?", (row.id,)) if homes.local else None
    return homes.by_id.get(homes.of(tx, at_work or row.node_id))


def enter(tx: Tx, node: NodeInfo) -> tuple[int, bool]:
    """Return the home of a joining node, and whether the home has changed, so that caches have to be read
    again.

    A root is recognized by its mark, wherever it is mounted; a new mark makes a new home. A home that an
    operator has given up is in use again from now on. (0, False) where folders are shared. Raises NodeRefused
    when the root is in the place of another one, is a copy of one in use, or is not named at all."""
    if tx.value("select value from meta where name = ?", (FOLDERS,)) != LOCAL:
        return 0, False
    root = node.root
    if root is None:
        raise NodeRefused(
            "the folders of this store are local, and this node does not tell where its folders are; upgrade it"
        )
    home = _HOMES.one(tx, "where mark = ?", (root.mark,))
    if home is None:
        _require_not_another(tx, node, root)
        home_id = tx.take("home")
        insert(tx, "homes", {"id": home_id, "mark": root.mark, "host": node.host, "path": root.path})
        return home_id, True
    _require_no_copy(tx, home.id, node, root)
    if home.host == node.host and home.path != root.path:
        _require_not_beside(tx, home.id, home.path, node, root)
    if (home.host, home.path, home.given_up) == (node.host, root.path, False):
        return home.id, False
    tx.run("update homes set host = ?, path = ?, gone = 0 where id = ?", (node.host, root.path, home.id))
    return home.id, True


def _require_not_another(tx: Tx, node: NodeInfo, root: FolderRoot) -> None:
    """Refuse a new root in the place of another one, because a disk may not be mounted."""
    same_place = "select 1 from homes where host = ? and path = ? and gone = 0 limit 1"
    if tx.exists(same_place, (node.host, root.path)):
        raise NodeRefused(
            f"{root.path} on host {node.host} is not the folder root that was there before (its mark is another): is "
            f"the disk mounted? Mount it, or, when what was in it is lost, let go of it first: spinney rehome --host "
            f"{node.host}"
        )


def _require_no_copy(tx: Tx, home: int, node: NodeInfo, root: FolderRoot) -> None:
    """Refuse a copied root, which has the mark of the original; one job must not have two folders."""
    other = tx.one(
        "select name, host from nodes where home = ? and state <> 'left' and host <> ? and boot_id <> ? limit 1",
        (home, node.host, node.boot_id),
    )
    if other is not None:
        raise NodeRefused(
            f"{root.path} has the mark of the folder root with which node {other[0]} works on host {other[1]}, so it "
            f"is a copy; name another folder, or, when that host is gone and this took its place, let the old node go "
            f"first: spinney doctor --repair --dead {other[0]}"
        )


def _require_not_beside(tx: Tx, home: int, path: str, node: NodeInfo, root: FolderRoot) -> None:
    """Refuse a root at another path of the host than the one in use, since it may be a copy. A container sees the same
    root at a path of its own, but has a host name of its own, too."""
    other = tx.value(
        "select name from nodes where home = ? and state <> 'left' and host = ? limit 1", (home, node.host)
    )
    if other is not None:
        raise NodeRefused(
            f"{root.path} has the mark of the folder root {path}, with which node {other} works on this host, so it "
            f"may be a copy; when it is the same folder, name it by the same path as node {other}, {path}, else name "
            f"another folder; when the root was moved, end that node first"
        )


def attended(alias: str) -> str:
    """Return the SQL condition that an active node may get the jobs of this home; ``alias``: the column of the home."""
    return (
        f"({alias} = 0 or exists (select 1 from nodes a where a.home = {alias} and a.state = 'active') "
        f"or exists (select 1 from homes h where h.id = {alias} and h.gone = 1))"
    )
