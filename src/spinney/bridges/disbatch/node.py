"""A Disbatch database as the other side of a bridge: the node protocol of Disbatch 4.

An entry is a task, named by its id, and a claim is the number in the task's field ``claim``. Every write of a result
names the node and the claim in its filter, so that a task which was reset or taken away since is left alone; then the
claim counts as lost. A wish is the field ``wish`` of a task, which is removed with the result.

The bridge's thread calls everything but ``_beat``, which has a thread of its own: a write of large results may take
longer than other nodes wait for a beat."""

import logging
import re
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from bson import ObjectId, json_util
from bson.errors import BSONError
from pymongo import UpdateOne
from pymongo.errors import BulkWriteError, ConnectionFailure, DocumentTooLarge, PyMongoError, WriteError

from spinney.bridges.disbatch import limits, results
from spinney.bridges.disbatch.claims import TAKEN, UNFINISHED, Claims, utc_now
from spinney.bridges.disbatch.database import Database, Document, Status, ensure_indexes, reach
from spinney.bridges.disbatch.output import stored
from spinney.bridges.disbatch.registration import Registration
from spinney.bridges.disbatch.settings import PROGRAM_TYPE, Program, Settings
from spinney.bridges.foreign import Claim, ClaimLost, ForeignAway, Order, Report, Wish, compared
from spinney.jobs import SETTLED, Job

log = logging.getLogger("spinney.bridges.disbatch")

BEAT_S = 1.0
"""Seconds between two beats."""
_NAMED: Document = {"_id": {"$type": "objectId"}}
"""What the protocol says of a queue's id; a queue with another one has no tasks."""
_PASSING = frozenset({50, 112, 189, 262, 11600, 11602, 14031})
"""Codes of errors of a write that may succeed later: MaxTimeMSExpired, WriteConflict, PrimarySteppedDown,
ExceededTimeLimit, InterruptedAtShutdown, InterruptedDueToReplStateChange, OutOfDiskSpace."""
_BATCH_CHARS = 8 << 20
"""A write of several results has about so many characters of output."""


