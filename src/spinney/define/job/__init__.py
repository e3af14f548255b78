"""The handle that a stage gets.

``handle`` the Job · ``data`` its data and folder · ``log`` its logger · ``options`` the options of a submission or
spawn · ``port`` the requests of the handle to the engine."""

from spinney.define.job.handle import Assignment, Cancelled, Child, Job, LockTaken, Port, Submittable

__all__ = ["Assignment", "Cancelled", "Child", "Job", "LockTaken", "Port", "Submittable"]
