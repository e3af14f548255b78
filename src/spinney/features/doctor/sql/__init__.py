"""The doctor on SQL: every invariant that the database can show, as a table of rules.

``rule``         what a rule is: the query that finds violations, the message, and perhaps a repair
``integrity``    what lies below all other rules: the database's own checks, unreadable values, the chain of the audit
``nodes``        nodes that have died, the leader, and the counters from which ids come
``settings``     schedules, webhooks and inboxes, and the makers for whom they act
``jobs``         a job's own row, and its row in ``inactive_jobs``
``claims``       what is ready or leased
``trees``        lineages, and the lists of children
``leftovers``    rows that have outlived their job
``stuck_waits``  jobs that wait for something that cannot come
``unfinished``   work in steps that was cut off and that no node continues

A rule is data. Most walk one table in pages by its key, one snapshot for each page, so that an examination of any store
needs the memory of a page and holds no snapshot for long. Repairs use the engine's own operations: a job is placed, a
lock freed, a parent told, as in daily work. Each repair is one transaction that asks the same statement for the one key
again, and writes its entry into the audit log; a repair of many rows (``stepwise``) is repeated in bounded steps.

The order of the rules is the order in which they are examined: what others build upon comes first. A new rule needs a
case in the first of these tests, whose ``test_every_rule_is_tested`` fails without one.

Specified by ``tests/contract/test_doctor.py`` (each rule), ``tests/contract/test_doctor_alarms.py`` (no false alarm
beside lawful work), ``tests/store/test_doctor_plans.py`` (the cost of its statements) and
``tests/store/test_doctor_on_a_server.py`` (PostgreSQL).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from spinney.features.doctor.checks import Check, Violation
from spinney.features.doctor.sql import (
    claims,
    integrity,
    jobs,
    leftovers,
    nodes,
    settings,
    stuck_waits,
    trees,
    unfinished,
)
from spinney.features.doctor.sql.rule import GRACE_US, CheckContext, RepairContext, Rule
from spinney.model.errors import Refused, SpinneyError, StoreMissing, StoreUnavailable
from spinney.model.jobs import NodeInfo
from spinney.model.rights.actor import Actor
from spinney.model.values.hints import did_you_mean, some_of
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.registry import nodes as node_rows
from spinney.store.sql.registry.registry import UnreadableDeclaration
from spinney.store.sql.session import Session
from spinney.store.sql.transitions.cascades import Cascade

STEPS = 100_000
"""After how many steps a stepwise repair gives up, so that it cannot go on for ever."""

RULES: tuple[Rule, ...] = (
    *integrity.RULES,
    *nodes.RULES,
    *settings.RULES,
    *jobs.RULES,
    *claims.RULES,
    *trees.RULES,
    *leftovers.RULES,
    *stuck_waits.RULES,
    *unfinished.RULES,
)
"""In an order in which few repairs violate a rule before them: what refers to a job comes after the job, and what waits
after what it waits for."""


class SqlDoctor:
    """Checks and repairs of every invariant that the database can show."""

    def __init__(self, session: Session, rules: Sequence[Rule] = RULES) -> None:
        self._session = session
        self._rules = {rule.name: rule for rule in rules}

    def checks(self) -> Sequence[Check]:
        """Return the rules, in the order in which they are checked."""
        return [
            Check(rule=rule.name, about=rule.about, repairs=rule.repair is not None, deep=rule.deep)
            for rule in self._rules.values()
        ]

    def examine(
        self, only: Collection[str] | None = None, *, deep: bool = False, now_us: int
    ) -> Iterator[Violation]:
        """Check all rules (or only these), and yield each violation as it is found.

        Each is judged within one snapshot that is held for no more than some thousand rows, so a store of any size may
        be checked while it works. ``deep``: also the rules that take long.
        """
        for rule in self._rules.values():
            if (deep or not rule.deep) if only is None else rule.name in only:
                yield from self._violations_of(rule, now_us, only)

    def _violations_of(self, rule: Rule, now_us: int, only: Collection[str] | None) -> Iterator[Violation]:
        """Yield what one rule finds. Where a damaged page or value stops it, that is a violation of its own, and the
        other rules still run. A store that does not answer at all is none: that is raised. A declaration that cannot be
        read stops nearly all of them: it is reported once, by its own rule, if that is among the rules that run."""
        try:
            yield from rule.examine(self._session, now_us)
        except StoreMissing:
            raise
        except Exception as error:  # noqa: BLE001 - an edit of the database can have written anything
            once = only is None or integrity.DECLARATIONS in only
            if isinstance(error, UnreadableDeclaration):
                message = None if once else str(error)
            else:
                self._require_answer(error)
                message = f"this rule could not be checked to its end: {_explained(error)}"
            if message is not None:
                yield Violation(rule=rule.name, subject=f"rule {rule.name}", sentence=message)

    def _require_answer(self, error: Exception) -> None:
        """Raise StoreUnavailable when the store does not answer, after it did not answer a rule with this error: its
        disk is full, or it is away. What only took a rule too long raises nothing."""
        if isinstance(error, StoreUnavailable):
            with self._session.database.look() as tx:
                tx.one("select name from meta limit 1")

    def repair(self, violation: Violation, actor: Actor, *, now_us: int) -> bool:
        """Repair a violation if it still exists, and return whether anything was changed.

        A violation of a rule without a repair, or of another checker, changes nothing and returns False.
        Raises SpinneyError when it cannot be repaired as things are; an error of the database on the way
        becomes Refused, and rolls back the step.
        """
        rule = self._rules.get(violation.rule)
        if rule is None or rule.repair is None:
            return False
        for step in range(STEPS):
            try:
                repaired = self._repair_once(rule, violation, actor, now_us)
            except SpinneyError:
                raise
            except Exception as error:
                raise Refused(f"{violation.subject} could not be repaired: {_explained(error)}") from error
            if not repaired:
                return step > 0
            if not rule.repair.stepwise:
                return True
        raise Refused(f"{violation.subject} could not be repaired in {STEPS:,} steps; examine it again")

    def _repair_once(self, rule: Rule, violation: Violation, actor: Actor, now_us: int) -> bool:
        """Check again, repair, and work off what follows from it, in one transaction."""
        assert rule.repair is not None
        session = self._session
        with session.write() as tx:
            facts = rule.again(CheckContext(tx, session.registry, now_us), violation.facts)
            if facts is None:
                return False
            cascade = Cascade(tx, session.registry, now_us)
            rule.repair.run(RepairContext(tx, session.registry, now_us, cascade), facts)
            cascade.drain()
            _note(tx, violation, actor, now_us)
        return True

    def noted(self, violation: Violation, actor: Actor, *, now_us: int) -> None:
        """Write the audit entry for a repair outside of the database, in a transaction of its own."""
        with self._session.write() as tx:
            _note(tx, violation, actor, now_us)

    def declare_dead(
        self, name: str, actor: Actor, *, gone: Collection[int] = (), now_us: int
    ) -> Sequence[NodeInfo]:
        """Mark the nodes of this name as left on an operator's word, and return them. From then on they may
        not claim; the caller takes their leases back (``Store.recover``).

        ``gone``: ids of nodes that the caller has proven to have ended, however recent their last heartbeat is. Raises
        Refused when another one of them has sent a heartbeat within the last minute, or none is left; then no node is
        marked.
        """
        with self._session.write() as tx:
            present = [node for node in node_rows.all_nodes(tx) if node.state != "left"]
            dead = [node for node in present if node.name == name]
            if not dead:
                names = {node.name for node in present}
                raise Refused(
                    f"there is no node {name!r} that has not left{did_you_mean(name, names)}; "
                    f"those that have not left are: {some_of(names)}"
                )
            for node in dead:
                # A heartbeat takes no writer's turn, so it may commit until the row is marked.
                silent = node.id in gone or now_us - node.seen_us >= GRACE_US
                if not silent or not node_rows.update(tx, node.id, "left", now_us, node.beat):
                    raise Refused(
                        f"node {name} on {node.host} beat less than a minute ago, so it is not dead; stop it there "
                        f"(its pid is {node.pid}), or wait for a minute"
                    )
            details = {"node": name, "ids": [node.id for node in dead], "host": dead[0].host}
            note(tx, now_us, actor, "declare dead", details, sum(node.leases for node in dead))
        return dead

    def standing(self, job_ids: Sequence[int]) -> Mapping[int, tuple[str | None, int | None]]:
        """Return the state of those of these jobs that the store knows, and since when their folder is to be
        removed.

        The state is None for a job that retention has removed, and the time is None when the folder is not to
        be removed. Missing from the answer: jobs that the store never had, or has forgotten.
        """
        with self._session.look() as tx:
            rows = tx.all(
                "select j.value, jobs.state, t.at_us from json_each(?) j left join jobs on jobs.id = j.value "
                "left join deleted_folders t on t.job_id = j.value where jobs.id is not null or t.job_id is not null",
                (list_text(job_ids),),
            )
        return {job_id: (state, since_us) for job_id, state, since_us in rows}


def _explained(error: Exception) -> str:
    """Return the error as a sentence. One that Spinney does not raise itself comes from a value that it never
    wrote."""
    if isinstance(error, SpinneyError):
        return str(error)
    return (
        f"the database holds a value that Spinney never writes ({type(error).__name__}: {error}); repair what the "
        f"other rules report, then examine it again, or restore it from a backup"
    )


def _note(tx: Tx, violation: Violation, actor: Actor, now_us: int) -> None:
    details = {"rule": violation.rule, "subject": violation.subject, "did": violation.repair}
    note(tx, now_us, actor, "repair", details, 1)
