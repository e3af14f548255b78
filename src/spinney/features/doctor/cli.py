"""The command ``doctor``: check a store for inconsistencies and repair them.

The order is fixed: a node that ``--dead`` names is recovered first, then the store is examined and the
violations are printed, then ``--repair`` asks for confirmation and repairs, and a second examination decides
the exit code. With ``--yes`` the first examination is left out.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.commands import Performs
from spinney.features.doctor.checks import Check, Violation
from spinney.features.doctor.commands import Examination, ExamineStore, ListRules, RepairStore
from spinney.features.doctor.service import Doctor, RepairResult
from spinney.model.errors import UsageError
from spinney.model.jobs import NodeInfo
from spinney.model.values.texts import counted
from spinney.store.parts import Store
from spinney.terminal import completion, endpoint
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import now_us, open_commands, open_control, resolve_settings
from spinney.terminal.options.arguments import ByOption, JsonOption, StoreOption, option
from spinney.terminal.output import display

if TYPE_CHECKING:
    from spinney.commands.control import Control

SHOWN = 20
"""How many violations of a rule are printed; the others are only counted."""


app = typer.Typer()


@app.command()
def doctor(
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Repair what can be repaired safely, after asking for confirmation."),
    ] = False,
    dead: Annotated[
        str | None,
        option(
            metavar="NODE",
            help_="With --repair: declare this node dead and recover its jobs. Be sure that it does not run.",
            complete=completion.nodes_there,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="RULE", help="Check only this rule; may be repeated."),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also run the slow checks: every index against its table.")
    ] = False,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules and exit.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Repair without asking for confirmation.")] = False,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Check the store and its folders for inconsistencies, and say what to do about each.

    Reads only, unless --repair is given, and is safe while nodes work. The exit code is 0 if the store is healthy,
    else 1. Each repair checks again before it changes anything, and is recorded in the audit log.
    """
    if dead is not None and not repair:
        raise UsageError(f"--dead goes with --repair: spinney doctor --repair --dead {dead}")
    if dead is not None and not rules:
        with open_control(store, by) as control:
            _recover_dead_node(control, dead, store, yes=yes, json=json)
    with open_commands(store, by) as performer:
        if rules:
            _print_rules(performer.do(ListRules()).items, json=json)
            return
        examine = partial(_examine, performer, only or [], deep=deep, json=json)
        examination = None if repair and yes else examine()
        if repair and examination is not None and examination.repairable:
            require_yes(f"Repair {counted(examination.repairable, 'violation')}?", yes=False)
        if repair and (examination is None or examination.repairable):
            performer.do(RepairStore(only=only or [], deep=deep), tell=partial(_print_repair, json=json))
            examination = examine()
        if not json and endpoint.server(store) is None:
            with open_control(store, by) as control:
                _print_slow_wakeups(control.store)
    if examination is not None and examination.violations:
        raise typer.Exit(1)


def _examine(performer: Performs, only: Sequence[str], *, deep: bool, json: bool) -> Examination:
    """Examine the store, print the violations while they are found, and return the counts."""
    violations = _Violations(json=json)
    examination = performer.do(ExamineStore(only=list(only), deep=deep), tell=violations.add)
    violations.end(examination)
    return examination


def _print_slow_wakeups(store: Store) -> None:
    """Print notes about what is no violation, but makes the store slower than it could be."""
    wake_ups = store.facts().get("wake_ups", "")
    if wake_ups.startswith("pooled"):
        typer.echo(f"{wake_ups}; nodes that are given the database's own address hear at once")


# --- violations ---------------------------------------------------------------------------------


