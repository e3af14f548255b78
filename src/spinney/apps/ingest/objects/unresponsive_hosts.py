"""Hosts that do not answer: one job at a time tries them, the others rest without a slot.

A mark each in ``home/silent`` says how many tries in a row a host has not answered, and when it is tried next. Who was
not answered makes or raises the mark and rests until then, as does everybody who comes to a mark that is not due. The
first that finds it due takes the try: it moves the mark's time behind the longest that a try may be silent, so that the
others go on resting, and if it dies another one tries after that. An answer removes the mark.

Marks are changed under a lock of their folder. They are hints and no records: when one is lost the host is tried once
more, and where the file system has no such locks two jobs may try at once.

What an object has met is kept in its job's folder, where to look for it costs no question: of each host, at how many
tries of its mark, so that the object fails when the host was tried in vain ``downloads.tries`` times since then, by
whomever; of each file, how often it was tried.
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
from spinney.apps.ingest.fetching import FetchFailed, Rules, Wanted
from spinney.apps.ingest.files import copies
from spinney.apps.ingest.files.paths import shown
from spinney.apps.ingest.objects.work import Work
from spinney.jobs import Backoff, delay_s

RESTS = Backoff(base_s=10.0, factor=3.0, cap_s=600.0, jitter=0.0)
"""Between the tries of a host: longer than those of a file, since nobody waits in a slot."""
KEPT = "silent.json"
"""In the job's folder: ``hosts`` and ``files`` that this object has met."""
_FILES_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A host that does not answer; times in seconds since the epoch."""

    host: str
    since_s: float
    """Of the first of these tries, by which one row of tries is told from another."""
    tries: int
    due_s: float
    reason: str
    trying: bool = False

    def sentence(self) -> str:
        then = "it is being tried" if self.trying else f"it is tried again at {_when(self.due_s)}"
        times = "once" if self.tries == 1 else f"{self.tries} times"
        return f"{shown(self.host)} does not answer (tried {times} since {_when(self.since_s)}: {self.reason}); {then}"


class Marks:
    """The folder of marks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def all(self) -> dict[str, Mark]:
        return {m.host: m for m in map(_read, self._folder.glob("*.json")) if m is not None}

    def of(self, host: str) -> Mark | None:
        return _read(self._path(host))

    def write(self, mark: Mark) -> None:
        copies.write_durably(self._path(mark.host), json.dumps(asdict(mark)))

    def remove(self, host: str) -> None:
        if self._path(host).exists():
            with self.alone():
                self._path(host).unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        self._folder.mkdir(exist_ok=True)
        with (self._folder / "lock").open("ab") as lock:
            with suppress(OSError):
                fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
            yield

    def _path(self, host: str) -> Path:
        return self._folder / f"{hashlib.sha256(host.encode()).hexdigest()[:32]}.json"


@contextmanager
def watched(at: Work, hosts: Iterable[str], asks: str, *, forgiving: bool = False) -> Iterator["Watch"]:
    """While these hosts are asked, for what ``asks`` names. Raises Defer while one of them is silent, Fail when it was
    for too long, or for what else FetchFailed says; ``forgiving``: then it is not asked any more (``unasked``)."""
    watch = Watch(at, hosts, asks, forgiving)
    try:
        watch.begin()
        yield watch
        watch.done()
    except FetchFailed as error:
        watch.failed(error)
    finally:
        watch.give_back()


