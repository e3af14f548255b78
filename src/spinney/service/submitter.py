"""Submission: jobs are checked against their types and the caller's rights, and stored in one transaction."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from spinney.define.job.options import Options
from spinney.define.params.schema import checked_text, checker
from spinney.model.access import Role
from spinney.model.errors import DuplicateKey
from spinney.model.jobs import Submission
from spinney.model.rights.actor import Actor
from spinney.model.types import DEFAULT_QUEUE, TypeSpec, known_type
from spinney.service.service import Service
from spinney.service.submission_lines import submissions
from spinney.service.submit_rights import authorized, default_type
from spinney.service.visibility import Visibility
from spinney.store.contract import SubmissionKey, SubmitResult
from spinney.tracing import current

_NO_OPTIONS = Options()


class Submitter(Service):
    """Creates jobs in the caller's name. Jobs are durable when a method returns, and nodes have been woken."""

    def submit(
        self,
        type_: str | None,
        rows: Iterable[Mapping[str, Any]],
        options: Options = _NO_OPTIONS,
        *,
        keys: Iterable[str] | None = None,
        once: SubmissionKey | None = None,
        under: Actor | None = None,
        internal: bool = False,
    ) -> SubmitResult:
        """Submit a job for each dict of parameters, all or none, and return their ids.

        ``type_`` None: the default type of the queue that the options name. ``keys``: a unique key for each job.
        ``once``: an idempotency key, with which the same call may be repeated after any crash. ``under``: each job gets
        a hold of its own in the name and with the reason of this actor (``spinney.features.files.uploads``).
        ``internal``: the caller is code of the application, or has the store itself, and answers for the parameters;
        otherwise jobs of internal types (``TypeSpec.submit``) are refused.

        Raises UsageError (no type, and none by the queue), UnknownType, BadParameters (naming the parameter),
        DuplicateKey, NoSuchJob (a need), Forbidden, Refused (an internal type; a key that belongs to a job that is not
        visible).
        """
        self.require(Role.SUBMITTER, "submit jobs")
        if type_ is None:
            type_ = default_type(self, options.queue or DEFAULT_QUEUE)
        types = self.store.types()
        spec = known_type(types, type_)
        check = checker(spec)
        with current.submission_span(type_):
            texts = [checked_text(type_, spec.schema, row, check) for row in rows]
            made = [options.submission(type_, texts, keys)] if texts else []
            return self._submit(made, types, once, under, internal=internal)

    def submit_lines(
        self,
        lines: Iterable[str | bytes],
        *,
        type_: str | None = None,
        options: Options = _NO_OPTIONS,
        once: SubmissionKey | None = None,
        internal: bool = False,
    ) -> SubmitResult:
        """Submit a job for each line of JSON, all or none, and return their ids; empty lines are skipped.

        With ``type_`` a line is the parameters of a job. Without, it is an object with ``type``, ``params`` and any of
        the options, which win over ``options``; ``at`` is an ISO 8601 text, and in ``needs`` a number ``-k`` means the
        job of the k-th line (empty ones are not counted). A line that names a queue may leave out the type: then the
        job is of the queue's default type. ``once`` and ``internal`` are as in ``submit``.

        Raises what ``submit`` raises, with the number of the line.
        """
        self.require(Role.SUBMITTER, "submit jobs")
        types = self.store.types()
        with current.submission_span(type_):
            made = submissions(lines, types, type_, options, partial(default_type, self))
            return self._submit(made, types, once, internal=internal)

    def _submit(
        self,
        submissions: list[Submission],
        types: Mapping[str, TypeSpec],
        once: SubmissionKey | None,
        under: Actor | None = None,
        *,
        internal: bool,
    ) -> SubmitResult:
        """Store submissions that have been checked, after checking rights, and wake the nodes. A key that belongs to a
        job which is not visible is refused without naming the job."""
        if not submissions:
            return SubmitResult(ids=[])
        todo = authorized(self, submissions, types, internal=internal)
        try:
            done = self.store.submit(todo, once=once, under=under, now_us=self.clock())
        except DuplicateKey as error:
            if self.rights.everywhere:
                raise
            raise Visibility(self.store, self.rights.within).refusal(error) from None
        self.wake_nodes()
        return done