class _Violations:
    """Prints violations as they are found, by rule, at most ``SHOWN`` of each.

    A sentence that several rules report is printed once, and the number of the other rules at the end: where
    the file of the database is damaged, no rule can be checked, and all of them say so.
    """

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._rule: str | None = None
        self._lines = self._more = self._repeated = self._repeating = 0
        self._printed: set[str] = set()

    def add(self, violation: Violation) -> None:
        """Print a violation, or count it when its rule has had its lines or another rule has printed the same
        sentence."""
        if self._json:
            display.print_json_lines([violation])
            return
        if violation.rule != self._rule:
            self._end_rule()
            self._rule = violation.rule
        if violation.sentence in self._printed:
            self._repeated += 1
        elif self._lines < SHOWN:
            self._lines += 1
            self._printed.add(violation.sentence)
            _print_violation(violation, f"{violation.rule}:" if self._lines == 1 else None)
        else:
            self._more += 1

    def end(self, examination: Examination) -> None:
        """Print how many violations there were, and how many of them can be repaired. With ``--json`` it
        prints nothing."""
        if self._json:
            return
        self._end_rule()
        if self._repeating:
            typer.echo(f"{counted(self._repeating, 'more rule')} reported the same")
        if examination.violations:
            typer.echo(
                f"{counted(examination.violations, 'violation')} found; {examination.repairable:,} can be repaired "
                "(--repair)"
            )
        else:
            typer.echo("healthy: nothing is wrong")

    def _end_rule(self) -> None:
        """Print how many violations of the last rule are not shown, and begin anew."""
        if self._more:
            typer.echo(f"  … and {self._more:,} more of these")
        self._repeating += bool(self._repeated and not self._lines)
        self._lines = self._more = self._repeated = 0


def _print_violation(violation: Violation, title: str | None) -> None:
    """Print a violation with what a repair would do; ``title``: the line that begins a new rule."""
    if title is not None:
        typer.echo(title)
    typer.echo(f"  {display.safe(violation.sentence)}")
    if violation.repair is not None:
        typer.echo(f"    --repair {display.safe(violation.repair)}")


def _print_rules(checks: Sequence[Check], *, json: bool) -> None:
    """Print the rules as a table."""
    if json:
        display.print_json_lines(checks)
    else:
        rows = [(check.rule, check.about, "yes" if check.repairs else "") for check in checks]
        display.print_table(("RULE", "WHAT MUST HOLD", "REPAIR"), rows)


# --- repairs ------------------------------------------------------------------------------------


def _print_repair(result: RepairResult, *, json: bool) -> None:
    """Print what became of one violation; one that had gone by itself is not mentioned."""
    if json:
        line = {
            "rule": result.violation.rule,
            "subject": result.violation.subject,
            "did": result.violation.repair,
            "repaired": result.repaired,
            "error": result.error,
        }
        display.print_json_lines([line])
        return
    violation = f"{result.violation.subject}: {result.violation.rule}"
    if result.error is not None:
        typer.echo(f"cannot repair {display.safe(violation)}: {display.safe(result.error)}")
    elif result.repaired:
        typer.echo(f"repaired {display.safe(violation)}")


def _recover_dead_node(control: "Control", name: str, store: str | None, *, yes: bool, json: bool) -> None:
    """Declare a node dead and take its work back, after confirmation.

    A node of this host need not be taken to be dead on anybody's word: the kernel shows whether it runs, and
    then the command is refused; otherwise its last heartbeat may be as recent as it likes. What is left of its
    processes is killed, and its pages on disk say which attempts had begun. Nodes of other hosts are believed to be
    dead when none of them beats meanwhile.
    """
    from spinney.node.lifecycle import dead_nodes
    from spinney.node.local_host import LocalHost
    from spinney.store.sql import open_store

    settings = resolve_settings(store)
    host = None if settings.run_dir is None else LocalHost.own(settings.run_dir, Path(settings.folders))
    gone: set[int] = set()
    for node in control.store.nodes():
        if host is not None and node.name == name and node.state != "left":
            dead_nodes.require_not_running(host, node)
            gone |= {node.id} if host.proven_gone(node) else set()
    dead_nodes.require_silent(control.store, name, gone)
    require_yes(f"Is node {name} dead, and may its work run elsewhere?", yes=yes)

    def recover(node: NodeInfo) -> list[int]:
        if host is None or not host.local(node):
            return []
        return dead_nodes.recover_dead_node(lambda: open_store(settings.store), host, node, now_us)

    jobs = control.part(Doctor).recover_dead_node(name, recover, gone)
    if not json:
        typer.echo(f"node {display.safe(name)} is marked as dead; {counted(len(jobs), 'job')} taken back")