@dataclass
class DisbatchNode:
    """One node of a Disbatch database (``spinney.bridges.foreign.Foreign``)."""

    db: Database
    node: str
    """Its name there: the host's, unless another is named."""
    settings: Settings
    types: Callable[[], Iterable[str]]
    """Returns the job types that there are."""
    system: str = field(default="disbatch", init=False)
    parked: int = field(default=0, init=False)
    """No task waits for another service, so each takes a slot."""
    _queues: Mapping[Any, Document] = field(default_factory=dict, init=False)
    """All queues, by their ids."""
    _served: Sequence[Document] = field(default=(), init=False)
    """The queues that this node serves and whose plugins it can run, as of the last ``tend``."""
    _now: Settings = field(init=False)
    """The settings with those of the database's ``config`` over them."""
    _config: Document | None = field(default=None, init=False)
    _unusable: set[str] = field(default_factory=set, init=False)
    """Plugins about which a warning is in the log."""
    _tended_s: float = field(default=-1e9, init=False)

    def __post_init__(self) -> None:
        self.database = self.db.name
        self._claims = Claims(self.db, self.node)
        self._registration = Registration(self.db, self.node)
        self.name = f"disbatch:{self.database}:{self.node}"
        self._now = self.settings

    def begin(self, mark: str, *, linked: bool) -> None:
        """Ensure the indexes, enter the node, and read queues and configuration. Raises ForeignAway, also
        where another store works under this name."""
        with _reached():
            reach(self.db)
            ensure_indexes(self.db)
            self._registration.enter(mark, linked=linked, orphaned_after=self._now.orphaned_after)
        self.tend()

    def tend(self) -> None:
        """Read the queues and the configuration, and mark tasks of dead hosts as orphaned."""
        with _reached():
            self._registration.document()
            self._configure(self.db["config"].find_one({}, sort=[("_id", 1)]))
            queues = list(self.db["queues"].find(_NAMED))
            self._queues = {queue["_id"]: queue for queue in queues}
            self._served = [queue for queue in queues if self._now.serves(queue) and self._usable(queue)]
            self._registration.mark_orphans(orphaned_after=self._now.orphaned_after)
        self._tended_s = time.monotonic()

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Write each second that the node is at work, however long a write of results takes."""
        ended = threading.Event()
        thread = threading.Thread(target=self._beat, args=(ended,), name="beat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _beat(self, ended: threading.Event) -> None:
        """Write beats until ``ended`` is set. They stop while the bridge stands still: its tasks then become
        orphaned, as those of a node that is gone."""
        while not ended.wait(BEAT_S):
            if time.monotonic() - self._tended_s >= self._now.orphaned_after:
                continue  # the bridge has not begun, or stands still for so long that its tasks count as orphaned
            try:
                self._registration.beat()
            except PyMongoError as error:
                log.info("%s: no beat: %s", self.name, type(error).__name__)

    def _configure(self, document: Document | None) -> None:
        """Put the document of the collection ``config`` over the settings, if it has changed; wrong fields
        are logged and ignored."""
        if document == self._config:
            return
        self._config, self._unusable = document, set()
        self._now, errors = self.settings.over(document)
        for error in errors:
            log.error("%s: %s; until then the field is ignored", self.name, error)

    def _usable(self, queue: Document) -> bool:
        """Return whether the queue's plugin can be run here. The first time that it cannot, the log says
        why; and when it can again, that."""
        plugin = str(queue.get("plugin"))
        target = self._now.plugins.get(plugin)
        job_types = set(self.types())
        job_type = PROGRAM_TYPE if isinstance(target, Program) else target
        if job_type in job_types:
            if plugin in self._unusable:
                self._unusable.discard(plugin)
                log.warning("%s: queue %s is served from now on: %s", self.name, queue.get("name"), plugin)
            return True
        if plugin not in self._unusable:
            self._unusable.add(plugin)
            why = (
                "the settings have no such plugin"
                if target is None
                else f"until a node of this store that has its job type {job_type!r} is at work"
            )
            log.warning("%s: queue %s is ignored: %s: %s", self.name, queue.get("name"), plugin, why)
        return False

    # --- claims -------------------------------------------------------------------------------

    def claimed(self, linked: Container[tuple[str, str]] = ()) -> Iterable[Claim]:
        """Return the tasks that are claimed under this node's name. One that another program claimed under it, and has
        not begun for ``orphaned_after``, becomes orphaned. Raises ForeignAway when another store has taken the name
        meanwhile."""
        ours = {"node": self.node, "claim": {"$gt": 0}, "_id": {"$type": "objectId"}}
        with _reached():
            self._registration.document()
            self._claims.give_back_left()
            listed = list(self.db["tasks"].find(ours | UNFINISHED, {"stdout": False, "stderr": False}))
            self._registration.mark_unbegun(orphaned_after=self._now.orphaned_after)
        return [self._claim_of(task) for task in listed if _is_claim(task["claim"])]

    def claim(self, room: int) -> Sequence[Claim]:
        """Take tasks of all queues in turn, within the limits of queues and of this node. Raises ForeignAway when
        another store has taken the name meanwhile."""
        with _reached():
            limit = limits.maxthreads(self._registration.document())
            taken = self._claims.take(self._served, room, limit)
        return [self._claim_of(task) for task in taken]

    def _claim_of(self, task: Document) -> Claim:
        """Return the claim of a task. A program gets the whole document as JSON in the relaxed form of
        MongoDB, a job type the params alone. A plugin that the settings no longer name gives a type that
        nobody has, so that the task waits."""
        queue_id = task.get("queue")  # another program may have put anything there
        queue = self._queues.get(queue_id, {}) if isinstance(queue_id, ObjectId) else {}
        plugin = str(queue.get("plugin", ""))
        target = self._now.plugins.get(plugin)
        params = task.get("params") or {}
        if not isinstance(params, dict):  # the type refuses it, unless it has a parameter of this name
            params = {"params": params}
        if isinstance(target, Program):
            document = json_util.dumps(task, json_options=json_util.RELAXED_JSON_OPTIONS)
            params = {"program": plugin, "kind": target.type, "task": document, "config": self._now.config}
            params |= {"timeout": target.timeout or 0.0}
        else:
            params = orjson.loads(json_util.dumps(params, json_options=json_util.RELAXED_JSON_OPTIONS))
        return Claim(
            entry=str(task["_id"]),
            claim=str(int(task["claim"])),
            type=PROGRAM_TYPE if isinstance(target, Program) else target or f"unknown plugin {plugin}",
            params=params,
            options={"data": {"disbatch": {"task": str(task["_id"]), "queue": str(queue.get("name", ""))}}},
        )

    def reject(self, claim: Claim, reason: str) -> None:
        """End a task that cannot be started, as the releases do."""
        fields = {
            "status": int(Status.FAILED),
            "stdout": results.NOT_STARTED,
            "stderr": reason,
            "complete": True,
        }
        self._write_one(claim.entry, claim.claim, fields)

    # --- reports about jobs -------------------------------------------------------------------

    def report(self, reports: Sequence[Report]) -> Mapping[str, ClaimLost]:
        """Write states, and results with output: many in one write, as long as they are small. Return the
        entries that are no longer ours. A state may be written again, and then changes nothing but the time
        of the last change."""
        lost: dict[str, ClaimLost] = {}
        batch: dict[str, tuple[str, Document]] = {}
        size = 0
        for each in reports:
            settled = each.job is None or each.job.state in SETTLED
            fields = self._result(each) if settled else {"status": _status(each)}
            batch[each.entry] = (each.claim, fields)
            size += sum(len(text) for text in fields.values() if isinstance(text, str))
            if size >= _BATCH_CHARS:
                lost |= self._write(batch)
                batch, size = {}, 0
        return lost | self._write(batch)

    def _write(self, batch: Mapping[str, tuple[str, Document]]) -> dict[str, ClaimLost]:
        """Write these fields of entries by their claims; return the entries that are not ours. One write for
        all is tried first; where it does not match all, or one is refused, each is written by itself."""
        if not batch:
            return {}
        # Those that were finished before, and run again, are left to the second way: on some servers their filter is
        # a scan.
        unfinished = {"node": self.node, "status": UNFINISHED["status"]}
        writes = [
            UpdateOne({"_id": ObjectId(entry), "claim": int(claim)} | unfinished, _change(fields))
            for entry, (claim, fields) in batch.items()
        ]
        with _reached():
            try:
                if self.db["tasks"].bulk_write(writes, ordered=False).matched_count == len(writes):
                    return {}
            except (BulkWriteError, DocumentTooLarge, BSONError) as error:
                log.info("%s: results are written one by one: %s", self.name, type(error).__name__)
        return {
            entry: ClaimLost("the task was reset, deleted or taken away")
            for entry, (claim, fields) in batch.items()
            if not self._write_one(entry, claim, fields)
        }

    def _write_one(self, entry: str, claim: str, fields: Document) -> bool:
        """Write fields of a task; return whether it was ours. A result that the database refuses (too large with the
        rest of the task, or against a validation rule) is replaced by the reason. Raises ForeignAway for an error that
        passes, such as a full disk."""
        tasks, ours = self.db["tasks"], self._ours(entry, claim)
        with _reached():
            try:
                return tasks.update_one(ours, _change(fields)).matched_count == 1
            except (WriteError, DocumentTooLarge, BSONError) as error:
                if isinstance(error, WriteError) and error.code in _PASSING:
                    raise
                log.error("%s: the result of task %s is refused: %s", self.name, entry, error)
                reason = f"MongoDB refused the result: {str(error).splitlines()[0][:300]}\n"
                refused = {"status": int(Status.FAILED), "stdout": results.NOT_COMPLETED, "stderr": reason}
                return tasks.update_one(ours, _change(refused | {"complete": True})).matched_count == 1

    def _result(self, report: Report) -> Document:
        """Return the fields of a task that has ended. Large output is written before them, so that a result
        never points to output that is not there."""
        ended = results.result(report)
        with _reached():
            output = stored(
                self.db, ObjectId(report.entry), report.claim, ended.stdout, ended.stderr, gfs=self._now.gfs
            )
        return {"status": ended.status, **output, **ended.more, "complete": True}

    def _ours(self, entry: str, claim: str) -> Document:
        """Return the filter of a task that is still ours: nobody has given it another status meanwhile."""
        other = {"status": {"$nin": [*TAKEN, int(Status.ORPHANED)]}, "complete": {"$ne": True}}
        return {"_id": ObjectId(entry), "node": self.node, "claim": int(claim), "$nor": [other]}

    def _taken(self) -> Document:
        """Return the filter of the tasks that this node has claimed, or runs."""
        return {"node": self.node, "status": {"$in": TAKEN}}

    # --- orders of users, and checks ----------------------------------------------------------

    def wishes(self) -> Iterable[Wish]:
        """Return the tasks whose cancellation was wished over the command interface."""
        with _reached():
            taken = list(self.db["tasks"].find(self._taken(), {"wish": True}))
        reason = "cancelled over Disbatch"
        return [
            Wish(entry=str(task["_id"]), order=Order.CANCEL, reason=reason)
            for task in taken
            if task.get("wish") == "cancel"
        ]

    def differences(self, jobs: Mapping[str, Job | None]) -> Iterator[tuple[str, str]]:
        """Compare the tasks that bear our name with their jobs."""
        with _reached():
            taken = list(self.db["tasks"].find(self._taken(), {"status": True, "claim": True}))
        tasks = {str(task["_id"]): task for task in taken if _is_claim(task.get("claim"))}
        for entry in sorted({str(task["_id"]) for task in taken} - tasks.keys()):
            yield (
                entry,
                "another program has claimed it under this node's name, and has to finish it; if none is at work, set "
                "its status to -6 in MongoDB, and reset it",
            )
        yield from compared(tasks.keys(), jobs)
        for entry, job in sorted(jobs.items()):
            is_claimed = entry in tasks and tasks[entry]["status"] == Status.CLAIMED
            if is_claimed and job is not None and job.state == "running":
                yield entry, "its job is running, and the task is only claimed"


def _is_claim(value: Any) -> bool:
    """Return whether the field ``claim`` of a task can be a claim of this node. A program that copies documents may
    have made it a floating-point number; infinite and broken ones name no claim."""
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _change(fields: Document) -> Document:
    """Return the update that sets these fields; with a result, what was wished is over."""
    return {
        "$set": {**fields, "mtime": utc_now()},
        "$unset": {"wish" if "complete" in fields else "complete": ""},
    }


def _status(report: Report) -> int:
    """Return the status of a task whose job is open: it runs from its first attempt on, also while it waits
    between two."""
    assert report.job is not None
    has_begun = report.job.state == "running" or bool(report.attempts)
    return int(Status.RUNNING if has_begun else Status.CLAIMED)


@contextmanager
def _reached() -> Iterator[None]:
    """Turn errors of the driver into ForeignAway. A refusal by the server is one, too, since only operators
    can help; the bridge tries again."""
    try:
        yield
    except ConnectionFailure as error:
        # The driver's message goes on with its timeouts and the state of all servers, or with a whole answer.
        reason = re.split(r" \(configured|, Timeout: |, full error: ", str(error))[0][:300]
        raise ForeignAway(
            f"no primary of MongoDB answers ({reason}); start it, or repair the network. The bridge connects again by "
            "itself"
        ) from error
    except (PyMongoError, BSONError) as error:
        raise ForeignAway(f"MongoDB: {str(error).splitlines()[0][:300]}") from error
