"""Where a job's folder lies below the folder root: spread, so that no directory holds millions."""


def relative(job_id: int) -> str:
    """The folder of a job, relative to the root: ``00/00/12/000000001270`` for job 1270.

    A directory of the last level holds at most a hundred jobs, one above it a hundred of those.
    """
    return f"{job_id // 10**6:02d}/{job_id // 10**4 % 100:02d}/{job_id // 100 % 100:02d}/{job_id:012d}"
