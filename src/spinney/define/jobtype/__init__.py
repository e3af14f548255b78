"""How functions and programs become job types: ``job_types`` the types, ``stage`` their stages, ``functions``
what may be called as one."""

from spinney.define.jobtype.job_types import ConfiguredJob, JobType, Pipeline

__all__ = ["ConfiguredJob", "JobType", "Pipeline"]
