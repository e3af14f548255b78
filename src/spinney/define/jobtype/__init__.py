"""How functions and programs become job types: ``job_types`` has the types, ``stage`` their stages, ``functions``
checks which functions may be stages."""

from spinney.define.jobtype.job_types import ConfiguredJob, JobType, Pipeline, SubmittableType

__all__ = ["ConfiguredJob", "JobType", "Pipeline", "SubmittableType"]
