"""The commands of operators, for clients and for commands and routes of applications. Most operations of the API are
commands: ``client.do(RetryJob(job=17))`` on a server, or ``do`` of a ``Control`` on a store, with rights and audit.
Queries, and the values that all these take and return, are here as well."""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.commands.control import Control as Control
    from spinney.commands.job_filter import JobFilterBody as JobFilterBody
    from spinney.commands.job_queries import CountChildren as CountChildren
    from spinney.commands.job_queries import CountJobs as CountJobs
    from spinney.commands.job_queries import ListAttempts as ListAttempts
    from spinney.commands.job_queries import ListChildren as ListChildren
    from spinney.commands.job_queries import ListJobs as ListJobs
    from spinney.commands.job_queries import ShowData as ShowData
    from spinney.commands.job_queries import ShowJob as ShowJob
    from spinney.commands.job_queries import ShowResults as ShowResults
    from spinney.commands.job_queries import ShowTree as ShowTree
    from spinney.features.accounts.commands import AddUser as AddUser
    from spinney.features.accounts.commands import ChangePassword as ChangePassword
    from spinney.features.accounts.commands import ChangeUser as ChangeUser
    from spinney.features.accounts.commands import DeleteUser as DeleteUser
    from spinney.features.accounts.commands import EndSessions as EndSessions
    from spinney.features.accounts.commands import ListSessions as ListSessions
    from spinney.features.accounts.commands import ListTokens as ListTokens
    from spinney.features.accounts.commands import ListUsers as ListUsers
    from spinney.features.accounts.commands import MakeLink as MakeLink
    from spinney.features.accounts.commands import MakeToken as MakeToken
    from spinney.features.accounts.commands import RevokeToken as RevokeToken
    from spinney.features.accounts.commands import ShowUser as ShowUser
    from spinney.features.audit.commands import ListAuditCalls as ListAuditCalls
    from spinney.features.audit.commands import ListAuditEntries as ListAuditEntries
    from spinney.features.audit.commands import ShowAuditHead as ShowAuditHead
    from spinney.features.audit.commands import VerifyAudit as VerifyAudit
    from spinney.features.bridges.commands import ForgetBridge as ForgetBridge
    from spinney.features.bridges.commands import ListBridges as ListBridges
    from spinney.features.bulk.commands import CanaryFields as CanaryFields
    from spinney.features.bulk.commands import PlanBulk as PlanBulk
    from spinney.features.bulk.commands import RunBulk as RunBulk
    from spinney.features.bulk.service import Bulk as Bulk
    from spinney.features.collections.commands import RelabelJob as RelabelJob
    from spinney.features.doctor.commands import ExamineStore as ExamineStore
    from spinney.features.doctor.commands import ListRules as ListRules
    from spinney.features.doctor.commands import RepairStore as RepairStore
    from spinney.features.explain.commands import ExplainJob as ExplainJob
    from spinney.features.explain.commands import ListObstacles as ListObstacles
    from spinney.features.external.commands import AppendAttemptData as AppendAttemptData
    from spinney.features.external.commands import ClaimAttempts as ClaimAttempts
    from spinney.features.external.commands import JoinExternalWorker as JoinExternalWorker
    from spinney.features.external.commands import Lane as Lane
    from spinney.features.external.commands import LeaveExternalWorker as LeaveExternalWorker
    from spinney.features.external.commands import ListExternalWorkers as ListExternalWorkers
    from spinney.features.external.commands import PutAttemptData as PutAttemptData
    from spinney.features.external.commands import ReportProgress as ReportProgress
    from spinney.features.external.commands import SendHeartbeat as SendHeartbeat
    from spinney.features.external.commands import SettleAttempt as SettleAttempt
    from spinney.features.external.commands import SpawnSubjobs as SpawnSubjobs
    from spinney.features.external.commands import TakeAttemptLock as TakeAttemptLock
    from spinney.features.failures.commands import ListFailures as ListFailures
    from spinney.features.failures.commands import ShowFailure as ShowFailure
    from spinney.features.holds.commands import CountHeld as CountHeld
    from spinney.features.holds.commands import LayHold as LayHold
    from spinney.features.holds.commands import LiftHold as LiftHold
    from spinney.features.holds.commands import ListHolds as ListHolds
    from spinney.features.holds.commands import ListHoldsOn as ListHoldsOn
    from spinney.features.holds.commands import PlanHold as PlanHold
    from spinney.features.holds.commands import PlanRelease as PlanRelease
    from spinney.features.holds.commands import lift_holds as lift_holds
    from spinney.features.holds.commands import sweep_holds as sweep_holds
    from spinney.features.homes.commands import ListHomes as ListHomes
    from spinney.features.homes.commands import RehomeJob as RehomeJob
    from spinney.features.homes.commands import ReleaseHome as ReleaseHome
    from spinney.features.inboxes.commands import ListArrivals as ListArrivals
    from spinney.features.inboxes.commands import ListInboxes as ListInboxes
    from spinney.features.inboxes.commands import PauseInbox as PauseInbox
    from spinney.features.inboxes.commands import PutInbox as PutInbox
    from spinney.features.inboxes.commands import RemoveInbox as RemoveInbox
    from spinney.features.inboxes.commands import ScanInbox as ScanInbox
    from spinney.features.inboxes.commands import ShowInbox as ShowInbox
    from spinney.features.inboxes.uploads import InboxUploads as InboxUploads
    from spinney.features.jobs.commands import CancelJob as CancelJob
    from spinney.features.jobs.commands import DeleteJob as DeleteJob
    from spinney.features.jobs.commands import HoldJob as HoldJob
    from spinney.features.jobs.commands import MoveJob as MoveJob
    from spinney.features.jobs.commands import PrioritiseJob as PrioritiseJob
    from spinney.features.jobs.commands import ReleaseJob as ReleaseJob
    from spinney.features.jobs.commands import RerunJob as RerunJob
    from spinney.features.jobs.commands import RetryJob as RetryJob
    from spinney.features.jobs.commands import RunJobNow as RunJobNow
    from spinney.features.locks.commands import FreeLock as FreeLock
    from spinney.features.locks.commands import ListCapacities as ListCapacities
    from spinney.features.locks.commands import ListLocks as ListLocks
    from spinney.features.locks.commands import SetCapacity as SetCapacity
    from spinney.features.locks.commands import ShowLock as ShowLock
    from spinney.features.nodes.commands import DrainNode as DrainNode
    from spinney.features.nodes.commands import ListNodes as ListNodes
    from spinney.features.nodes.commands import ResumeNode as ResumeNode
    from spinney.features.nodes.commands import SetSlots as SetSlots
    from spinney.features.queues.commands import ChangeQueue as ChangeQueue
    from spinney.features.queues.commands import CreateQueue as CreateQueue
    from spinney.features.queues.commands import DeleteQueue as DeleteQueue
    from spinney.features.queues.commands import ListQueues as ListQueues
    from spinney.features.queues.commands import ShowQueue as ShowQueue
    from spinney.features.retention.commands import ListRetention as ListRetention
    from spinney.features.retention.commands import SetRetention as SetRetention
    from spinney.features.retention.commands import ShowRetentionClock as ShowRetentionClock
    from spinney.features.retention.commands import UnsetRetention as UnsetRetention
    from spinney.features.schedules.commands import DropSchedule as DropSchedule
    from spinney.features.schedules.commands import ListComingTimes as ListComingTimes
    from spinney.features.schedules.commands import ListScheduleRuns as ListScheduleRuns
    from spinney.features.schedules.commands import ListSchedules as ListSchedules
    from spinney.features.schedules.commands import PauseSchedule as PauseSchedule
    from spinney.features.schedules.commands import PutSchedule as PutSchedule
    from spinney.features.schedules.commands import RunSchedule as RunSchedule
    from spinney.features.schedules.commands import ShowSchedule as ShowSchedule
    from spinney.features.stacks.commands import RequestStacks as RequestStacks
    from spinney.features.stacks.commands import ShowStackRequest as ShowStackRequest
    from spinney.features.stats.commands import ShowStats as ShowStats
    from spinney.features.submission.commands import ListBatches as ListBatches
    from spinney.features.submission.commands import ListObjects as ListObjects
    from spinney.features.submission.commands import ShowBatch as ShowBatch
    from spinney.features.submission.commands import SubmitJob as SubmitJob
    from spinney.features.submission.commands import SubmitJobs as SubmitJobs
    from spinney.features.types.commands import ListTypes as ListTypes
    from spinney.features.types.commands import ShowType as ShowType
    from spinney.features.webhooks.commands import AddWebhook as AddWebhook
    from spinney.features.webhooks.commands import ChangeWebhook as ChangeWebhook
    from spinney.features.webhooks.commands import ListDeliveries as ListDeliveries
    from spinney.features.webhooks.commands import ListWebhooks as ListWebhooks
    from spinney.features.webhooks.commands import PingWebhook as PingWebhook
    from spinney.features.webhooks.commands import RemoveWebhook as RemoveWebhook
    from spinney.features.webhooks.commands import RetryDelivery as RetryDelivery
    from spinney.features.webhooks.commands import RotateWebhook as RotateWebhook
    from spinney.features.webhooks.commands import ShowDelivery as ShowDelivery
    from spinney.features.webhooks.commands import ShowWebhook as ShowWebhook
    from spinney.model.access import AccessScope as AccessScope
    from spinney.model.access import Rights as Rights
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
    from spinney.model.settings.webhooks import DeliveryOutcome as DeliveryOutcome
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
            "spinney.commands.job_filter": "JobFilterBody",
            "spinney.commands.job_queries": (
                "CountChildren CountJobs ListAttempts ListChildren ListJobs ShowData ShowJob ShowResults ShowTree"
            ),
            "spinney.features.accounts.commands": (
                "AddUser ChangePassword ChangeUser DeleteUser EndSessions ListSessions ListTokens "
                "ListUsers MakeLink MakeToken RevokeToken ShowUser"
            ),
            "spinney.features.audit.commands": "ListAuditCalls ListAuditEntries ShowAuditHead VerifyAudit",
            "spinney.features.bridges.commands": "ForgetBridge ListBridges",
            "spinney.features.bulk.commands": "CanaryFields PlanBulk RunBulk",
            "spinney.features.bulk.service": "Bulk",
            "spinney.features.collections.commands": "RelabelJob",
            "spinney.features.doctor.commands": "ExamineStore ListRules RepairStore",
            "spinney.features.explain.commands": "ExplainJob ListObstacles",
            "spinney.features.external.commands": (
                "AppendAttemptData ClaimAttempts JoinExternalWorker Lane LeaveExternalWorker "
                "ListExternalWorkers PutAttemptData ReportProgress SendHeartbeat SettleAttempt "
                "SpawnSubjobs TakeAttemptLock"
            ),
            "spinney.features.failures.commands": "ListFailures ShowFailure",
            "spinney.features.holds.commands": (
                "CountHeld LayHold lift_holds LiftHold ListHolds ListHoldsOn PlanHold PlanRelease sweep_holds"
            ),
            "spinney.features.homes.commands": "ListHomes RehomeJob ReleaseHome",
            "spinney.features.inboxes.commands": (
                "ListArrivals ListInboxes PauseInbox PutInbox RemoveInbox ScanInbox ShowInbox"
            ),
            "spinney.features.inboxes.uploads": "InboxUploads",
            "spinney.features.jobs.commands": (
                "CancelJob DeleteJob HoldJob MoveJob PrioritiseJob ReleaseJob RerunJob RetryJob RunJobNow"
            ),
            "spinney.features.locks.commands": "FreeLock ListCapacities ListLocks SetCapacity ShowLock",
            "spinney.features.nodes.commands": "DrainNode ListNodes ResumeNode SetSlots",
            "spinney.features.queues.commands": "ChangeQueue CreateQueue DeleteQueue ListQueues ShowQueue",
            "spinney.features.retention.commands": (
                "ListRetention SetRetention ShowRetentionClock UnsetRetention"
            ),
            "spinney.features.schedules.commands": (
                "DropSchedule ListComingTimes ListScheduleRuns ListSchedules PauseSchedule "
                "PutSchedule RunSchedule ShowSchedule"
            ),
            "spinney.features.stacks.commands": "RequestStacks ShowStackRequest",
            "spinney.features.stats.commands": "ShowStats",
            "spinney.features.submission.commands": "ListBatches ListObjects ShowBatch SubmitJob SubmitJobs",
            "spinney.features.types.commands": "ListTypes ShowType",
            "spinney.features.webhooks.commands": (
                "AddWebhook ChangeWebhook ListDeliveries ListWebhooks PingWebhook RemoveWebhook "
                "RetryDelivery RotateWebhook ShowDelivery ShowWebhook"
            ),
            "spinney.model.access": "AccessScope Rights Role",
            "spinney.model.attempts.failure_groups": "Failure FailureGroups",
            "spinney.model.bridges": "Link",
            "spinney.model.operators.audits": "AuditCall",
            "spinney.model.operators.bulk_orders": "Order Verb",
            "spinney.model.operators.bulk_runs": "Plan Report",
            "spinney.model.rights.actor": "Actor",
            "spinney.model.settings.holds": "Hold Scope",
            "spinney.model.settings.webhooks": "DeliveryOutcome",
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
