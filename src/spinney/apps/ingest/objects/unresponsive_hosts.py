"""Hosts that do not answer: one job at a time tries them, the others wait without a slot.

Each such host has a mark, a file in ``home/silent`` with the number of tries in a row that it has not answered, and the
time of the next try. A job that gets no answer writes or raises the mark and waits until that time, as does every job
that reads a mark that is not due. The first job that reads it when it is due claims the try: it moves the mark's time
beyond the longest that a try may take, so that the others continue to wait, and another tries if it dies. An answer
removes the mark.

Marks are changed under a lock of their folder. They are hints, not records: when one is lost the host is tried once
more, and where the file system has no such locks two jobs may try at once.

The encounters of an object are kept in its job's folder, where reading them costs no query: for each host, the number
of tries of its mark at that time, so that the object fails when the host was tried in vain ``downloads.tries`` times
since then, by any job; for each file, how often it was tried.
"""

import fcntl
import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from spinney import Defer, Fail
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.fetch import FetchFailed, RemoteFile, Rules
from spinney.apps.ingest.objects.work import Work
from spinney.files import copies
from spinney.files.paths import shown
from spinney.jobs import Backoff, delay_s

RESTS = Backoff(base_s=10.0, factor=3.0, cap_s=600.0, jitter=0.0)
"""The delays between the tries of a host: longer than those of a file, since no job waits in a slot."""
KEPT = "silent.json"
"""A file in the job's folder: the encounters of this object, as ``hosts`` and ``files``."""
_FILES_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A host that does not answer; times in seconds since the epoch."""

    host: str
    since_s: float
    """The time of the first of these tries, which distinguishes one series of tries from another."""
    tries: int
    """How many in a row had no answer."""
    due_s: float
    """When one job tries the host again."""
    reason: str
    trying: bool = False
    """A job is trying it now."""

    def sentence(self) -> str:
        """Return what users see while jobs wait for the host."""
        next_try = "it is being tried" if self.trying else f"it is tried again at {_when(self.due_s)}"
        times = "once" if self.tries == 1 else f"{self.tries} times"
        tried = f"tried {times} since {_when(self.since_s)}: {self.reason}"
        return f"{shown(self.host)} does not answer ({tried}); {next_try}"


class Marks:
    """The marks of hosts that do not answer, in their folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def all(self) -> dict[str, Mark]:
        """Return the marks of all hosts that do not answer, by host; a file that cannot be read is left out."""
        return {m.host: m for m in map(_read, self._folder.glob("*.json")) if m is not None}

    def of(self, host: str) -> Mark | None:
        """Return the mark of a host; None: it answers, as far as is known."""
        return _read(self._path(host))

    def write(self, mark: Mark) -> None:
        """Write or replace a mark. The caller holds the lock."""
        copies.write_durably(self._path(mark.host), json.dumps(asdict(mark)))

    def remove(self, host: str) -> None:
        """Remove the mark of a host that has answered."""
        if self._path(host).exists():
            with self.locked():
                self._path(host).unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for a change; without effect where the file system has no locks."""
        self._folder.mkdir(exist_ok=True)
        with (self._folder / "lock").open("ab") as lock:
            with suppress(OSError):
                fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
            yield

    def _path(self, host: str) -> Path:
        return self._folder / f"{hashlib.sha256(host.encode()).hexdigest()[:32]}.json"


@contextmanager
def watched(work: Work, hosts: Iterable[str], purpose: str, *, forgiving: bool = False) -> Iterator["Watch"]:
    """Watch these hosts while the block sends requests to them; ``purpose`` names what is requested.

    Raises Defer while one of them does not answer, Fail when it has not for too long, or for another FetchFailed.
    ``forgiving``: a host that has not answered for too long is skipped instead (``skipped``).
    """
    watch = Watch(work, hosts, purpose, forgiving)
    try:
        watch.begin()
        yield watch
        watch.succeeded()
    except FetchFailed as error:
        watch.failed(error)
    finally:
        watch.give_back()


class Watch:
    """The marks and encounters that one attempt knows of the hosts that it sends requests to.

    ``begin`` before the requests; ``answered`` during them, from any thread; then ``succeeded`` or
    ``failed``, and ``give_back`` in any case. ``watched`` calls them in this order.
    """

    def __init__(self, work: Work, hosts: Iterable[str], purpose: str, forgiving: bool) -> None:
        self._work, self._purpose, self._forgiving = work, purpose, forgiving
        self._hosts = set(hosts)
        self._tries = work.settings.downloads.tries
        self._marks = Marks(work.settings.unresponsive_hosts)
        self._claimed: dict[str, tuple[Mark, Mark]] = {}
        """The tries that this attempt has claimed: the mark as it was, and as it is meanwhile."""
        self._marks_at_start: dict[str, Mark] = {}
        self._path = work.job.folder / KEPT
        self._stored: dict[str, Any] = {}
        """The encounters as they are in the file, so that it is written only when they have changed."""
        with suppress(FileNotFoundError):
            self._stored = json.loads(self._path.read_text("utf-8"))
        self._encounters: dict[str, list[float]] = {
            h: list(encounter) for h, encounter in self._stored.get("hosts", {}).items()
        }
        """The encounters by host: the start of its mark, the tries of the mark at the first encounter, and the time of
        that."""
        files = self._stored.get("files", {})
        self._files: dict[str, dict[str, int]] = {purpose_: dict(tries) for purpose_, tries in files.items()}
        self.rules: Rules = work.rules
        """The rules for the requests, with the hosts that they must not try."""
        self.skipped: frozenset[str] = frozenset()
        """The hosts that were tried too often in vain; only where the watch is forgiving."""

    # --- before the requests ------------------------------------------------------------------

    def begin(self) -> None:
        """Claim the tries of marked hosts that are due. Raises Defer where another job waits for or makes the try, Fail
        for a host that was tried in vain too often."""
        now = time.time()
        self._marks_at_start = self._marks.all()
        hosts = sorted(self._marks_at_start.keys() & {*self._hosts, *self._encounters})
        marks = [self._marks_at_start[host] for host in hosts]
        if self._forgiving:
            self.skipped = frozenset(h for h, tried in self._own_tries.items() if tried >= self._tries)
        for mark in marks:
            if self._tries_in_vain(mark, mark.tries) < self._tries:
                continue
            if not self._forgiving:
                self._give_up(mark)
            self.skipped |= {mark.host}
            # Fetching has one more try, for many servers that do not answer HEAD do have the file.
            self._encounters[mark.host][1] = mark.tries - self._tries + 1.0
        requested = [mark for mark in marks if mark.host not in self.skipped]
        if resting := [mark for mark in requested if mark.due_s > now]:
            self._defer(max(resting, key=lambda mark: mark.due_s))
        if requested:
            self._claim([mark.host for mark in requested], now)
        # A host that only a redirect leads to is encountered then, and claimed like the others from then on.
        self.rules = replace(
            self.rules, skipped_hosts=frozenset(self._marks_at_start.keys() - self._claimed.keys())
        )

    def with_tries(self, files: Iterable[RemoteFile]) -> Sequence[RemoteFile]:
        """Return the same files with the number of times that they were tried."""
        return [replace(file, tried=self._own_tries.get(_key(shown(file.name)), 0)) for file in files]

    def _claim(self, hosts: Sequence[str], now: float) -> None:
        """Claim the tries of hosts, for as long as a try may take. Raises Defer where another job was quicker."""
        longest_s = 2 * (self.rules.connect_s + self.rules.read_s)
        with self._marks.locked():
            for host in hosts:
                mark = self._marks.of(host)
                if mark is None:
                    continue
                if mark.due_s > now:
                    self._defer(mark)
                self._claimed[host] = mark, replace(mark, due_s=now + longest_s, trying=True)
                self._marks.write(self._claimed[host][1])

    # --- during and after the requests --------------------------------------------------------

    def answered(self, host: str) -> None:
        """Note that a host has answered. Called from any thread."""
        self._claimed.pop(host, None)
        self._marks.remove(host)

    def succeeded(self) -> None:
        """Forget the encounters with these hosts, since all requests were answered."""
        for host in self._hosts - self.skipped:
            self._encounters.pop(host, None)
        self._files.pop(self._purpose, None)
        self._keep()

    def failed(self, error: FetchFailed) -> NoReturn:
        """End the attempt: Defer until the host is tried again, or Fail."""
        if error.host is None:
            can_pass = error.retryable and error.tried < self._tries
            if not can_pass:
                self._forget()
            raise Fail(
                f"{self._purpose} {error}" if self._purpose == MANIFEST else str(error), retryable=can_pass
            ) from error
        if error.host in self.rules.skipped_hosts:
            mark = self._marks.of(error.host)
            if mark is None:
                raise Defer(1.0, f"{shown(error.host)} answers again") from error
            self._tries_in_vain(mark, mark.tries)
            self._defer(mark)
        tried = error.tried or self._own_tries.get(error.host, 0) + 1
        tries = self._files.setdefault(self._purpose, {})
        tries[_key(error.name) if error.tried else error.host] = tried
        self._files[self._purpose] = dict(list(tries.items())[-_FILES_MAX:])
        mark = self._raise_mark(error.host, error.reason.partition("; ")[0])
        if max(self._tries_in_vain(mark, mark.tries - 1), tried) >= self._tries:
            if not self._forgiving:
                self._give_up(mark, error)
            mark = replace(mark, due_s=time.time())
        self._defer(mark)

    def give_back(self) -> None:
        """Release the tries that were claimed and not used, as when the attempt failed for another reason."""
        for before, claimed in list(self._claimed.values()):
            with self._marks.locked():
                if self._marks.of(before.host) == claimed:
                    self._marks.write(before)

    def _raise_mark(self, host: str, reason: str) -> Mark:
        """Return the host's mark, raised by this try. If several tries failed at once, only the first one counts."""
        with admission():
            self._work.settings.require_home()
        self._claimed.pop(host, None)
        at_start, now = self._marks_at_start.get(host), time.time()
        with self._marks.locked():
            mark = self._marks.of(host)
            if mark is None:
                mark = Mark(host=host, since_s=now, tries=0, due_s=now, reason=reason)
            elif at_start is None or (mark.since_s, mark.tries) != (at_start.since_s, at_start.tries):
                return mark
            tries = mark.tries + 1
            due_s = now + delay_s(RESTS, tries, 0.0)
            mark = replace(mark, tries=tries, due_s=due_s, reason=reason, trying=False)
            self._marks.write(mark)
        return mark

    def _tries_in_vain(self, mark: Mark, base: int) -> int:
        """Return how often its host was tried since the object's first encounter with it; ``base``: the tries of the
        mark at that time, if the first encounter is now."""
        encounter = self._encounters.get(mark.host)
        if encounter is None or encounter[0] != mark.since_s:
            encounter = self._encounters[mark.host] = [
                mark.since_s,
                base,
                time.time() if encounter is None else encounter[2],
            ]
        return mark.tries - int(encounter[1])

    @property
    def _own_tries(self) -> dict[str, int]:
        return self._files.get(self._purpose, {})

    def _defer(self, mark: Mark) -> NoReturn:
        """Wait without a slot until the host of a mark is tried again."""
        self._keep()
        raise Defer(max(0.0, mark.due_s - time.time()), mark.sentence())

    def _give_up(self, mark: Mark, error: FetchFailed | None = None) -> NoReturn:
        """Fail the object, whose host did not answer for too long."""
        _, base, since_s = self._encounters[mark.host]
        tries = max(mark.tries - int(base), 0 if error is None else error.tried)
        self._forget()
        times = "a try" if tries == 1 else f"{tries} tries"
        since = min(since_s, mark.since_s) if base == 0 else since_s
        raise Fail(
            f"{'' if error is None else f'{error.name!r} could not be fetched: '}"
            f"{shown(mark.host)} has not answered {times} since {_when(since)}: {mark.reason}; make it answer, "
            f"then requeue",
            retryable=False,
        ) from error

    def _keep(self) -> None:
        """Write the encounters if they have changed; without any, remove their file."""
        parts = {"hosts": self._encounters, "files": self._files}
        encounters = {name: entries for name, entries in parts.items() if entries}
        if encounters == self._stored:
            return
        if encounters:
            copies.write_durably(self._path, json.dumps(encounters))
        else:
            self._path.unlink(missing_ok=True)
        self._stored = encounters

    def _forget(self) -> None:
        """Forget all encounters, so that an object that is requeued begins with none."""
        self._encounters, self._files = {}, {}
        self._keep()


FILES, MANIFEST, SIZES = "files", "the object manifest", "sizes"
"""What is requested: the tries of each are counted separately."""


def _key(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _read(path: Path) -> Mark | None:
    """Return the mark in a file; None where it is gone or cannot be read, which counts as none."""
    try:
        return Mark(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # it has just been removed, or is no mark


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
