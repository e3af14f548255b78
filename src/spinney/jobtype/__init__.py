"""How functions and programs become job types: ``kinds`` the types, ``stage`` their stages, ``functions``
what may be called as one."""

from spinney.jobtype.kinds import JobType, Order, Pipeline

__all__ = ["JobType", "Order", "Pipeline"]
