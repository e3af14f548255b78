"""A page of the jobs that fit a filter."""

from pydantic import Field

from spinney.commands.fields import PAGE, PAGE_MAX
from spinney.commands.job_filter import JobFilter


class JobListRequest(JobFilter):
    """A page of those."""

    newest: bool = Field(default=True, description="The newest first; false: the oldest.")
    after: int = Field(default=0, ge=0, le=2**62, description="`next` of the page before.")
    limit: int = Field(default=PAGE, ge=1, le=PAGE_MAX, description="How many at most.")
