"""Retention: how long settled jobs are kept, and the walk that finds those whose time is over.

The walk reads ``jobs`` by id, a window at a time, for there is no index on when a job settled: settling would
have to write it. Only its caller knows how far it is; one that begins anew loses nothing. A window in which
nothing has expired costs no write. Several processes may walk at once.

An expired tree is removed in steps: its top is marked, then a few of its jobs are removed in each
transaction, which also writes their folders into ``deleted_folders``. A crash leaves the mark, and any later
walk finishes the tree first (``spinney.store.sql.transitions.removal``).
"""

from collections.abc import Sequence

from spinney.model.errors import UnknownType, UsageError
from spinney.model.rights.actor import Actor
from spinney.model.settings.retention import ALL_TYPES, RetentionRule, RetentionRules
from spinney.model.states import SETTLED, State
from spinney.model.trusted_clock import TrustedClock, confirmed, observed
from spinney.model.types import KEEP_MAX_S
from spinney.model.values.hints import did_you_mean, listed, unknown
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import RowMap, upsert
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.session import SqlPart
from spinney.store.sql.transitions import removal, trusted_clock

_MINUTE_US = 60_000_000


class SqlRetention(SqlPart):
    """Set and apply how long settled jobs are kept; ``spinney.model.settings.retention`` says which
    setting wins."""

    # --- the rules ------------------------------------------------------------------------

    def set(
        self, type_: str, state: str, keep_s: float | None, actor: Actor, *, now_us: int
    ) -> RetentionRule:
        """Keep jobs of this type that settled in this state for ``keep_s`` seconds, and return the
        rule.

        ``type_`` ``*``: of all types. ``keep_s`` None: for ever. For deleted jobs this is the time of
        their tombstones. Raises UnknownType, and UsageError (the state, the time).
        """
        if keep_s is not None and not 0 <= keep_s <= KEEP_MAX_S:
            raise UsageError(f"jobs are kept for 0 to {KEEP_MAX_S} seconds, or for ever, not for {keep_s!r}")
        with self._session.write() as tx:
            _check(self._session.registry, type_, state)
            keep_us = None if keep_s is None else round(keep_s * 1e6)
            values = {"type": type_, "state": state, "keep_us": keep_us, "by": actor.by}
            upsert(tx, "retention", "type, state", values)
            note(tx, now_us, actor, "keep", {"type": type_, "state": state, "keep_s": keep_s}, 1)
        return RetentionRule(type=type_, state=state, keep_s=keep_s, by=actor.by)

    def unset(self, type_: str, state: str, actor: Actor, *, now_us: int) -> bool:
        """Remove an operator's setting, so that the type's own declaration counts again; False when
        there was none.

        Raises UnknownType, and UsageError (the state).
        """
        with self._session.write() as tx:
            _check(self._session.registry, type_, state)
            tx.run("delete from retention where type = ? and state = ?", (type_, state))
            if not tx.changed():
                return False
            note(tx, now_us, actor, "keep", {"type": type_, "state": state, "keep_s": "as declared"}, 1)
            return True

    def all(self) -> Sequence[RetentionRule]:
        """Return the rules that operators set and types declare, including those that others overrule."""
        with self._session.look() as tx:
            return _rules(tx, self._session.registry).all_rules()

    # --- the clock ------------------------------------------------------------------------

    def clock(self) -> TrustedClock | None:
        """Return the latest time at which the clock of a leader, or of a server where no node leads, was
        trusted, and whether it has jumped; None: none has looked yet."""
        with self._session.look() as tx:
            return trusted_clock.read(tx)

    def observe_clock(self, *, now_us: int) -> TrustedClock:
        """Compare the clock of the leader, or of a server where no node leads, with the latest trusted time, keep
        the result and return it.

        Where it has jumped ahead (``jumped_us``), the caller must not sweep by this clock.
        """
        with self._session.look() as tx:
            before = trusted_clock.read(tx)
        clock = observed(before, now_us)
        # Steps of a walk follow each other closely, and so do a server's rounds; a transaction for each would keep
        # other writers waiting.
        if (
            before is not None
            and clock.jumped_us == before.jumped_us
            and clock.trusted_us < before.trusted_us + _MINUTE_US
        ):
            return clock
        with self._session.write(durable=False) as tx:
            return trusted_clock.observe(tx, now_us)

    def confirm_clock(self, *, now_us: int) -> None:
        """Trust this clock, which a person vouches for, however far it is ahead of the latest trusted
        time. One that is behind does not move that time back."""
        with self._session.write() as tx:
            trusted_clock.write(tx, confirmed(trusted_clock.read(tx), now_us))

    # --- the walk -------------------------------------------------------------------------

    def sweep(
        self, after: int, actor: Actor, *, now_us: int, limit: int = 1_000
    ) -> tuple[Sequence[int], int | None]:
        """Do one bounded step of a walk over all jobs after the id ``after`` (0: from the first).

        It either looks at the next ``limit`` jobs, or removes some jobs of an expired tree that it
        found before: a tree without open jobs whose top settled long enough ago. Rows are removed for
        good; ``deleted_folders`` lists their folders until those are removed. Returns the removed
        jobs, and the id after which to continue (None: the walk is complete). Any number of processes
        may walk at the same time, and stop anywhere. The caller has observed or confirmed the clock.
        """
        with self._session.look() as tx:
            rules = _rules(tx, self._session.registry)
            under_way = removal.any_marked(tx)
            if not under_way:
                if not rules.any:
                    return (), None
                over, last = _window(tx, rules, after, now_us, limit)
        if under_way:
            return self._remove(actor, now_us), after
        if over:
            # Not synced: a mark that a loss of power takes is set again by the next walk.
            with self._session.write(durable=False) as tx:
                removal.mark(tx, over)
        return (), last

    def _remove(self, actor: Actor, now_us: int) -> Sequence[int]:
        """Remove some jobs of marked trees, and return them. The audit entry names their ranges of
        numbers."""
        with self._session.write() as tx:
            step = removal.Removal(tx, self._session.registry, _rules(tx, self._session.registry), now_us)
            step.run()
            if step.removed:
                details = {"jobs": ranges(step.removed)}
                note(tx, now_us, actor, "remove", details, len(step.removed))
        return step.removed


