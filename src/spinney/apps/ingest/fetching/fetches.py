"""All files of a folder: what stands is kept, the rest is tried so many times, named when it is whole."""

import contextlib
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spinney.apps.ingest.fetching import parallel_tasks, partial_files, urls
from spinney.apps.ingest.fetching.errors import Differs, Halted, Trouble
from spinney.apps.ingest.fetching.existing_files import standing
from spinney.apps.ingest.fetching.journal import Entry, Journal
from spinney.apps.ingest.fetching.local_files import copied
from spinney.apps.ingest.fetching.partial_files import Part, Place
from spinney.apps.ingest.fetching.rules import Fetched, FetchFailed, Rules, Surroundings, Wanted
from spinney.apps.ingest.fetching.size_checks import Measure
from spinney.apps.ingest.files import copies, disk_space, paths
from spinney.apps.ingest.files.digests import canonical
from spinney.apps.ingest.files.paths import NotAdmitted
from spinney.jobs import delay_s

if TYPE_CHECKING:
    from spinney.apps.ingest.fetching.http_client import Asker

JOURNAL = "fetched.jsonl"
LOCK = "lock"


def aside_of(folder: Path) -> Path:
    """The folder beside ``folder`` for what is not whole yet; the caller may remove it once all is fetched."""
    return folder.with_name(f"{folder.name}.fetching")


def fetch_all(
    wanted: Sequence[Wanted],
    folder: Path,
    rules: Rules,
    *,
    at_once: int = 4,
    tries: int = 5,
    algorithms: Sequence[str] = ("sha256",),
    sync: bool = True,
    progress: Callable[[int], None] = lambda came_bytes: None,
    stopped: Callable[[], bool] = lambda: False,
    answered: Callable[[str], None] = lambda host: None,
    given: Surroundings | None = None,
) -> list[Fetched]:
    """Fetch files into ``folder``, in the order given; called again it fetches what is missing or wrong.

    What was fetched is durable on return, unless ``sync`` is False: then that is the caller's to see to, as where the
    engine syncs a job's folder before it records the stage.

    ``progress`` gets the bytes that have come since it was called last, ``stopped`` is asked whether to
    end; both are called some times a second, in the caller's thread. A try that failed for a reason that
    may pass is repeated after a rest, ``tries`` times in all; a file of another size or digest than given
    is fetched anew once. A host that does not answer, or falls silent, ends the call at once: the caller
    knows what else there is to do until it is tried again. ``answered`` is called with every host that
    answers, in any thread. The first failure ends the others, whose parts are kept.

    Raises FetchFailed, Stopped; NotAdmitted for an unknown algorithm; NoRoom where the disk is full.
    """
    from spinney.apps.ingest.fetching.http_client import Asker  # with httpx, which is slow to load

    _judge_names(wanted)
    if not wanted:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    aside = aside_of(folder)
    aside.mkdir(exist_ok=True)
    halt = threading.Event()
    surroundings = given or Surroundings()
    with _alone(aside, wanted[0]), Journal(aside / JOURNAL) as journal:
        asker = Asker(rules, halt, surroundings, at_once=at_once, answered=answered)
        fetching = _Fetching(
            folder=folder.resolve(),
            aside=aside,
            rules=rules,
            tries=tries,
            algorithms=tuple(dict.fromkeys(map(canonical, algorithms))),
            halt=halt,
            given=surroundings,
            journal=journal,
            asker=asker,
        )
        try:
            found = parallel_tasks.together(
                wanted, fetching.fetch, at_once=at_once, halt=halt, progress=progress, stopped=stopped
            )
        finally:
            asker.close()
        if sync:
            _sync(folder, wanted)
        _sweep(aside)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fetching:
    """What all files of one call share."""

    folder: Path
    aside: Path
    rules: Rules
    tries: int
    algorithms: tuple[str, ...]
    halt: threading.Event
    given: Surroundings
    journal: Journal
    asker: "Asker"

    def fetch(self, one: Wanted, heard: Callable[[int], None]) -> Fetched:
        try:
            target = self._target(one)
            return self._stands(one, target) or self._named(one, target, self._tried(one, heard))
        except NotAdmitted as error:
            raise _failed(one, str(error), retryable=False) from None
        except OSError as error:
            if disk_space.is_full(error):
                raise disk_space.no_room(self.folder, one.size_bytes or 0) from error
            reason = f"the file system failed ({error.strerror or error}); mend that, then retry"
            raise _failed(one, reason, retryable=True) from error

    def _target(self, one: Wanted) -> Path:
        target = self.folder / one.name
        if "/" not in one.name:
            return target  # nothing lies between it and the folder, which was resolved
        if not target.parent.resolve().is_relative_to(self.folder):
            raise NotAdmitted(f"'{paths.shown(one.name)}' leads out of its folder by a link; remove the link")
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _stands(self, one: Wanted, target: Path) -> Fetched | None:
        entry = self.journal.entries.get(one.name)
        if entry is not None and entry.source != _source(one):
            entry = None
        found = standing(target, one, entry, self._sums_of(one), self.halt)
        if found is None:
            # At once: should fetching fail, nothing may stand there that looks whole.
            target.unlink(missing_ok=True)
        return found

    def _tried(self, one: Wanted, heard: Callable[[int], None]) -> Part:
        measure = Measure(
            size_bytes=one.size_bytes,
            digest=one.digest,
            largest_bytes=self.rules.largest_bytes,
            if_larger=self.rules.if_larger,
        )
        place = Place(
            path=self._part_path(one),
            algorithms=self._sums_of(one),
            rules=self.rules,
            given=self.given,
            halt=self.halt,
        )
        tried, anew = one.tried, False
        while True:
            try:
                return self._once(one, place, measure, heard)
            except Differs as differs:
                partial_files.dropped(place)
                if anew:
                    raise _failed(one, differs.reason, retryable=False) from None
                anew = True
            except Trouble as trouble:
                if trouble.silent:
                    tried += trouble.host not in self.rules.avoided
                    raise _failed(
                        one, trouble.reason, retryable=True, tried=tried, host=trouble.host
                    ) from None
                tried += 1
                if not trouble.retryable:
                    raise _failed(one, trouble.reason, retryable=False) from None
                if tried >= self.tries:
                    reason = f"{trouble.reason} (tried {tried} times)"
                    raise _failed(one, reason, retryable=True, tried=tried) from None
                self._rest(tried, trouble.after_s or 0.0)

    def _once(self, one: Wanted, place: Place, measure: Measure, heard: Callable[[int], None]) -> Part:
        parsed = urls.admitted(one.url)
        if parsed.scheme == "file":
            root, path = urls.beneath(parsed, self.rules.file_roots)
            part = copied(place, _source(one), root, path, measure, heard)
        else:
            from spinney.apps.ingest.fetching.http_files import downloaded

            part = downloaded(self.asker, place, _source(one), one.url, measure, heard)
        try:
            measure.whole(part.size_bytes, part.sums)
        except Differs:
            part.close()
            raise
        return part

    def _rest(self, tried: int, at_least_s: float) -> None:
        rest_s = max(delay_s(self.rules.backoff, tried, self.given.draw()), at_least_s)
        self.given.pause(self.halt, rest_s)
        if self.halt.is_set():
            raise Halted

    def _named(self, one: Wanted, target: Path, part: Part) -> Fetched:
        part.close()
        sums = dict(part.sums)
        entry = Entry(
            name=one.name,
            source=_source(one),
            size_bytes=part.size_bytes,
            sums=sums,
            modified=part.head.modified,
        )
        # Before the name: a name without a line would be fetched again.
        self.journal.add(entry)
        path = self._part_path(one)
        path.replace(target)
        path.with_suffix(".json").unlink(missing_ok=True)
        return Fetched(name=one.name, size_bytes=part.size_bytes, sums=sums, modified=entry.modified_at)

    def _sums_of(self, one: Wanted) -> tuple[str, ...]:
        own = self.algorithms or (() if one.digest else ("sha256",))
        return tuple(dict.fromkeys((*own, one.digest.algorithm))) if one.digest else own

    def _part_path(self, one: Wanted) -> Path:
        return self.aside / f"{_hash(one.name)[:32]}.part"


