"""External workers that run external stages: rows of ``nodes`` with an owner, beside a row in
``external_workers``.

An external worker that joins again gets its old row of ``nodes``, so that rows do not pile up and its history
bears its name; ``join_count`` distinguishes the times that it has joined, and is part of its key. What it had
before has been taken back by then (``Store.recover``).
"""

from collections.abc import Sequence

from spinney.model.errors import Refused, UsageError
from spinney.model.external import (
    ExternalLease,
    ExternalWorker,
    ExternalWorkerGone,
    NoSuchExternalWorker,
    bare_name,
)
from spinney.model.jobs import NodeInfo
from spinney.model.rights.actor import Actor
from spinney.model.types import Isolation
from spinney.model.values.names import EXTERNAL_PREFIX
from spinney.model.values.unreadable import json_list
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.connection.schema_state import SCHEMA_VERSION
from spinney.store.sql.records import RowMap, upsert
from spinney.store.sql.registry import nodes
from spinney.store.sql.session import SqlPart

_LEASES = RowMap(
    ExternalLease,
    "leases l join jobs on jobs.id = l.job_id join lanes on lanes.id = l.lane",
    columns={
        "type": "lanes.type",
        "stage": "lanes.stage",
        "running_us": "coalesce(l.running_us, l.claimed_us)",
        # The earliest cancel request for the job, or for a tree that has it: the lineages of the jobs below a job lie
        # between its own with "." and with "/" appended.
        "cancel_requested_us": "(select min(w.at_us) from cancel_requests w where w.job_id = l.job_id or (w.tree = 1 "
        "and jobs.lineage > w.lineage || '.' and jobs.lineage < w.lineage || '/'))",
    },
    prefix="l.",
)


class SqlExternalWorkers(SqlPart):
    """External workers: programs of others that run external stages.

    To the rest of the store each is a node: ``Store.beat``, ``flush_and_claim`` and ``recover`` take its id.
    """

    def all(self) -> Sequence[ExternalWorker]:
        """Return the external workers that have not left, silent ones included, in the order in which they
        first joined."""
        with self._session.look() as tx:
            return _WORKERS.all(tx, "where n.state <> 'left' order by n.id")

    def named(self, name: str) -> ExternalWorker | None:
        """Return the external worker of that name, whoever owns it and even if it has left."""
        with self._session.look() as tx:
            return _named(tx, name)

    def join(
        self, external_worker: ExternalWorker, actor: Actor, *, version: str, now_us: int
    ) -> ExternalWorker:
        """Enter an external worker, in place of one of its name that has left, and return it with its id and
        ``join_count`` (those of the argument are ignored).

        Raises Refused (one of its name is there, or is still being recovered; the folders of the store are
        local), UnknownType, and UsageError (a stage that is not external).
        """
        with self._session.write() as tx:
            self._require_shared_folders()
            self._require_external(external_worker)
            before = _named(tx, external_worker.name)
            if before is not None and before.state != "left":
                raise Refused(
                    f"external worker {external_worker.name} has joined just now; if that was another, give "
                    "this one another name"
                )
            if before is None:
                node_id, join_count = nodes.join(tx, _info(external_worker, version, now_us), 0, now_us), 1
            else:
                node_id, join_count = before.id, before.join_count + 1
                self._revive(tx, before, external_worker, version, now_us)
            values = {
                "node_id": node_id,
                "owner": external_worker.owner,
                "join_count": join_count,
                "lease_s": external_worker.lease_s,
                "lanes": list_text(external_worker.lanes),
            }
            upsert(tx, "external_workers", "node_id", values)
            lanes = [list(lane) for lane in external_worker.lanes]
            note(tx, now_us, actor, "join", {"external_worker": external_worker.name, "lanes": lanes}, 1)
            return _by_id(tx, node_id, join_count)

    def _revive(
        self, tx: Tx, before: ExternalWorker, external_worker: ExternalWorker, version: str, now_us: int
    ) -> None:
        """Let an external worker that has left join again in its old row of ``nodes``. Raises Refused while leases of
        the last joining are still there."""
        if tx.exists("select 1 from leases where node_id = ? limit 1", (before.id,)):
            raise Refused(
                f"the attempts of external worker {external_worker.name} are still being taken back; let it join "
                "again in a moment"
            )
        tx.run(
            "update nodes set state = 'active', beat = beat + 1, slots = ?, started_us = ?, seen_us = ?, version = ?, "
            "types = ?, serves = ?, schema_version = ?, trouble = null where id = ?",
            (
                external_worker.slots,
                now_us,
                now_us,
                version,
                list_text(_types(external_worker)),
                nodes.serves_text(external_worker.serves),
                SCHEMA_VERSION,
                before.id,
            ),
        )
        if external_worker.serves != before.serves:
            self._session.registry.touch(tx)  # the claim caches by worker which lanes are closed to it

    def require_stages(self, external_worker: ExternalWorker) -> None:
        """Raise what ``join`` raises for the stages of an external worker, and change nothing."""
        with self._session.look():
            self._require_external(external_worker)

    def _require_shared_folders(self) -> None:
        """Raise Refused in a store with local folders: an external worker has none, and its job would be
        without its files."""
        if self._session.registry.homes.local:
            raise Refused(
                "the folders of this store are local, and an external worker has none: a job would lose "
                "its folder by it; run "
                "external stages with a store of shared folders"
            )

    def _require_external(self, external_worker: ExternalWorker) -> None:
        """Raise UsageError for a stage that is not declared as external, and UnknownType."""
        for type_, stage in external_worker.lanes:
            declared = self._session.registry.type(type_).stage(stage)
            if declared is None or declared.isolation is not Isolation.EXTERNAL:
                raise UsageError(
                    f"job type {type_!r} has no external stage {stage!r}; name one that its application declares so"
                )

    def find(self, node_id: int, join_count: int, owner: str) -> ExternalWorker:
        """Return an external worker to its owner, even if it has left.

        Raises NoSuchExternalWorker, also where it has another owner, so that nobody learns which keys exist;
        and ExternalWorkerGone when it has joined again since.
        """
        with self._session.look() as tx:
            external_worker = _by_id(tx, node_id, None)
            if external_worker.owner != owner:
                raise NoSuchExternalWorker(f"{node_id}-{join_count}")
            if external_worker.join_count != join_count:
                raise ExternalWorkerGone(
                    f"external worker {external_worker.name} has joined again since; its earlier attempts run "
                    "elsewhere, so stop them"
                )
            return external_worker

    def leases(self, node_id: int) -> Sequence[ExternalLease]:
        """Return the leases that an external worker has, ordered by their fences."""
        with self._session.look() as tx:
            return _LEASES.all(tx, "where l.node_id = ? order by l.fence", (node_id,))

    def last_fence(self) -> int:
        """Return the highest fence that was ever given to a lease of any node or external worker."""
        with self._session.look() as tx:
            return int(tx.value("select value from counters where name = 'fence'"))

    def expire(self, node_id: int, beat: int, *, now_us: int) -> bool:
        """Mark a silent external worker as left, unless its heartbeat counter has moved on from ``beat``. Returns
        whether it has left; its leases are to be recovered then."""
        with self._session.write() as tx:
            # One statement compares and marks: a heartbeat takes no writer's turn, so it may commit in between.
            if nodes.update(tx, node_id, "left", now_us, beat):
                return True
            return (tx.value("select state from nodes where id = ?", (node_id,)) or "left") == "left"

    def left(self, external_worker: ExternalWorker, actor: Actor, *, now_us: int) -> None:
        """Mark an external worker as left, and note it in the audit; the caller recovers its leases."""
        with self._session.write() as tx:
            nodes.update(tx, external_worker.id, "left", now_us)
            note(tx, now_us, actor, "leave", {"external_worker": external_worker.name}, 1)