def ranges(ids: Sequence[int]) -> str:
    """Return numbers in ascending order as people write them: ``3, 17-216``."""
    bounds: list[list[int]] = []
    for number in sorted(ids):
        if bounds and bounds[-1][1] == number - 1:
            bounds[-1][1] = number
        else:
            bounds.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in bounds)


_RULES = RowMap(
    RetentionRule,
    "retention",
    columns={"keep_s": "keep_us"},
    decode={"keep_s": lambda keep_us: None if keep_us is None else keep_us / 1e6},
    omit=("in_force",),
)
"""Rules from their rows, with the time in seconds."""


def _rules(tx: Tx, registry: Registry) -> RetentionRules:
    return RetentionRules(_RULES.all(tx), registry.types)


def _window(
    tx: Tx, rules: RetentionRules, after: int, now_us: int, limit: int
) -> tuple[list[int], int | None]:
    """Return the top-level jobs among the next ``limit`` whose time may be over, and the id after which
    to continue.

    None: the walk is complete. Where this window found something, it is not, since that is to be removed
    first.
    """
    rows = tx.all(
        "select id, parent_id, type, state, settled_us from jobs where id > ? order by id limit ?",
        (after, limit),
    )
    over = [
        job_id
        for job_id, parent_id, type_, state, settled_us in rows
        # When a job was deleted stands elsewhere; it is looked up when it is looked at.
        if parent_id is None
        and removal.due(rules, type_, state, 0 if state == State.DELETED else settled_us, now_us)
    ]
    return over, rows[-1][0] if over or len(rows) == limit else None


def _check(registry: Registry, type_: str, state: str) -> None:
    """Raise UnknownType for a type that does not exist, UsageError for a state in which no job settles."""
    if type_ != ALL_TYPES and type_ not in registry.types:
        raise UnknownType(f"{unknown('job type', type_, registry.types)}, or {ALL_TYPES!r} for all")
    if state not in SETTLED:
        raise UsageError(
            f"jobs that are {state!r} cannot be kept for a time{did_you_mean(state, map(str, SETTLED))}; "
            f"name the state in which they settled: {listed(SETTLED)}"
        )
