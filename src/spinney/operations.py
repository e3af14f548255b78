"""Operations on a store, for the commands and routes of applications: operations in a caller's name, with rights and
audit (``Control``), queries, and the values that they take and return."""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.app import now_us
    from spinney.control import Control
    from spinney.features.bulk.service import Bulk
    from spinney.features.holds.commands import LayHold, LiftHold, lift_holds, sweep_holds
    from spinney.features.jobs.commands import DeleteJob, ReleaseJob
    from spinney.model.access import Role
    from spinney.model.audits import AuditCall
    from spinney.model.bulk_runs import Plan, Report
    from spinney.model.rights.operators import Order, Verb
    from spinney.model.settings.holds import Hold, Scope
    from spinney.service.order_scope import OrderScope
    from spinney.service.queries import Queries
    from spinney.service.submit_rights import authorized
    from spinney.store.contract import Store, SubmissionKey, SubmitResult
    from spinney.store.sql import open_store
    from spinney.wakeup import wake_all

__all__ = [
    "AuditCall",
    "Bulk",
    "Control",
    "DeleteJob",
    "Hold",
    "LayHold",
    "LiftHold",
    "Order",
    "OrderScope",
    "Plan",
    "Queries",
    "ReleaseJob",
    "Report",
    "Role",
    "Scope",
    "Store",
    "SubmissionKey",
    "SubmitResult",
    "Verb",
    "authorized",
    "lift_holds",
    "now_us",
    "open_store",
    "sweep_holds",
    "wake_all",
]

_HOMES = {
    "spinney.app": ("now_us",),
    "spinney.control": ("Control",),
    "spinney.features.bulk.service": ("Bulk",),
    "spinney.features.holds.commands": (
        "LayHold",
        "LiftHold",
        "lift_holds",
        "sweep_holds",
    ),
    "spinney.features.jobs.commands": (
        "DeleteJob",
        "ReleaseJob",
    ),
    "spinney.model.access": ("Role",),
    "spinney.model.audits": ("AuditCall",),
    "spinney.model.bulk_runs": (
        "Plan",
        "Report",
    ),
    "spinney.model.rights.operators": (
        "Order",
        "Verb",
    ),
    "spinney.model.settings.holds": (
        "Hold",
        "Scope",
    ),
    "spinney.service.order_scope": ("OrderScope",),
    "spinney.service.queries": ("Queries",),
    "spinney.service.submit_rights": ("authorized",),
    "spinney.store.contract": (
        "Store",
        "SubmissionKey",
        "SubmitResult",
    ),
    "spinney.store.sql": ("open_store",),
    "spinney.wakeup": ("wake_all",),
}
__getattr__, __dir__ = on_demand(__name__, _HOMES)
