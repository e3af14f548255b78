"""Fetches all files into a folder: existing files are kept, the others are tried several times, and named once they
are whole."""

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from spinney.apps.ingest.fetch import partial_files, urls
from spinney.apps.ingest.fetch.downloads import copy_file, download
from spinney.apps.ingest.fetch.errors import Differs, Halt, TryFailed
from spinney.apps.ingest.fetch.http_client import HttpClient
from spinney.apps.ingest.fetch.journal import Journal, existing_file
from spinney.apps.ingest.fetch.parallel_tasks import ParallelTasks
from spinney.apps.ingest.fetch.partial_files import Part, WantedFile
from spinney.apps.ingest.fetch.rules import Fetched, FetchFailed, RemoteFile, Rules
from spinney.files import copies, disk_space, paths
from spinney.files.digests import canonical
from spinney.files.paths import NotAdmitted
from spinney.jobs import delay_s

JOURNAL = "fetched.jsonl"
"""The journal in the folder of incomplete files."""
LOCK = "lock"
"""The lock file there; like the journal, it is kept when a call ends."""


def aside_of(folder: Path) -> Path:
    """Return the folder beside ``folder`` for incomplete files; the caller may remove it once all are fetched."""
    return folder.with_name(f"{folder.name}.fetching")


def forget(folder: Path) -> None:
    """Have the next call fetch anew all files whose digest is not given, since their sources may have changed."""
    (aside_of(folder) / JOURNAL).unlink(missing_ok=True)


def fetch_all(
    files: Sequence[RemoteFile],
    folder: Path,
    rules: Rules,
    *,
    at_once: int = 4,
    tries: int = 5,
    algorithms: Sequence[str] = ("sha256",),
    sync: bool = True,
    progress: Callable[[int], None] = lambda received_bytes: None,
    stopped: Callable[[], bool] = lambda: False,
    answered: Callable[[str], None] = lambda host: None,
) -> list[Fetched]:
    """Fetch files into ``folder``, in the order given; a repeated call fetches those that are missing or wrong.

    The files are durable on return, unless ``sync`` is False: then the caller has to sync them, as where the
    engine syncs a job's folder before it records the stage.

    ``progress`` gets the bytes that were received since its last call, ``stopped`` returns whether to stop; both are
    called some times a second, in the caller's thread. A try that failed for a temporary reason is repeated after a
    delay, ``tries`` times in all; a file of another size or digest than given is fetched again once. A host that does
    not answer, or stops sending, ends the call at once, so that the caller can do other work until it is tried again.
    ``answered`` is called with every host that answers, in any thread. The first failure ends the others, whose parts
    are kept.

    Raises FetchFailed, Stopped; NotAdmitted for an unknown algorithm, and for names that do not lead downward, each
    to a place of its own; NoRoom where the disk is full, OSError where it is read-only; UsageError while a folder for
    ``file:`` URLs is missing or empty.
    """
    for file in files:
        paths.relative(file.name)
    paths.require_apart(file.name for file in files)
    if not files:
        return []
    aside = aside_of(folder)
    for path in (folder, aside):
        path.mkdir(parents=True, exist_ok=True)
    halt = Halt()
    client = HttpClient(rules, halt, at_once=at_once, answered=answered)
    with _locked(aside, files[0]), closing(Journal(aside / JOURNAL)) as journal:
        with closing(client):
            call = _FetchCall(
                folder=folder.resolve(),
                aside=aside,
                rules=rules,
                tries=tries,
                algorithms=tuple(dict.fromkeys(map(canonical, algorithms))),
                halt=halt,
                journal=journal,
                client=client,
                is_new={p.name for p in aside.iterdir()} == {JOURNAL, LOCK} and not any(folder.iterdir()),
            )
            fetched = ParallelTasks(
                files, call.fetch, at_once=at_once, halt=halt, progress=progress, stopped=stopped
            ).run()
        if sync:
            _sync(folder, files)
        _sweep(aside)
    return fetched


