"""Operations on a store, for the commands and routes of applications: operations in a caller's name, with rights and
audit (``Control``), queries, and the values that they take and return."""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.commands.control import Control as Control
    from spinney.features.bulk.service import Bulk as Bulk
    from spinney.features.collections.commands import RelabelJob as RelabelJob
    from spinney.features.holds.commands import LayHold as LayHold
    from spinney.features.holds.commands import LiftHold as LiftHold
    from spinney.features.holds.commands import lift_holds as lift_holds
    from spinney.features.holds.commands import sweep_holds as sweep_holds
    from spinney.features.inboxes.uploads import InboxUploads as InboxUploads
    from spinney.features.jobs.commands import CancelJob as CancelJob
    from spinney.features.jobs.commands import DeleteJob as DeleteJob
    from spinney.features.jobs.commands import HoldJob as HoldJob
    from spinney.features.jobs.commands import PrioritiseJob as PrioritiseJob
    from spinney.features.jobs.commands import ReleaseJob as ReleaseJob
    from spinney.model.access import Role as Role
    from spinney.model.attempts.failure_groups import Failure as Failure
    from spinney.model.attempts.failure_groups import FailureGroups as FailureGroups
    from spinney.model.bridges import Link as Link
    from spinney.model.operators.audits import AuditCall as AuditCall
    from spinney.model.operators.bulk_orders import Order as Order
    from spinney.model.operators.bulk_orders import Verb as Verb
    from spinney.model.operators.bulk_runs import Plan as Plan
    from spinney.model.operators.bulk_runs import Report as Report
    from spinney.model.rights.actor import Actor as Actor
    from spinney.model.settings.holds import Hold as Hold
    from spinney.model.settings.holds import Scope as Scope
    from spinney.model.values.times import now_us as now_us
    from spinney.service.order_scope import OrderScope as OrderScope
    from spinney.service.queries import Queries as Queries
    from spinney.service.queries import all_jobs as all_jobs
    from spinney.service.submit_rights import authorized as authorized
    from spinney.store.contract import SubmissionKey as SubmissionKey
    from spinney.store.contract import SubmitResult as SubmitResult
    from spinney.store.parts import Store as Store
    from spinney.store.sql import open_store as open_store
    from spinney.wakeup import wake_all as wake_all
else:
    __all__, __getattr__, __dir__ = on_demand(
        __name__,
        {
            "spinney.commands.control": "Control",
            "spinney.features.bulk.service": "Bulk",
            "spinney.features.collections.commands": "RelabelJob",
            "spinney.features.holds.commands": "LayHold lift_holds LiftHold sweep_holds",
            "spinney.features.inboxes.uploads": "InboxUploads",
            "spinney.features.jobs.commands": "CancelJob DeleteJob HoldJob PrioritiseJob ReleaseJob",
            "spinney.model.access": "Role",
            "spinney.model.operators.audits": "AuditCall",
            "spinney.model.bridges": "Link",
            "spinney.model.operators.bulk_runs": "Plan Report",
            "spinney.model.attempts.failure_groups": "Failure FailureGroups",
            "spinney.model.operators.bulk_orders": "Order Verb",
            "spinney.model.rights.actor": "Actor",
            "spinney.model.settings.holds": "Hold Scope",
            "spinney.model.values.times": "now_us",
            "spinney.service.order_scope": "OrderScope",
            "spinney.service.queries": "all_jobs Queries",
            "spinney.service.submit_rights": "authorized",
            "spinney.store.contract": "SubmissionKey SubmitResult",
            "spinney.store.parts": "Store",
            "spinney.store.sql": "open_store",
            "spinney.wakeup": "wake_all",
        },
    )