def _pairs(lanes: str) -> tuple[tuple[str, str], ...]:
    """Return the lanes of a row as (job type, stage) pairs. A lane that is no pair is left out."""
    return tuple((lane[0], lane[1]) for lane in json_list(lanes) if isinstance(lane, list) and len(lane) == 2)


_WORKERS = RowMap(
    ExternalWorker,
    "nodes n join external_workers p on p.node_id = n.id",
    columns={"lease_s": "p.lease_s"},
    decode={"name": bare_name, "lanes": _pairs, "serves": nodes.serves},
)


def _by_id(tx: Tx, node_id: int, join_count: int | None) -> ExternalWorker:
    """Return the external worker of this id. Raises NoSuchExternalWorker; ``join_count`` is only for its
    message."""
    worker = _WORKERS.one(tx, "where n.id = ?", (node_id,))
    if worker is None:
        raise NoSuchExternalWorker(f"{node_id}-{join_count or 0}")
    return worker


def _named(tx: Tx, name: str) -> ExternalWorker | None:
    return _WORKERS.one(tx, "where n.name = ?", (EXTERNAL_PREFIX + name,))


def _types(external_worker: ExternalWorker) -> tuple[str, ...]:
    """Return the types of the worker's row in ``nodes``: ``type/stage`` for each lane. No type's name has a slash, so
    no query takes the worker for a node that knows the type."""
    return tuple(f"{type_}/{stage}" for type_, stage in external_worker.lanes)


def _info(external_worker: ExternalWorker, version: str, now_us: int) -> NodeInfo:
    """Return the row in ``nodes`` of an external worker that joins: its owner stands in place of a host."""
    return NodeInfo(
        id=0,
        name=EXTERNAL_PREFIX + external_worker.name,
        boot_id="",
        host=external_worker.owner,
        pid=0,
        slots=external_worker.slots,
        state="active",
        beat=0,
        started_us=now_us,
        seen_us=now_us,
        version=version,
        types=_types(external_worker),
        serves=external_worker.serves,
    )
