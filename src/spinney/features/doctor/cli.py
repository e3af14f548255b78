"""The command ``doctor``: check a store for inconsistencies and repair them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.model.errors import UsageError
from spinney.terminal import completion, display
from spinney.terminal.arguments import ByOption, JsonOption, StoreOption
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import now_us, open_control, resolve_settings

if TYPE_CHECKING:
    from spinney.control import Control
    from spinney.features.doctor.service import Checker, RepairResult
    from spinney.model.rights.operators import Violation
    from spinney.store.contract import Store

SHOWN = 20
"""So many violations of a rule are told one by one; of the others, how many."""


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

    if dead is not None and not repair:
        raise UsageError(f"--dead goes with --repair: spinney doctor --repair --dead {dead}")
    with open_control(store, by) as control:
        others: list[Checker] = [FolderCheck(resolve_settings(store).folders, control.store)]
        asked = _Examination(control, others, only or None, deep=deep)
        if rules:
            _tell_rules(control, others, json=json)
            return
        if repair:
            healthy = _repair(asked, dead, store, yes=yes, json=json)
        else:
            healthy = _tell(asked.examine(), json=json).all_ == 0
        if not json:
            _tell_way(control.store)
    if not healthy:
        raise typer.Exit(1)


class _Examination:
    """What is to be examined."""

    def __init__(
        self, control: "Control", others: "list[Checker]", only: list[str] | None, *, deep: bool
    ) -> None:
        from spinney.features.doctor.service import Doctor

        self.control, self._others, self._only, self._deep = control, others, only, deep
        self._doctor = control.part(Doctor)

    def examine(self) -> "Iterator[Violation]":
        return self._doctor.examine(self._only, deep=self._deep, others=self._others)

    def repair(self) -> "Iterator[RepairResult]":
        return self._doctor.repair(self._only, deep=self._deep, others=self._others)


def _tell_way(store: "Store") -> None:
    """What is not wrong, but slower than it could be."""
    wake_ups = store.facts().get("wake_ups", "")
    if wake_ups.startswith("pooled"):
        typer.echo(f"{wake_ups}; nodes that are given the database's own address hear at once")


# --- telling ----------------------------------------------------------------------------------


@dataclass
class _Count:
    """How many violations there were."""

    all_: int = 0
    mendable: int = 0

    def of(self, violations: "Iterable[Violation]") -> "Iterator[Violation]":
        for violation in violations:
            self.all_ += 1
            self.mendable += violation.repair is not None
            yield violation


def _tell(violations: "Iterable[Violation]", *, json: bool) -> _Count:
    """Print them as they are found."""
    count = _Count()
    if json:
        display.print_json_lines(count.of(violations))
        return count
    told: set[str] = set()
    again = 0
    for rule, found in groupby(count.of(violations), lambda violation: violation.rule):
        again += _tell_group(rule, found, told)
    if again:
        typer.echo(f"{_number(again, 'more rule')} reported the same")
    if count.all_:
        typer.echo(f"{_number(count.all_, 'violation')} found; {count.mendable:,} can be repaired (--repair)")
    else:
        typer.echo("healthy: nothing is wrong")
    return count


def _tell_group(rule: str, found: "Iterator[Violation]", told: set[str]) -> int:
    """Print what one rule found; 1 if that was nothing but what another has said: where the file is damaged, no rule
    can look."""
    shown = more = again = 0
    for violation in found:
        if violation.sentence in told:
            again += 1
            continue
        if shown >= SHOWN:
            more += 1
            continue
        if not shown:
            typer.echo(f"{rule}:")
        shown += 1
        told.add(violation.sentence)
        typer.echo(f"  {display.safe(violation.sentence)}")
        if violation.repair is not None:
            typer.echo(f"    --repair {display.safe(violation.repair)}")
    if more:
        typer.echo(f"  … and {more:,} more of these")
    return int(bool(again) and not shown)


def _tell_rules(control: "Control", others: "list[Checker]", *, json: bool) -> None:
    from spinney.features.doctor.service import Doctor

    checks = control.part(Doctor).checks(others)
    if json:
        display.print_json_lines(checks)
        return
    display.print_table(
        ("RULE", "WHAT MUST HOLD", "REPAIR"), [(c.rule, c.about, "yes" if c.repairs else "") for c in checks]
    )


# --- repairing --------------------------------------------------------------------------------


def _repair(asked: _Examination, dead: str | None, store: str | None, *, yes: bool, json: bool) -> bool:
    """Tell, ask, repair, and tell what is left; whether nothing is."""
    if dead is not None:
        _recover_dead_node(asked.control, dead, store, yes=yes, json=json)
    if not yes:
        count = _tell(asked.examine(), json=json)
        if not count.mendable:
            return count.all_ == 0
        require_yes(f"Repair {_number(count.mendable, 'violation')}?", yes=False)
    _print_repairs(asked.repair(), json=json)
    return _tell(asked.examine(), json=json).all_ == 0


def _print_repairs(treated: "Iterable[RepairResult]", *, json: bool) -> None:
    if json:
        display.print_json_lines(_repair_json(each) for each in treated)
        return
    for each in treated:
        what = f"{each.violation.subject}: {each.violation.rule}"
        if each.error is not None:
            typer.echo(f"cannot repair {display.safe(what)}: {display.safe(each.error)}")
        elif each.repaired:
            typer.echo(f"repaired {display.safe(what)}")


def _repair_json(treated: "RepairResult") -> dict[str, Any]:
    return {
        "rule": treated.violation.rule,
        "subject": treated.violation.subject,
        "did": treated.violation.repair,
        "repaired": treated.repaired,
        "error": treated.error,
    }


def _recover_dead_node(control: "Control", name: str, store: str | None, *, yes: bool, json: bool) -> None:
    from spinney.features.doctor.service import Doctor
    from spinney.model.jobs import NodeInfo
    from spinney.node.lifecycle import dead_nodes
    from spinney.store.sql import open_store

    place = resolve_settings(store)
    here = None if place.run_dir is None else dead_nodes.local_host(place.run_dir, Path(place.folders))
    for node in control.store.nodes():
        if here is not None and node.name == name and node.state != "left":
            dead_nodes.require_not_running(here, node)
    require_yes(f"Is node {name} dead, and may its work run elsewhere?", yes=yes)

    def recover(node: NodeInfo) -> list[int]:
        if here is None or not here.local(node):
            return []
        return dead_nodes.recover_dead_node(lambda: open_store(place.store), here, node, now_us)

    concerned = control.part(Doctor).recover_dead_node(name, recover)
    if not json:
        typer.echo(
            f"node {display.safe(name)} is marked as dead; {_number(len(concerned), 'job')} taken back"
        )


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
