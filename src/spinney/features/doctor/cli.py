"""The command ``doctor``: check a store for inconsistencies and repair them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.model.errors import UsageError
from spinney.terminal import completion, display
from spinney.terminal.arguments import ByOption, JsonOption, StoreOption
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import now_us, open_control, resolve_settings

if TYPE_CHECKING:
    from spinney.control import Control
    from spinney.features.doctor.service import RepairResult
    from spinney.model.rights.operators import Check, Violation
    from spinney.store.contract import Store

SHOWN = 20
"""How many violations of a rule are printed; of the others, only their number."""


def add_to(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Repair what can be repaired safely, after asking for confirmation."),
    ] = False,
    dead: Annotated[
        str | None,
        typer.Option(
            metavar="NODE",
            help="With --repair: declare this node dead and recover its jobs. Be sure that it does not run.",
            show_default=False,
            autocompletion=completion.nodes_there,
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
    from spinney.features.doctor.folder_check import FolderCheck
    from spinney.features.doctor.service import Checker, Doctor
    from spinney.features.doctor.view_check import ViewCheck

    if dead is not None and not repair:
        raise UsageError(f"--dead goes with --repair: spinney doctor --repair --dead {dead}")
    with open_control(store, by) as control:
        root = resolve_settings(store).folders
        others: list[Checker] = [FolderCheck(root, control.store), ViewCheck(root, control.store)]
        doctor = control.part(Doctor)
        if rules:
            _print_rules(doctor.checks(others), json=json)
            return

        def examine() -> _Count:
            return _print_violations(doctor.examine(only, deep=deep, others=others), json=json)

        if dead is not None:
            _recover_dead_node(control, dead, store, yes=yes, json=json)
        if repair:
            count = _Count() if yes else examine()
            if count.repairable:
                require_yes(f"Repair {_number(count.repairable, 'violation')}?", yes=False)
            if yes or count.repairable:
                _print_repairs(doctor.repair(only, deep=deep, others=others), json=json)
                count = examine()
        else:
            count = examine()
        if not json:
            _print_slow_wakeups(control.store)
    if count.total:
        raise typer.Exit(1)


def _print_slow_wakeups(store: "Store") -> None:
    """Print what is no violation, but slower than it could be."""
    wake_ups = store.facts().get("wake_ups", "")
    if wake_ups.startswith("pooled"):
        typer.echo(f"{wake_ups}; nodes that are given the database's own address hear at once")


# --- violations ---------------------------------------------------------------------------------


@dataclass
class _Count:
    """How many violations there were."""

    total: int = 0
    repairable: int = 0

    def of(self, violations: "Iterable[Violation]") -> "Iterator[Violation]":
        for violation in violations:
            self.total += 1
            self.repairable += violation.repair is not None
            yield violation


def _print_violations(violations: "Iterable[Violation]", *, json: bool) -> _Count:
    """Print violations as they are found, by rule. A message that several rules have is printed once: where the file is
    damaged, no rule can be checked."""
    count = _Count()
    if json:
        display.print_json_lines(count.of(violations))
        return count
    printed: set[str] = set()
    repeating = 0
    for rule, of_rule in groupby(count.of(violations), lambda violation: violation.rule):
        lines = more = repeated = 0
        for violation in of_rule:
            if violation.sentence in printed:
                repeated += 1
            elif lines < SHOWN:
                lines += 1
                printed.add(violation.sentence)
                _print_violation(violation, f"{rule}:" if lines == 1 else None)
            else:
                more += 1
        if more:
            typer.echo(f"  … and {more:,} more of these")
        repeating += bool(repeated and not lines)
    if repeating:
        typer.echo(f"{_number(repeating, 'more rule')} reported the same")
    if count.total:
        typer.echo(
            f"{_number(count.total, 'violation')} found; {count.repairable:,} can be repaired (--repair)"
        )
    else:
        typer.echo("healthy: nothing is wrong")
    return count


def _print_violation(violation: "Violation", title: str | None) -> None:
    if title is not None:
        typer.echo(title)
    typer.echo(f"  {display.safe(violation.sentence)}")
    if violation.repair is not None:
        typer.echo(f"    --repair {display.safe(violation.repair)}")


def _print_rules(checks: "Sequence[Check]", *, json: bool) -> None:
    if json:
        display.print_json_lines(checks)
    else:
        rows = [(check.rule, check.about, "yes" if check.repairs else "") for check in checks]
        display.print_table(("RULE", "WHAT MUST HOLD", "REPAIR"), rows)


# --- repairs ------------------------------------------------------------------------------------


def _print_repairs(results: "Iterable[RepairResult]", *, json: bool) -> None:
    if json:
        display.print_json_lines(
            {
                "rule": result.violation.rule,
                "subject": result.violation.subject,
                "did": result.violation.repair,
                "repaired": result.repaired,
                "error": result.error,
            }
            for result in results
        )
        return
    for result in results:
        violation = f"{result.violation.subject}: {result.violation.rule}"
        if result.error is not None:
            typer.echo(f"cannot repair {display.safe(violation)}: {display.safe(result.error)}")
        elif result.repaired:
            typer.echo(f"repaired {display.safe(violation)}")


def _recover_dead_node(control: "Control", name: str, store: str | None, *, yes: bool, json: bool) -> None:
    """Declare a node dead and take its work back. Of a node of this host the kernel can tell whether it is alive."""
    from spinney.features.doctor.service import Doctor
    from spinney.model.jobs import NodeInfo
    from spinney.node.lifecycle import dead_nodes
    from spinney.store.sql import open_store

    settings = resolve_settings(store)
    host = (
        None if settings.run_dir is None else dead_nodes.local_host(settings.run_dir, Path(settings.folders))
    )
    for node in control.store.nodes():
        if host is not None and node.name == name and node.state != "left":
            dead_nodes.require_not_running(host, node)
    require_yes(f"Is node {name} dead, and may its work run elsewhere?", yes=yes)

    def recover(node: NodeInfo) -> list[int]:
        if host is None or not host.local(node):
            return []
        return dead_nodes.recover_dead_node(lambda: open_store(settings.store), host, node, now_us)

    jobs = control.part(Doctor).recover_dead_node(name, recover)
    if not json:
        typer.echo(f"node {display.safe(name)} is marked as dead; {_number(len(jobs), 'job')} taken back")


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