class Watch:
    """What one attempt knows of the hosts that it asks."""

    def __init__(self, at: Work, hosts: Iterable[str], asks: str, forgiving: bool) -> None:
        self._at, self._asks, self._forgiving = at, asks, forgiving
        self._hosts = set(hosts)
        self._tries = at.settings.downloads.tries
        self._marks = Marks(at.settings.silent)
        self._taken: dict[str, tuple[Mark, Mark]] = {}
        """The tries that are this attempt's: the mark as it was, and as it is meanwhile."""
        self._seen: dict[str, Mark] = {}
        self._kept = at.job.folder / KEPT
        self._before = _met_before(self._kept)
        self._met: dict[str, list[float]] = {h: list(met) for h, met in self._before.get("hosts", {}).items()}
        """A host: since when its mark stood, at how many tries it was met, and when."""
        files = self._before.get("files", {})
        self._files: dict[str, dict[str, int]] = {asked: dict(found) for asked, found in files.items()}
        self.rules: Rules = at.rules
        self.unasked: frozenset[str] = frozenset()

    # --- before -------------------------------------------------------------------------------

    def begin(self) -> None:
        now = time.time()
        self._seen = self._marks.all()
        mine = [self._seen[host] for host in sorted({*self._hosts, *self._met}) if host in self._seen]
        if self._forgiving:
            self.unasked = frozenset(h for h, tried in self._own.items() if tried >= self._tries)
        for mark in mine:
            if self._in_vain(mark, mark.tries) < self._tries:
                continue
            if not self._forgiving:
                self._give_up(mark)
            self.unasked |= {mark.host}
            # Fetching has one try more, for many a server that leaves HEAD unanswered has the file.
            self._met[mark.host][1] = mark.tries - self._tries + 1.0
        asked = [mark for mark in mine if mark.host not in self.unasked]
        if resting := [mark for mark in asked if mark.due_s > now]:
            self._rest(max(resting, key=lambda mark: mark.due_s))
        if asked:
            self._take([mark.host for mark in asked], now)
        # Where a redirect leads there, it is met, and tried in turn from then on.
        self.rules = replace(self.rules, avoided=frozenset(self._seen.keys() - self._taken.keys()))

    def wanted(self, files: Iterable[Wanted]) -> Sequence[Wanted]:
        """The same, with how often they were tried."""
        return [replace(one, tried=self._own.get(_key(shown(one.name)), 0)) for one in files]

    def _take(self, hosts: Sequence[str], now: float) -> None:
        longest_s = 2 * (self.rules.connect_s + self.rules.read_s)
        with self._marks.alone():
            for host in hosts:
                mark = self._marks.of(host)
                if mark is None:
                    continue
                if mark.due_s > now:
                    self._rest(mark)
                self._taken[host] = mark, replace(mark, due_s=now + longest_s, trying=True)
                self._marks.write(self._taken[host][1])

    # --- meanwhile, and behind ----------------------------------------------------------------

    def answered(self, host: str) -> None:
        """In any thread."""
        self._taken.pop(host, None)
        self._marks.remove(host)

    def done(self) -> None:
        for host in self._hosts - self.unasked:
            self._met.pop(host, None)
        self._files.pop(self._asks, None)
        self._keep()

    def failed(self, error: FetchFailed) -> NoReturn:
        if error.host is None:
            can_pass = error.retryable and error.tried < self._tries
            if not can_pass:
                self._forget()
            raise Fail(
                f"{self._asks} {error}" if self._asks == MANIFEST else str(error), retryable=can_pass
            ) from error
        if error.host in self.rules.avoided:
            mark = self._marks.of(error.host)
            if mark is None:
                raise Defer(1.0, f"{shown(error.host)} answers again") from error
            self._in_vain(mark, mark.tries)
            self._rest(mark)
        tried = error.tried or self._own.get(error.host, 0) + 1
        own = self._files.setdefault(self._asks, {})
        own[_key(error.name) if error.tried else error.host] = tried
        self._files[self._asks] = dict(list(own.items())[-_FILES_MAX:])
        mark = self._raised(error.host, error.reason.partition("; ")[0])
        if max(self._in_vain(mark, mark.tries - 1), tried) >= self._tries:
            if not self._forgiving:
                self._give_up(mark, error)
            mark = replace(mark, due_s=time.time())
        self._rest(mark)

    def give_back(self) -> None:
        """The tries that it came to need no more, as when it failed for something else."""
        for before, meanwhile in list(self._taken.values()):
            with self._marks.alone():
                if self._marks.of(before.host) == meanwhile:
                    self._marks.write(before)

    def _raised(self, host: str, reason: str) -> Mark:
        """The host's mark behind this try; of several that failed at once only the first counts."""
        with admission():
            self._at.settings.require_home()
        self._taken.pop(host, None)
        seen, now = self._seen.get(host), time.time()
        with self._marks.alone():
            mark = self._marks.of(host)
            if mark is None:
                mark = Mark(host=host, since_s=now, tries=0, due_s=now, reason=reason)
            elif seen is None or (mark.since_s, mark.tries) != (seen.since_s, seen.tries):
                return mark
            tries = mark.tries + 1
            due_s = now + delay_s(RESTS, tries, 0.0)
            mark = replace(mark, tries=tries, due_s=due_s, reason=reason, trying=False)
            self._marks.write(mark)
        return mark

    def _in_vain(self, mark: Mark, base: int) -> int:
        """How often its host was tried since this object met it; ``base``: at how many tries, if that is now."""
        met = self._met.get(mark.host)
        if met is None or met[0] != mark.since_s:
            met = self._met[mark.host] = [mark.since_s, base, time.time() if met is None else met[2]]
        return mark.tries - int(met[1])

    @property
    def _own(self) -> dict[str, int]:
        return self._files.get(self._asks, {})

    def _rest(self, mark: Mark) -> NoReturn:
        self._keep()
        raise Defer(max(0.0, mark.due_s - time.time()), mark.sentence())

    def _give_up(self, mark: Mark, error: FetchFailed | None = None) -> NoReturn:
        _, base, since_s = self._met[mark.host]
        tries = max(mark.tries - int(base), 0 if error is None else error.tried)
        self._forget()
        times = "a try" if tries == 1 else f"{tries} tries"
        since = min(since_s, mark.since_s) if base == 0 else since_s
        raise Fail(
            f"{'' if error is None else f'{error.name!r} could not be fetched: '}"
            f"{shown(mark.host)} has not answered {times} since {_when(since)}: {mark.reason}; see to it that it "
            f"answers, then requeue",
            retryable=False,
        ) from error

    def _keep(self) -> None:
        kept = {name: found for name, found in (("hosts", self._met), ("files", self._files)) if found}
        if kept == self._before:
            return
        if kept:
            copies.write_durably(self._kept, json.dumps(kept))
        else:
            self._kept.unlink(missing_ok=True)
        self._before = kept

    def _forget(self) -> None:
        """Who is sent back begins anew."""
        self._met, self._files = {}, {}
        self._keep()


FILES, MANIFEST, SIZES = "files", "the object manifest", "sizes"
"""What is asked for: the tries of each count apart."""


def _key(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _read(path: Path) -> Mark | None:
    try:
        return Mark(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # it has just gone, or is none of ours


def _met_before(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return found


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
