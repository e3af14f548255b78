"""Inboxes, and what was dropped there.

**One node an inbox.** ``inboxes.node_id`` names the node that looks there. It is a lease without a clock, as that of
the leader (``store.sql.recover.leadership``): valid while the node is active, and taken by another one that sees the
folder when it is not.

**One job a drop.** A node that sees something at rest writes a row of ``inbox_arrivals`` and its job in one transaction
(``arrive``); the job is held. Then the node moves the file into the job's folder, and ``finish`` marks the row and
releases the job. Each name has only one open row, so whoever comes back after a crash, or beside another node, gets
that row and goes on with it. Rejected drops have rows, too: written before they are moved away, finished after that.

**Uploads** (``spinney.folders.upload_folder``) have a row each, too, written with their job when all bytes are there
(``accept_upload``). It is never open: no node that looks into the folder must take an upload for a drop that has gone.
Until its file is in its folder the job is held, and ``release`` ends that.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import orjson

from spinney.define.params.redaction import redact_params, redaction_schema
from spinney.features.inboxes import arrival_rows
from spinney.features.inboxes.arrival_rows import ARRIVALS, Duplicate, actor_of, submission_of
from spinney.features.webhooks import maker_rights
from spinney.model.access import Role
from spinney.model.errors import BadName, BadParameters, Forbidden, Refused, UsageError
from spinney.model.jobs import Submission
from spinney.model.rights.actor import Actor
from spinney.model.settings.inboxes import (
    HELD_REASON,
    UPLOAD_HELD_REASON,
    Arrival,
    ArrivalOutcome,
    Drop,
    Inbox,
    Kind,
    Upload,
)
from spinney.model.values.unreadable import UNREADABLE
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import require_name, upsert
from spinney.store.sql.registry import job_rows
from spinney.store.sql.session import SqlPart
from spinney.store.sql.submit import new_jobs
from spinney.store.sql.transitions.job_operations import Operation

DROP_STEP = 2_000
"""How many arrivals one transaction deletes, so that none is long."""
_OPEN = "outcome in ('taking', 'rejecting')"
"""Arrivals that are not finished: a node is moving the file, or has to go on with that after a crash."""
_SELECT = (
    "select i.name, i.spec, i.paused, i.scan_us, i.by, n.id, n.name, i.problem "
    "from inboxes i left join nodes n on n.id = i.node_id and n.state = 'active' "
)
"""Inboxes with the node that looks there. The join leaves out a node that is not active, so its lease is not
valid here."""
_EXAMPLE = Drop(name="a", kind=Kind.FILE, size=0, identity="", owner="a", dropped_us=0)
"""Any drop, to find out whether an inbox can make jobs at all."""


class SqlInboxes(SqlPart):
    """Inboxes, and the arrivals in each: what was dropped there, and what became of it. Changes by people
    are audited."""

    # --- commands -------------------------------------------------------------------------

    def put(self, inbox: Inbox, actor: Actor, *, replace: bool = True, now_us: int) -> Inbox:
        """Create or replace an inbox, and return it.

        A replaced one stays paused if it was, and what was dropped there stays known; the actor
        becomes its maker, and any active node may take it.

        Raises UnknownType, BadParameters (the field of a lock is missing; the caller has checked the
        others) and Refused when it exists and ``replace`` is false, when another inbox has the new
        folder, one inside it or one around it on the same host, or when the folder or host changes
        while something is being taken from it.
        """
        with self._session.write() as tx:
            row = tx.one("select by, paused from inboxes where name = ?", (inbox.name,))
            if row is not None and not replace:
                raise Refused(
                    f"there is an inbox {inbox.name!r} already, by {row[0]}; choose another name, or replace it "
                    f"(--replace)"
                )
            old = _find(tx, inbox.name)
            # If the definition cannot be read, it is not certain that the folder stays. Where it stays it may overlap
            # with another one, which earlier versions allowed; that must not prevent any other change.
            if old is None or (old.folder, old.host) != (inbox.folder, inbox.host):
                for other in _all(tx):
                    if other.name != inbox.name:
                        _require_apart(inbox, other)
                if row is not None:
                    _require_nothing_open(tx, inbox.name)
            # An inbox that could create no job is refused now, not at its first file.
            spec = self._session.registry.type(inbox.type)
            new_jobs.plan(self._session.registry, submission_of(inbox, _EXAMPLE, spec))
            values = {
                "name": inbox.name,
                "spec": maker_rights.spec_text(inbox.to_json(), maker_rights.new_entry(tx, actor)),
                "paused": inbox.paused or (row is not None and bool(row[1])),
                "since_us": now_us,
                "by": actor.by,
                "node_id": None,
                "problem": None,
            }
            upsert(tx, "inboxes", "name", values)
            details = {
                **inbox.to_json(),
                "inbox": inbox.name,
                "params": redact_params(redaction_schema(spec), inbox.params),
            }
            note(tx, now_us, actor, "inbox add", details, 1)
            return _require(tx, inbox.name)

    def pause(self, name: str, actor: Actor, *, paused: bool, now_us: int) -> Inbox:
        """Pause an inbox, or resume it, and return it. Raises NoSuch.

        What is being taken is finished also while it is paused. Where the maker may not make its jobs
        any more, whoever resumes it becomes the maker.
        """
        with self._session.write() as tx:
            inbox = _require(tx, name)
            if not paused and self._fault(tx, inbox, now_us) is not None:
                spec = maker_rights.spec_text(inbox.to_json(), maker_rights.new_entry(tx, actor))
                tx.run("update inboxes set spec = ?, by = ? where name = ?", (spec, actor.by, name))
            elif inbox.paused == paused:
                return inbox
            tx.run(
                "update inboxes set paused = ?, since_us = ?, problem = null where name = ?",
                (paused, now_us, name),
            )
            note(tx, now_us, actor, "inbox pause" if paused else "inbox resume", {"inbox": name}, 1)
            return _require(tx, name)

    def scan(self, name: str, actor: Actor, *, now_us: int) -> Inbox:
        """Make the node that looks there take all that is there now, without waiting for it to rest.

        The request stays until a node has fulfilled it. Raises NoSuch, and Refused when the inbox is
        paused.
        """
        with self._session.write() as tx:
            if _require(tx, name).paused:
                raise Refused(paused_words(name))
            tx.run("update inboxes set scan_us = ? where name = ?", (now_us, name))
            note(tx, now_us, actor, "inbox scan", {"inbox": name}, 1)
            return _require(tx, name)

    def remove(self, name: str, actor: Actor, *, now_us: int) -> None:
        """Remove an inbox and what is known of its drops in bounded steps; folder and jobs stay.

        The last step removes it, so call this again if it was cut off. One that cannot be read is
        removed like any other. Raises NoSuch, and Refused while something is being taken.
        """
        while True:
            with self._session.write() as tx:
                require_name(tx, "inboxes", "inbox", name)
                _require_nothing_open(tx, name)
                if tx.delete_some("inbox_arrivals", "id", "inbox = ?", (name,), DROP_STEP):
                    continue
                tx.run("delete from inboxes where name = ?", (name,))
                note(tx, now_us, actor, "inbox remove", {"inbox": name}, 1)
                return

    # --- reads ----------------------------------------------------------------------------

    def all(self) -> Sequence[Inbox]:
        """Return all inboxes by name, also the paused ones, without those that cannot be read."""
        with self._session.look() as tx:
            return _all(tx)

    def arrivals(
        self, name: str, *, outcome: ArrivalOutcome | None = None, before: int = 0, limit: int = 20
    ) -> Sequence[Arrival]:
        """Return the arrivals of an inbox, the newest first; those with ids below ``before``, unless it is 0."""
        conditions: list[str] = ["inbox = ?"]
        args: list[str | int] = [name]
        if before:
            conditions, args = [*conditions, "id < ?"], [*args, before]
        if outcome is not None:
            conditions, args = [*conditions, "outcome = ?"], [*args, str(outcome)]
        with self._session.look() as tx:
            return ARRIVALS.all(
                tx, f"where {' and '.join(conditions)} order by id desc limit ?", (*args, limit)
            )

    # --- calls of the node that scans the folder --------------------------------------------

    def serve(
        self, name: str, node_id: int, *, leave: bool = False, problem: str | None = None, now_us: int
    ) -> bool:
        """Make the node the one that looks into the inbox, unless another active node does; return
        whether it is.

        ``leave``: make it no longer the one, for this ``problem`` if there is one, which is kept
        until a node serves it again. A node that is not active, such as one that is about to end,
        gives the inbox up, too.
        """
        with self._session.write() as tx:
            inbox = _find(tx, name)
            if inbox is None or inbox.node_id not in (None, node_id):
                return False
            active = tx.value("select state from nodes where id = ?", (node_id,)) == "active"
            serves = active and not leave
            if serves != (inbox.node_id == node_id):
                tx.run(
                    "update inboxes set node_id = ?, problem = ?, since_us = ? where name = ?",
                    (node_id if serves else None, None if serves else problem, now_us, name),
                )
            return serves

    def report(self, name: str, node_id: int, problem: str | None, *, scanned_us: int | None = None) -> None:
        """Keep what prevents the node from taking files, or None if nothing does.

        Ignored unless this node looks there. ``scanned_us``: the request to scan that is fulfilled; a
        later one stays.
        """
        with self._session.write() as tx:
            tx.run("update inboxes set problem = ? where name = ? and node_id = ?", (problem, name, node_id))
            tx.run("update inboxes set scan_us = null where name = ? and scan_us = ?", (name, scanned_us))

    def unfinished(self, name: str) -> Sequence[Arrival]:
        """Return the arrivals that are open, the oldest first."""
        with self._session.look() as tx:
            return ARRIVALS.all(tx, f"where inbox = ? and {_OPEN} order by id", (name,))

    def arrive(self, name: str, drop: Drop, node_id: int, *, now_us: int) -> Arrival:
        """Decide about a drop, and return its arrival: with a new job that is held, or with the
        reason why it is rejected.

        While an arrival of its name is open, that is returned, so a node that comes back after a
        crash gets the same job. Nothing has been moved yet: the node does so, and calls ``finish``.

        Raises Refused (the node does not look there any more), Forbidden (the inbox's maker may not
        make its jobs any more), and what submitting raises for every drop: then the file stays where
        it is.
        """
        with self._session.write() as tx:
            inbox, registry = _find(tx, name), self._session.registry
            if inbox is None or inbox.paused or inbox.node_id != node_id:
                raise Refused(f"inbox {name!r} is not looked into by this node any more")
            same = ARRIVALS.one(tx, f"where inbox = ? and name = ? and {_OPEN}", (name, drop.name))
            if same is not None:
                return same
            reason, job_id = drop.fault or arrival_rows.duplicate(tx, inbox, drop.sha256).reason, None
            if reason is None:
                self._require_no_fault(tx, inbox, now_us)
                submission = submission_of(inbox, drop, registry.type(inbox.type))
                reason = self._misfit(inbox, submission)
            if reason is None:
                job_id = arrival_rows.held_job(tx, registry, inbox, submission, HELD_REASON, now_us)
                if registry.homes.local:
                    # Its folder will be at the home of this node. Held, it is in no lane, which a home would change.
                    tx.run("update jobs set node_id = ? where id = ?", (node_id, job_id))
            outcome = ArrivalOutcome.TAKING if reason is None else ArrivalOutcome.REJECTING
            return arrival_rows.insert(tx, inbox, drop, outcome, job_id, reason, now_us)

    def withdraw(self, arrival: Arrival, *, now_us: int) -> None:
        """Reject what was to be taken, for the arrival's reason, and cancel its job, which has not
        begun.

        For a drop that was removed or changed before the node could move it, or whose job was
        cancelled. What is left of it is moved to the rejected ones then, and ``finish`` closes the
        arrival. A second call does nothing.
        """
        with self._session.write() as tx:
            tx.run(
                "update inbox_arrivals set outcome = 'rejecting', reason = ? where id = ? and outcome = 'taking'",
                (arrival.reason, arrival.id),
            )
            if tx.changed() and arrival.job_id is not None and job_rows.is_open(tx, arrival.job_id):
                operation = Operation(tx, self._session.registry, now_us, actor_of(arrival.inbox).by)
                operation.cancel(arrival.job_id, tree=False, reason=arrival.reason)

    def is_wanted(self, arrival: Arrival) -> bool:
        """Return whether the job of an arrival is still open: nobody has cancelled it."""
        with self._session.look() as tx:
            return job_rows.is_open(tx, arrival.job_id)

    def finish(self, arrival_id: int, *, now_us: int) -> None:
        """Record that what arrived is where it belongs, and release its job if it has one. A second
        call does nothing."""
        with self._session.write() as tx:
            arrival = ARRIVALS.one(tx, f"where id = ? and {_OPEN}", (arrival_id,))
            if arrival is None:
                return
            taken = arrival.outcome is ArrivalOutcome.TAKING
            outcome = ArrivalOutcome.TAKEN if taken else ArrivalOutcome.REJECTED
            tx.run("update inbox_arrivals set outcome = ? where id = ?", (outcome, arrival_id))
            arrival_rows.release_job(tx, self._session.registry, arrival, HELD_REASON, now_us)

    # --- uploads ----------------------------------------------------------------------------

    def job_with(self, name: str, sha256: str) -> Duplicate:
        """Return why these bytes are refused, and the job that has them; both None: they would be taken."""
        with self._session.look() as tx:
            return arrival_rows.duplicate(tx, _require(tx, name), sha256)

    def of_upload(self, upload: Upload) -> Arrival | None:
        """Return the arrival of an upload that has all its bytes; None: it has none yet."""
        with self._session.look() as tx:
            return arrival_rows.of_upload(tx, upload)

    def accept_upload(self, upload: Upload, drop: Drop, submission: Submission, *, now_us: int) -> Arrival:
        """Decide about an upload that has all its bytes, and return its arrival.

        It has a new job that is held; or the reason why it is rejected, and the job that has its
        bytes. Once this is decided, it stays so: a repetition returns the same arrival.

        Raises NoSuch, Refused (the inbox is paused), Forbidden (its maker may not make its jobs any
        more), and what submitting raises.
        """
        with self._session.write() as tx:
            inbox, before = _require(tx, upload.inbox), arrival_rows.of_upload(tx, upload)
            if before is not None:
                return before
            if inbox.paused:
                raise Refused(paused_words(inbox.name))
            duplicate = arrival_rows.duplicate(tx, inbox, upload.sha256)
            if duplicate.reason is not None:
                reject = ArrivalOutcome.REJECTED
                return arrival_rows.insert(
                    tx, inbox, drop, reject, duplicate.job_id, duplicate.reason, now_us
                )
            self._require_no_fault(tx, inbox, now_us)
            job_id = arrival_rows.held_job(
                tx, self._session.registry, inbox, submission, UPLOAD_HELD_REASON, now_us
            )
            return arrival_rows.insert(tx, inbox, drop, ArrivalOutcome.TAKEN, job_id, None, now_us)

    def release(self, arrival: Arrival, *, now_us: int) -> None:
        """Release the job of an upload, whose file is in its folder. A second call does nothing."""
        with self._session.write() as tx:
            arrival_rows.release_job(tx, self._session.registry, arrival, UPLOAD_HELD_REASON, now_us)

    def _misfit(self, inbox: Inbox, submission: Submission) -> str | None:
        """Return why no job can be made of this drop, as when its name can name no lock; None: one
        can.

        Raises what submitting raises where it would do so for any drop: then this one is not at
        fault, and must not be rejected.
        """
        registry = self._session.registry
        try:
            new_jobs.plan(registry, submission)
        except (BadName, BadParameters) as error:
            new_jobs.plan(registry, submission_of(inbox, _EXAMPLE, registry.type(inbox.type)))
            return str(error)
        return None

    def _require_no_fault(self, tx: Tx, inbox: Inbox, now_us: int) -> None:
        fault = self._fault(tx, inbox, now_us)
        if fault is not None:
            raise Forbidden(fault)

    def _fault(self, tx: Tx, inbox: Inbox, now_us: int) -> str | None:
        """Return why the maker of an inbox may not make its jobs any more; None while the maker may."""
        spec = tx.value("select spec from inboxes where name = ?", (inbox.name,))
        rights = maker_rights.operator_rights(tx, spec, inbox.by, "make inboxes", now_us)
        if isinstance(rights, str):
            return rights
        if not rights.permits(Role.ADMIN) or not rights.everywhere:
            return f"its maker {inbox.by} is no admin now; the user who resumes it becomes its maker"
        return None


# --- rows --------------------------------------------------------------------------------------


def _inbox(row: Sequence[Any]) -> Inbox:
    """Return the inbox of a row of ``_SELECT``."""
    name, spec, paused, scan_us, by, node_id, node, problem = row
    state = {"paused": bool(paused), "scan_us": scan_us, "by": by, "node_id": node_id, "node": node}
    return Inbox.from_json(name, orjson.loads(spec), problem=problem, **state)


def _all(tx: Tx) -> list[Inbox]:
    """Return the inboxes that can be read: one that a newer version wrote must not hide the others."""
    inboxes = map(_readable, tx.all(_SELECT + "order by i.name"))
    return [inbox for inbox in inboxes if inbox is not None]


def _find(tx: Tx, name: str) -> Inbox | None:
    """Return an inbox by name; None: there is none, or it cannot be read."""
    row = tx.one(_SELECT + "where i.name = ?", (name,))
    return None if row is None else _readable(row)


def _readable(row: Sequence[Any]) -> Inbox | None:
    """Return the inbox of a row of ``_SELECT``; None where it cannot be read."""
    try:
        return _inbox(row)
    except UNREADABLE:
        return None


def _require(tx: Tx, name: str) -> Inbox:
    """Return an inbox. Raises NoSuch, and UsageError for one that cannot be read."""
    inbox = _find(tx, name)
    if inbox is None:
        require_name(tx, "inboxes", "inbox", name)
        raise UsageError(
            f"the definition of inbox {name!r} cannot be read; replace it ('spinney inbox add {name} … --replace'), "
            f"or remove it ('spinney inbox remove {name}')"
        )
    return inbox


def _require_apart(inbox: Inbox, other: Inbox) -> None:
    """Raise Refused when two inboxes have the same folder, or one inside the other, on a host that both look into.

    Two nodes would take the same drop, or one inbox the folder of the other as a drop.
    """
    if inbox.host != other.host and None not in (inbox.host, other.host):
        return
    path, other_path = PurePosixPath(inbox.folder), PurePosixPath(other.folder)
    if not (path.is_relative_to(other_path) or other_path.is_relative_to(path)):
        return
    place = "on any host" if other.host is None else f"on host {other.host}"
    raise Refused(
        f"inbox {other.name!r} has the folder {other.folder} {place}; name a folder that is neither that one, nor "
        f"inside it, nor around it, or give both inboxes different hosts (--host)"
    )


def _require_nothing_open(tx: Tx, name: str) -> None:
    count = tx.value(f"select count(*) from inbox_arrivals where inbox = ? and {_OPEN}", (name,))
    if count:
        raise Refused(
            f"{count} drops of inbox {name!r} are being taken; pause it (spinney inbox pause {name}), and try again "
            f"when 'spinney inbox show {name}' says that they are taken"
        )


def paused_words(name: str) -> str:
    """Return the sentence that refuses something because the inbox is paused."""
    return f"inbox {name!r} is paused; resume it first (spinney inbox resume {name})"
