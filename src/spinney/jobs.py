"""The public types of jobs, for applications that read jobs from the store or submit them with options.

``Job`` here is the record of a job in the store. The handle that a stage function is called with is another class,
``spinney.Job``. Names are imported from the modules that define them (``_HOMES``) when they are first used.
"""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.define.job.handle import Child
    from spinney.define.job.options import Options
    from spinney.model.jobs import JOB_ID_MAX, PARAMS_MAX_BYTES, Attempt, ChildSummary, Filter, Job
    from spinney.model.outcomes import PASSED, Outcome
    from spinney.model.states import LEASED, SETTLED, State
    from spinney.model.types import INTERNAL, PRIORITIES, Backoff
    from spinney.model.values import names
    from spinney.model.values.paths import job_folder
    from spinney.scheduling.backoff import delay_s

__all__ = [
    "INTERNAL",
    "JOB_ID_MAX",
    "LEASED",
    "PARAMS_MAX_BYTES",
    "PASSED",
    "PRIORITIES",
    "SETTLED",
    "Attempt",
    "Backoff",
    "Child",
    "ChildSummary",
    "Filter",
    "Job",
    "Options",
    "Outcome",
    "State",
    "delay_s",
    "job_folder",
    "names",
]

_HOMES = {
    "spinney.define.job.handle": ("Child",),
    "spinney.define.job.options": ("Options",),
    "spinney.model.jobs": (
        "Attempt",
        "ChildSummary",
        "Filter",
        "JOB_ID_MAX",
        "Job",
        "PARAMS_MAX_BYTES",
    ),
    "spinney.model.outcomes": (
        "Outcome",
        "PASSED",
    ),
    "spinney.model.states": (
        "LEASED",
        "SETTLED",
        "State",
    ),
    "spinney.model.types": (
        "Backoff",
        "INTERNAL",
        "PRIORITIES",
    ),
    "spinney.model.values": ("names",),
    "spinney.model.values.paths": ("job_folder",),
    "spinney.scheduling.backoff": ("delay_s",),
}
__getattr__, __dir__ = on_demand(__name__, _HOMES)
