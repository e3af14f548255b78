"""The doctor: every invariant that the database can show, as a list of small rules.

A rule (``rule``) finds where it does not hold, says it in a sentence, and offers a repair where one is safe.
Nothing is repaired by writing what ought to be there where the engine has a verb of its own for it: a job is
placed, a lock freed, a parent told, as in daily work. Each repair is one transaction that looks again first,
with its entry in the audit.

``job_row`` a job's own row · ``ready``, ``leases``, ``inactive_jobs`` where it stands · ``trees`` lineages and lists of
children · ``waiting`` what waits for something that cannot come · ``leftovers`` of jobs that settled or went ·
``sweeps`` work in steps that was cut off · ``schedules_and_counters`` nodes, schedules, counters ·
``integrity`` the file and the audit's chain · ``unreadable`` values that are no JSON.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from spinney.features.doctor.sql import (
    inactive_jobs,
    integrity,
    job_row,
    leases,
    leftovers,
    ready,
    schedules_and_counters,
    sweeps,
    trees,
    unreadable,
    waiting,
)
from spinney.features.doctor.sql.rule import GRACE_US, CheckContext, RepairContext, Rule, listed
from spinney.model.errors import Refused, SpinneyError
from spinney.model.jobs import NodeInfo
from spinney.model.rights.operators import Actor, Check, Violation
from spinney.model.values.hints import did_you_mean
from spinney.model.values.hints import listed as listed_names
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import nodes
from spinney.store.sql.registry.registry import UnreadableDeclaration
from spinney.store.sql.session import Session
from spinney.store.sql.transitions.cascades import Cascade

STEPS = 100_000
"""A repair that goes in steps gives up after so many."""

RULES: tuple[Rule, ...] = (
    *integrity.RULES,
    *schedules_and_counters.RULES,
    *job_row.RULES,
    *leases.RULES,
    *ready.RULES,
    *inactive_jobs.RULES,
    *trees.RULES,
    *leftovers.RULES,
    *waiting.RULES,
    *sweeps.RULES,
    *unreadable.RULES,
)
"""In an order in which few repairs make work for a rule before them: what hangs on a job comes after the job,
and what waits after what it waits for."""


class SqlDoctor:
    """Checks and repairs of every invariant that the database can show."""

    def __init__(self, session: Session, rules: Sequence[Rule] = RULES) -> None:
        self._session = session
        self._rules = {rule.name: rule for rule in rules}

    def checks(self) -> Sequence[Check]:
        """Return the rules, in the order in which they are checked."""
        return [
            Check(rule=r.name, about=r.about, repairs=r.mend is not None, deep=getattr(r, "deep", False))
            for r in self._rules.values()
        ]

    def examine(
        self, only: Collection[str] | None = None, *, deep: bool = False, now_us: int
    ) -> Iterator[Violation]:
        """Check all rules (or only these), and yield each violation as it is found.

        Each is judged within one snapshot that is held for no more than some thousand rows, so a store of any size may
        be checked while it works. ``deep``: also the rules that take long.
        """
        for rule in self._rules.values():
            asked = deep or not getattr(rule, "deep", False) if only is None else rule.name in only
            if asked:
                told = only is None or integrity.DECLARATIONS in only
                yield from self._violations_of(rule, now_us, told)

    def _violations_of(self, rule: Rule, now_us: int, told: bool) -> Iterator[Violation]:
        """What one rule finds. Where a damaged page or value keeps it from looking, the others still look. ``told``:
        of a declaration that cannot be read, which keeps nearly all from looking, a rule of its own tells."""
        try:
            yield from rule.examine(self._session, now_us)
        except UnreadableDeclaration as error:
            if not told:
                yield Violation(rule=rule.name, subject=f"rule {rule.name}", sentence=str(error))
        except Exception as error:  # noqa: BLE001 - a hand in the file can have written anything, and it is told
            yield Violation(
                rule=rule.name,
                subject=f"rule {rule.name}",
                sentence=f"this rule could not look to its end: {_in_words(error)}",
            )

    def repair(self, violation: Violation, actor: Actor, *, now_us: int) -> bool:
        """Repair a violation if it still exists, and return whether anything was changed. Raises SpinneyError when it
        cannot be repaired as things are."""
        rule = self._rules.get(violation.rule)
        if rule is None or rule.mend is None:
            return False
        for step in range(STEPS):
            try:
                mended = self._mended(rule, violation, actor, now_us)
            except SpinneyError:
                raise
            except Exception as error:
                raise Refused(f"{violation.subject} could not be repaired: {_in_words(error)}") from error
            if not mended:
                return step > 0
            if not rule.stepwise:
                return True
        raise Refused(f"{violation.subject} could not be repaired in {STEPS:,} steps; examine it again")

    def _mended(self, rule: Rule, violation: Violation, actor: Actor, now_us: int) -> bool:
        """One transaction: look again, mend, work off what follows from it."""
        assert rule.mend is not None
        session = self._session
        with session.write() as tx:
            facts = rule.again(CheckContext(tx, session.registry, now_us), violation.facts)
            if facts is None:
                return False
            cascade = Cascade(tx, session.registry, now_us)
            rule.mend(RepairContext(tx, session.registry, now_us, cascade), facts)
            cascade.drain()
            _note(tx, violation, actor, now_us)
        return True

    def noted(self, violation: Violation, actor: Actor, *, now_us: int) -> None:
        """Note in the audit that a violation outside of the database is repaired."""
        with self._session.write() as tx:
            _note(tx, violation, actor, now_us)

    def declare_dead(self, name: str, actor: Actor, *, now_us: int) -> Sequence[NodeInfo]:
        """Declare the nodes of this name dead on an operator's word: they may not claim from now on. Returns them, to
        be recovered (``Store.recover``). Raises Refused when one has sent a heartbeat lately, or there is none."""
        with self._session.write() as tx:
            there = [node for node in nodes.all_nodes(tx) if node.state != "left"]
            standing = [node for node in there if node.name == name]
            if not standing:
                known = {node.name for node in there}
                raise Refused(
                    f"no node {name!r} is there that has not left{did_you_mean(name, known)}; "
                    f"those that have not are: {listed_names(known)}"
                )
            for node in standing:
                if now_us - node.seen_us < GRACE_US:
                    ago_s = max(0, now_us - node.seen_us) // 1_000_000
                    raise Refused(
                        f"node {name} on {node.host} has beaten {ago_s} seconds ago, so it is not dead; stop it "
                        f"there (its pid is {node.pid}), or wait for a minute"
                    )
                nodes.update(tx, node.id, "left", now_us)
            what = {"node": name, "ids": [node.id for node in standing], "host": standing[0].host}
            note(tx, now_us, actor, "declare dead", what, sum(node.leases for node in standing))
        return standing

    def standing(self, job_ids: Sequence[int]) -> Mapping[int, tuple[str | None, int | None]]:
        """Return the known ones of these jobs: their state (None: retention has removed the job), and since when their
        folder is to be removed (None: it is not)."""
        with self._session.look() as tx:
            found = tx.all(
                "select j.value, jobs.state, t.at_us from json_each(?) j left join jobs on jobs.id = j.value "
                "left join deleted_folders t on t.job_id = j.value where jobs.id is not null or t.job_id is not null",
                (listed(job_ids),),
            )
        return {job_id: (state, since_us) for job_id, state, since_us in found}


def _in_words(error: Exception) -> str:
    if isinstance(error, SpinneyError):
        return str(error)
    return (
        f"somebody wrote into the database what Spinney never does ({type(error).__name__}: {error}); mend what the "
        f"other rules tell, then examine it again, or restore it from a backup"
    )


def _note(tx: Tx, violation: Violation, actor: Actor, now_us: int) -> None:
    what = {"rule": violation.rule, "subject": violation.subject, "did": violation.repair}
    note(tx, now_us, actor, "repair", what, 1)
