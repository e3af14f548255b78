"""A whole store, and the parts of it that features bring: ``store.holds``, ``store.webhooks``, …

A part is a class in the folder of its feature, and documents its methods there. As in ``spinney.store.contract``, every
method is one transaction unless its docstring says that it works in steps; a transaction that changes something lasts
well under 50 ms, and writes its entry into the audit.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar, overload

from spinney.store.contract import Administration, Kernel

if TYPE_CHECKING:
    from spinney.features.accounts.sign_in_sql import SqlSignIn
    from spinney.features.accounts.sql import SqlAccounts
    from spinney.features.bridges.sql import SqlBridges
    from spinney.features.bulk.sql import SqlBulk
    from spinney.features.collections.sql import SqlCollections
    from spinney.features.doctor.sql import SqlDoctor
    from spinney.features.explain.sql import SqlExplainer
    from spinney.features.external.sql import SqlExternalWorkers
    from spinney.features.failures.sql import SqlFailures
    from spinney.features.holds.sql import SqlHolds
    from spinney.features.homes.fetches_sql import SqlFetches
    from spinney.features.homes.sql import SqlHomes
    from spinney.features.inboxes.sql import SqlInboxes
    from spinney.features.jobs.relatives_sql import SqlRelatives
    from spinney.features.jobs.sql import SqlJobLists
    from spinney.features.locks.sql import SqlLocks
    from spinney.features.nodes.recent_sql import SqlNodeAttempts
    from spinney.features.nodes.sql import SqlFleet
    from spinney.features.queues.sql import SqlQueues
    from spinney.features.retention.sql import SqlRetention
    from spinney.features.saved_filters.sql import SqlSavedFilters
    from spinney.features.schedules.sql import SqlSchedules
    from spinney.features.stacks.sql import SqlStackRequests
    from spinney.features.stats.history_sql import SqlThroughputHistory
    from spinney.features.stats.sql import SqlStatistics
    from spinney.features.webhooks.sql import SqlWebhooks
    from spinney.store.sql.audit import SqlAudit

P = TypeVar("P")


class Part(Generic[P]):
    """An attribute that is imported and made when it is first used, so that a node and a quick command load no part
    that they do not need. ``path`` is ``module:class``; the class takes the ``Session`` of the store."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, store: None, owner: type) -> Self: ...
    @overload
    def __get__(self, store: object, owner: type) -> P: ...
    def __get__(self, store: Any, owner: type) -> Self | P:
        """Import and make the part, and keep it in the store object under the same name. Of the class, as which Python
        3.12 looks at each attribute of a protocol, return this object."""
        if store is None:
            return self
        module, _, kind = self._path.partition(":")
        part: P = getattr(import_module(f"spinney.{module}"), kind)(store.session)
        # The instance's attribute is found first from now on. Two threads that are here at once get the same part.
        return store.__dict__.setdefault(self._name, part)  # type: ignore[no-any-return]


class Parts(Protocol):
    """The parts, by the names of their attributes."""

    accounts: "ClassVar[Part[SqlAccounts]]" = Part("features.accounts.sql:SqlAccounts")
    audit: "ClassVar[Part[SqlAudit]]" = Part("store.sql.audit:SqlAudit")
    bridges: "ClassVar[Part[SqlBridges]]" = Part("features.bridges.sql:SqlBridges")
    bulk: "ClassVar[Part[SqlBulk]]" = Part("features.bulk.sql:SqlBulk")
    collections: "ClassVar[Part[SqlCollections]]" = Part("features.collections.sql:SqlCollections")
    doctor: "ClassVar[Part[SqlDoctor]]" = Part("features.doctor.sql:SqlDoctor")
    explainer: "ClassVar[Part[SqlExplainer]]" = Part("features.explain.sql:SqlExplainer")
    external_workers: "ClassVar[Part[SqlExternalWorkers]]" = Part("features.external.sql:SqlExternalWorkers")
    failures: "ClassVar[Part[SqlFailures]]" = Part("features.failures.sql:SqlFailures")
    fetches: "ClassVar[Part[SqlFetches]]" = Part("features.homes.fetches_sql:SqlFetches")
    fleet: "ClassVar[Part[SqlFleet]]" = Part("features.nodes.sql:SqlFleet")
    holds: "ClassVar[Part[SqlHolds]]" = Part("features.holds.sql:SqlHolds")
    homes: "ClassVar[Part[SqlHomes]]" = Part("features.homes.sql:SqlHomes")
    inboxes: "ClassVar[Part[SqlInboxes]]" = Part("features.inboxes.sql:SqlInboxes")
    job_lists: "ClassVar[Part[SqlJobLists]]" = Part("features.jobs.sql:SqlJobLists")
    locks: "ClassVar[Part[SqlLocks]]" = Part("features.locks.sql:SqlLocks")
    node_attempts: "ClassVar[Part[SqlNodeAttempts]]" = Part("features.nodes.recent_sql:SqlNodeAttempts")
    queue_admin: "ClassVar[Part[SqlQueues]]" = Part("features.queues.sql:SqlQueues")
    relatives: "ClassVar[Part[SqlRelatives]]" = Part("features.jobs.relatives_sql:SqlRelatives")
    retention: "ClassVar[Part[SqlRetention]]" = Part("features.retention.sql:SqlRetention")
    saved_filters: "ClassVar[Part[SqlSavedFilters]]" = Part("features.saved_filters.sql:SqlSavedFilters")
    schedules: "ClassVar[Part[SqlSchedules]]" = Part("features.schedules.sql:SqlSchedules")
    sign_in: "ClassVar[Part[SqlSignIn]]" = Part("features.accounts.sign_in_sql:SqlSignIn")
    stack_requests: "ClassVar[Part[SqlStackRequests]]" = Part("features.stacks.sql:SqlStackRequests")
    statistics: "ClassVar[Part[SqlStatistics]]" = Part("features.stats.sql:SqlStatistics")
    throughput_history: "ClassVar[Part[SqlThroughputHistory]]" = Part(
        "features.stats.history_sql:SqlThroughputHistory"
    )
    webhooks: "ClassVar[Part[SqlWebhooks]]" = Part("features.webhooks.sql:SqlWebhooks")


class Store(Kernel, Administration, Parts, Protocol):
    """A whole store: the kernel, administration, and the parts that features bring."""
