"""What a stage holds in its hand.

``handle`` the Job · ``data`` its entries and folder · ``log`` its logger · ``options`` how a job is
submitted or spawned beside its parameters · ``port`` the requests to the engine behind it.
"""

from spinney.define.job.handle import Assignment, Cancelled, Child, Job, LockTaken, Port, Submittable

__all__ = ["Assignment", "Cancelled", "Child", "Job", "LockTaken", "Port", "Submittable"]