@dataclass(frozen=True, slots=True, kw_only=True)
class _FetchCall:
    """The data that all files of one call share."""

    folder: Path
    aside: Path
    rules: Rules
    tries: int
    algorithms: tuple[str, ...]
    halt: Halt
    journal: Journal
    client: HttpClient
    is_new: bool
    """Whether no earlier call has left a file: then none is looked for, which would take as long as writing one."""

    def fetch(self, file: RemoteFile, count_bytes: Callable[[int], None]) -> Fetched:
        """Return a file that has its final name, fetched unless the right one is there. Raises FetchFailed, NoRoom,
        Halted; OSError where the disk is read-only."""
        try:
            wanted = self._wanted(file, count_bytes)
            existing = None if self.is_new else self._existing(wanted)
            return existing or self._give_name(wanted, self._fetch_part(wanted))
        except NotAdmitted as error:
            raise _failed(file, str(error), retryable=False) from None
        except OSError as error:
            if disk_space.is_full(error):
                raise disk_space.no_room(self.folder, file.size_bytes or 0) from error
            if error.errno == errno.EROFS:
                raise
            reason = f"the file system failed ({error.strerror or error}); repair it, then retry"
            raise _failed(file, reason, retryable=True) from error

    def _wanted(self, file: RemoteFile, count_bytes: Callable[[int], None]) -> WantedFile:
        """Return a file as its tries need it. The algorithms are those of the caller and that of the given digest, and
        at least one."""
        algorithms = (*self.algorithms, *([file.digest.algorithm] if file.digest else []))
        return WantedFile(
            file=file,
            source=_hash(file.url),
            target=self._target(file),
            path=self.aside / f"{_hash(file.name)[:32]}.part",
            algorithms=tuple(dict.fromkeys(algorithms)) or ("sha256",),
            rules=self.rules,
            halt=self.halt,
            is_new=self.is_new,
            count_bytes=count_bytes,
        )

    def _target(self, file: RemoteFile) -> Path:
        """Return the final path of a file, whose folder is made. Raises NotAdmitted where a link leads elsewhere."""
        target = self.folder / file.name
        if "/" not in file.name:
            return target  # directly in the folder, which was resolved
        if not target.parent.resolve().is_relative_to(self.folder):
            raise NotAdmitted(
                f"'{paths.shown(file.name)}' leads out of its folder by a link; remove the link"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _existing(self, wanted: WantedFile) -> Fetched | None:
        """Return the file that an earlier call fetched; None: there is none, or not the right one, which is
        removed."""
        existing = existing_file(wanted, self.journal)
        if existing is None:
            # Before fetching: if that fails, no wrong file may be left under the final name.
            wanted.target.unlink(missing_ok=True)
        return existing

    def _fetch_part(self, wanted: WantedFile) -> Part:
        """Return a complete part with the right size and digest, open.

        A try that failed for a temporary reason is repeated up to ``tries`` times, one with other content
        once, and one without an answer not at all. ``file.tried`` counts tries of earlier calls. Raises
        FetchFailed for the last of them.
        """
        file = wanted.file
        tried, is_second = file.tried, False
        while True:
            try:
                return self._try_once(wanted)
            except Differs as differs:
                partial_files.remove_part(wanted)
                if is_second:
                    raise _failed(file, differs.reason, retryable=False) from None
                is_second = True
            except TryFailed as failure:
                if failure.unresponsive:
                    tried += failure.host not in self.rules.skipped_hosts
                    raise _failed(
                        file, failure.reason, retryable=True, tried=tried, host=failure.host
                    ) from None
                tried += 1
                if not failure.retryable:
                    raise _failed(file, failure.reason, retryable=False) from None
                if tried >= self.tries:
                    reason = f"{failure.reason} (tried {tried} times)"
                    raise _failed(file, reason, retryable=True, tried=tried) from None
                self._pause(tried, failure.after_s or 0.0)
            wanted = replace(wanted, is_new=False)

    def _try_once(self, wanted: WantedFile) -> Part:
        """Try once to get a whole file with the right size and digest. Raises TryFailed, Differs,
        NotAdmitted, OSError, Halted."""
        parsed = urls.admitted(wanted.file.url)
        if parsed.scheme == "file":
            part = copy_file(wanted, *urls.beneath(parsed, self.rules.file_roots))
        else:
            part = download(self.client, wanted)
        try:
            wanted.check_whole(part.size_bytes, part.sums)
        except Differs:
            part.close()
            raise
        return part

    def _pause(self, tried: int, at_least_s: float) -> None:
        """Wait before the next try, as long as the backoff or the server asks. Raises Halted."""
        rest_s = max(delay_s(self.rules.backoff, tried, self.rules.draw()), at_least_s)
        self.rules.pause(self.halt, rest_s)
        self.halt.check()

    def _give_name(self, wanted: WantedFile, part: Part) -> Fetched:
        """Enter a complete part in the journal and rename it to its final name."""
        part.close()
        fetched = wanted.fetched(part.size_bytes, part.sums)
        # Before the name: a name without a line would be fetched again.
        self.journal.add(fetched)
        part.path.replace(wanted.target)
        return fetched


@contextmanager
def _locked(aside: Path, first: RemoteFile) -> Iterator[None]:
    """Lock the folder: two processes that write the same part would corrupt it."""
    with (aside / LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = "another process is fetching into its folder; retry when that has ended"
            raise _failed(first, reason, retryable=True) from None
        yield


def _sync(folder: Path, remote_files: Sequence[RemoteFile]) -> None:
    """Make the files and all folders up to the one above ``folder`` durable, each once."""
    local_paths = [folder / file.name for file in remote_files]
    folders = {parent for path in local_paths for parent in path.parents if parent.is_relative_to(folder)}
    copies.sync_together([*local_paths, *folders, folder.parent])


def _sweep(aside: Path) -> None:
    """Remove the parts and marks that are left, such as those of a file that an earlier call gave up."""
    for entry in os.scandir(aside):
        if entry.name not in (JOURNAL, LOCK):
            Path(entry.path).unlink(missing_ok=True)


def _failed(
    file: RemoteFile, reason: str, *, retryable: bool, tried: int = 0, host: str | None = None
) -> FetchFailed:
    """Return the failure of a file; its URL is shown without credentials and query."""
    return FetchFailed(
        urls.shown_text(file.url), reason, retryable, name=paths.shown(file.name), tried=tried, host=host
    )


def _hash(text: str) -> str:
    """Return the SHA-256 of a text. Marks and the journal have it in place of a file's URL, which may contain a
    signature, and the name of a part in place of the file's name."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
