"""The rule of the doctor for the tree of links to the folders of jobs (``spinney.folders.views``).

Nodes keep the tree a moment behind the store, so that only a deep examination looks at it, and at each link twice."""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from spinney.features.doctor.checks import Check, Violation
from spinney.folders.views import ViewLink, ViewTree, view_path
from spinney.model.errors import StoreUnusable
from spinney.model.jobs import Filter, Job
from spinney.model.rights.actor import Actor
from spinney.store.parts import Store

RULE = "view-link"
_ABOUT = "Each job with a folder has its link in the views, and no other (with --deep)."
_OFFER = "places or removes the link"
_STEP = 500
"""How many links or folders are compared with their jobs in one query."""


class ViewCheck:
    """Examines the views of one folder root, where there are any: a ``Checker`` like the store's own doctor.

    It goes through the tree twice: every link must lead to where its job stands, and every job with a folder
    must have its link. A mismatch is reported only if a second look at the job, a moment later, finds it as
    well: a node may just have been about to move the link.
    """

    def __init__(self, root: Path, store: Store) -> None:
        self._tree, self._store = ViewTree(root), store

    def checks(self) -> Sequence[Check]:
        """Return the one rule over links."""
        return [Check(rule=RULE, about=_ABOUT, repairs=True)]

    def examine(
        self, only: Collection[str] | None = None, *, deep: bool = False, now_us: int
    ) -> Iterator[Violation]:
        """Yield each link that is wrong or missing, if ``deep`` or when the rule is named in ``only``; nothing where
        there is no tree of links."""
        if not (deep if only is None else RULE in only) or not self._tree.exists():
            return
        subjects: Iterator[ViewLink | int] = chain(self._tree.links(), self._tree.job_ids())
        while part := list(islice(subjects, _STEP)):
            jobs = self._jobs({_job_id(subject) for subject in part})
            for subject in part:
                if self._violation(subject, jobs) is not None:
                    later = self._violation(subject, self._jobs({_job_id(subject)}))
                    if later is not None:
                        yield later

    def repair(self, violation: Violation, actor: Actor, *, now_us: int) -> bool:
        """Set or remove the link of a job as its state now wants it, and return whether anything was changed. Raises
        StoreUnusable when the system refuses."""
        if violation.rule != RULE:
            return False
        job_id, path = violation.facts["job"], violation.facts["link"]
        links = [] if path is None else [ViewLink(path, job_id)]
        try:
            changed = self._tree.mend(links, self._jobs({job_id}))
        except OSError as error:
            raise StoreUnusable(
                f"{violation.subject} cannot be repaired: {error.strerror or error}; see that the views are yours and "
                f"writable, and try again"
            ) from error
        if changed:
            self._store.doctor.noted(violation, actor, now_us=now_us)
        return changed > 0

    def _jobs(self, job_ids: set[int]) -> dict[int, Job]:
        """Return the jobs with these ids that exist, by id."""
        jobs = self._store.jobs(Filter(ids=tuple(job_ids)), limit=len(job_ids))
        return {job.id: job for job in jobs}

    def _violation(self, subject: ViewLink | int, jobs: dict[int, Job]) -> Violation | None:
        """Return the violation of one link, or of the job of one folder (given by its id) whose link is
        missing; None: all is well."""
        job_id = _job_id(subject)
        job = jobs.get(job_id)
        link: str | None = None
        if isinstance(subject, ViewLink):
            if not self._tree.wrong(subject, job):
                return None
            link = subject.path
            sentence = f"the link {link} does not match the state of its job"
        else:
            path = None if job is None else view_path(job)
            if path is None or self._tree.is_right(path, job_id) or not self._tree.has_folder(job_id):
                return None
            sentence = f"the link {path} is missing, or leads elsewhere"
        return Violation(
            rule=RULE,
            subject=f"job {job_id}",
            sentence=sentence,
            repair=_OFFER,
            facts={"job": job_id, "link": link},
        )


def _job_id(subject: ViewLink | int) -> int:
    return subject.job_id if isinstance(subject, ViewLink) else subject
