"""How functions and programs become job types: ``kinds`` the types, ``stage`` their stages."""

from spinney.jobtype.kinds import JobType, Order, Pipeline

__all__ = ["JobType", "Order", "Pipeline"]
