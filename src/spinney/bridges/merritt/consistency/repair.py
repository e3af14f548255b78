"""Mending what a check found: each remedy is one transaction, which fails where the queue has changed since."""

from collections.abc import Iterable
from dataclasses import dataclass

from kazoo.client import KazooClient

from spinney.bridges.merritt import item_locks
from spinney.bridges.merritt.consistency.check import Finding, Kind, Remedy
from spinney.bridges.merritt.nodes import subtree
from spinney.bridges.merritt.transactions import OperationFailed, Transaction


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done about a finding, or would be."""

    finding: Finding
    action: str
    """What was done, or would be, in words."""
    done: bool


def mend(
    client: KazooClient,
    findings: Iterable[Finding],
    *,
    dry_run: bool,
    also_recent: bool = False,
    break_locks: bool = False,
) -> list[Repair]:
    """Mend findings, and return what was done about each; with ``dry_run`` only what would be.

    Items that somebody has locked are left alone, as is what somebody must decide. What is younger than an hour may be
    work in progress of another library, and is mended only with ``also_recent``. Locks are broken only with
    ``break_locks``: an old lock may belong to a download of many hours, which a second client would then begin anew.
    """
    repairs = []
    for finding in findings:
        if finding.remedy is None:
            repairs.append(Repair(finding, "Nothing: an operator must decide what to do with it.", False))
        elif finding.severity == "WARN" and not also_recent:
            repairs.append(
                Repair(finding, "Nothing yet: it is younger than an hour; see also_recent.", False)
            )
        elif finding.kind is Kind.OLD_LOCK and not break_locks:
            repairs.append(
                Repair(finding, "Nothing: its holder may still work; break_locks would delete it.", False)
            )
        elif dry_run:
            repairs.append(Repair(finding, f"Would {_described(finding.remedy)}.", False))
        else:
            repairs.append(_applied(client, finding, finding.remedy))
    return repairs


def _described(remedy: Remedy) -> str:
    """Return in words what a remedy does."""
    parts = [f"delete {path}" for path in remedy.delete] + [f"create {path}" for path, _ in remedy.create]
    return " and ".join(parts)


def _applied(client: KazooClient, finding: Finding, remedy: Remedy) -> Repair:
    """Apply a remedy as one transaction, which first locks the items that nobody may be working at, and fails
    where a version or a missing node is no longer as it was found."""
    transaction = Transaction(client)
    locks = [item_locks.new_lock(f"{path}/lock", "repair") for path in remedy.unlocked]
    for lock in locks:
        item_locks.add_lock(transaction, lock)
    for path, version in remedy.same:
        transaction.check(path, version)
    for path in remedy.absent:
        transaction.require_absent(path)
    for path, data in remedy.create:
        if not client.retry(client.exists, path):  # an earlier repair may have made a list for it
            transaction.create(path, data)
    kept = {lock.path for lock in locks}
    for top in remedy.delete:
        for path in subtree(client, top):
            if path not in kept and client.retry(client.exists, path):
                for lock in locks:
                    if lock.path.startswith(f"{path}/"):
                        transaction.delete(lock.path)
                        kept.discard(lock.path)
                transaction.delete(path)
    for path in kept:
        transaction.delete(path)
    try:
        transaction.commit()
    except OperationFailed as failure:
        reason = (
            "another process works on it"
            if failure.path in {lock.path for lock in locks}
            else f"it has changed ({failure})"
        )
        return Repair(finding, f"Nothing: {reason}; check again later.", False)
    return Repair(finding, f"Did {_described(remedy)}.", True)
