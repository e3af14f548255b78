"""The public types of jobs, for applications that read jobs from the store or submit them with options.

``Job`` here is the record of a job in the store. The handle that a stage function is called with is another class,
``spinney.Job``. Names are imported from the modules that define them when they are first used.
"""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.define.job.handle import Child as Child
    from spinney.define.job.handle import LockTaken as LockTaken
    from spinney.define.job.options import Options as Options
    from spinney.model.jobs import JOB_ID_MAX as JOB_ID_MAX
    from spinney.model.jobs import PARAMS_MAX_BYTES as PARAMS_MAX_BYTES
    from spinney.model.jobs import Attempt as Attempt
    from spinney.model.jobs import ChildSummary as ChildSummary
    from spinney.model.jobs import Filter as Filter
    from spinney.model.jobs import Job as Job
    from spinney.model.outcomes import PASSED as PASSED
    from spinney.model.outcomes import Outcome as Outcome
    from spinney.model.states import LEASED as LEASED
    from spinney.model.states import OPEN as OPEN
    from spinney.model.states import SETTLED as SETTLED
    from spinney.model.states import State as State
    from spinney.model.types import INTERNAL as INTERNAL
    from spinney.model.types import PRIORITIES as PRIORITIES
    from spinney.model.types import Backoff as Backoff
    from spinney.model.values import names as names
    from spinney.model.values.paths import job_folder as job_folder
    from spinney.scheduling.backoff import delay_s as delay_s
else:
    __all__, __getattr__, __dir__ = on_demand(
        __name__,
        {
            "spinney.define.job.handle": "Child LockTaken",
            "spinney.define.job.options": "Options",
            "spinney.model.jobs": "Attempt ChildSummary Filter Job JOB_ID_MAX PARAMS_MAX_BYTES",
            "spinney.model.outcomes": "Outcome PASSED",
            "spinney.model.states": "LEASED OPEN SETTLED State",
            "spinney.model.types": "Backoff INTERNAL PRIORITIES",
            "spinney.model.values": "names",
            "spinney.model.values.paths": "job_folder",
            "spinney.scheduling.backoff": "delay_s",
        },
    )