def _judge_names(wanted: Sequence[Wanted]) -> None:
    """Names lead downward, each to a place of its own. Raises FetchFailed."""
    names: set[str] = set()
    for one in wanted:
        try:
            paths.relative(one.name)
        except NotAdmitted as error:
            raise _failed(one, str(error), retryable=False) from None
        if one.name in names:
            raise _failed(one, "another file of this name is wanted too; give each its own", retryable=False)
        names.add(one.name)
    for one in wanted:
        at = one.name
        while at := at.rpartition("/")[0]:
            if at in names:
                reason = f"its folder '{paths.shown(at)}' is the name of a file too; rename one of them"
                raise _failed(one, reason, retryable=False)


@contextlib.contextmanager
def _alone(aside: Path, first: Wanted) -> Iterator[None]:
    """Two processes that write one part would make a file that neither of them has seen."""
    with (aside / LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = "another process is fetching into its folder; retry when that has ended"
            raise _failed(first, reason, retryable=True) from None
        yield


def _sync(folder: Path, wanted: Sequence[Wanted]) -> None:
    files = [folder / one.name for one in wanted]
    folders = {at for file in files for at in file.parents if at.is_relative_to(folder)}
    copies.sync_together([*files, *folders, folder.parent])


def _sweep(aside: Path) -> None:
    for entry in os.scandir(aside):
        if entry.name not in (JOURNAL, LOCK):
            Path(entry.path).unlink(missing_ok=True)


def _failed(
    one: Wanted, reason: str, *, retryable: bool, tried: int = 0, host: str | None = None
) -> FetchFailed:
    return FetchFailed(
        urls.shown_text(one.url), reason, retryable, name=paths.shown(one.name), tried=tried, host=host
    )


def _source(one: Wanted) -> str:
    return _hash(one.url)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
