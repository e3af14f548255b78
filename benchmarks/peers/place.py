"""A peer at work: its program as a submitter and as a worker, with a store of its own, and the records of its jobs."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.catalogue import NODE, OWN, Peer

BUILD = Path(os.environ.get("PEERS_BUILD", "build/peers")).absolute()
"""Where ``make bench-peers`` installs the peers."""
PROGRAMS = Path(__file__).parent / "programs"
PATIENCE_S = 300
_LOOK_S = 0.005
_RECORD = struct.Struct("<qqq")
"""As ``programs/peer_program.py`` writes it: tag, and when the job began and ended, in ns."""


class PeerFailed(Exception):
    """A program of a peer did not do what it was asked."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one peer is measured once."""

    peer: Peer
    folder: Path
    store: str

    def prepare(self) -> None:
        """Make the peer's tables."""
        (self.folder / "records").touch()
        (self.folder / "spinney.toml").write_text('[spinney]\nfolders = "folders"\n')
        self.call("prepare")

    def call(self, verb: str) -> str:
        """Run the program with this verb; what it printed."""
        try:
            done = subprocess.run(
                self._command(verb),
                cwd=self.folder,
                env=self._environment(),
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
            )
        except OSError as error:
            raise PeerFailed(f"{error.strerror}: {error.filename}") from None
        if done.returncode:
            raise PeerFailed((done.stderr.strip().splitlines() or ["it printed no reason"])[-1])
        return done.stdout

    def versions(self) -> dict[str, str]:
        """Of the libraries with which the program runs."""
        versions: dict[str, str] = json.loads(self.call("versions"))
        return versions

    @contextmanager
    def submitter(self) -> Iterator["Submitter"]:
        """A process that submits."""
        with self._process("submit", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            yield Submitter(process, self._last_words)

    @contextmanager
    def worker(self, case: str) -> Iterator[subprocess.Popen[bytes]]:
        """A process that runs jobs."""
        with self._process("work", case, stdout=subprocess.DEVNULL) as process:
            yield process

    def records(self) -> list[tuple[int, int, int]]:
        """Tag, begin and end of every job that has run."""
        data = (self.folder / "records").read_bytes()
        return list(_RECORD.iter_unpack(data[: len(data) // _RECORD.size * _RECORD.size]))

    def wait_for(self, count: int, worker: subprocess.Popen[bytes]) -> None:
        """Until so many jobs have run."""
        end = time.monotonic() + PATIENCE_S
        while (ran := (self.folder / "records").stat().st_size // _RECORD.size) < count:
            if worker.poll() is not None:
                raise PeerFailed(f"its worker ended: {self._last_words()}")
            if time.monotonic() > end:
                raise PeerFailed(f"{ran} of {count} jobs ran within {PATIENCE_S} s: {self._last_words()}")
            time.sleep(_LOOK_S)

    def _command(self, *words: str) -> list[str]:
        program = PROGRAMS / self.peer.program
        if self.peer.runs_in == NODE:
            return ["node", str(program), *words]
        interpreter = sys.executable if self.peer.runs_in == OWN else str(BUILD / "venv" / "bin" / "python")
        return [interpreter, str(PROGRAMS / "peer_program.py"), program.stem, *words]

    def _environment(self) -> dict[str, str]:
        path = str(PROGRAMS)
        if self.peer.runs_in == OWN:
            path += f":{os.environ.get('PYTHONPATH', '')}"
        ours = {
            "PEER_STORE": self.store,
            "PEER_LOG": str(self.folder / "records"),
            "PEER_MODULES": str(BUILD),
            "XDG_RUNTIME_DIR": str(self.folder),  # where Spinney's node would leave a folder in /tmp
            "PYTHONPATH": path,
        }
        return os.environ | ours

    @contextmanager
    def _process(self, *words: str, **streams: int) -> Iterator[subprocess.Popen[bytes]]:
        """Its processes make a group, of which none is left at the end."""
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                self._command(*words),
                cwd=self.folder,
                env=self._environment(),
                stderr=log,
                start_new_session=True,
                **streams,  # type: ignore[call-overload]
            )
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _last_words(self) -> str:
        return "; ".join((self.folder / "log").read_text(errors="replace").strip().splitlines()[-2:])


class Submitter:
    """The other end of a process that submits."""

    def __init__(self, process: subprocess.Popen[bytes], last_words: Callable[[], str]) -> None:
        """``last_words``: what the process has written to its log last."""
        self._process, self._last_words = process, last_words

    def bulk(self, count: int, *, seconds: float = 0.0, tag: int = 0) -> float:
        """Submit so many jobs; the seconds that it took."""
        return self._ask(f"bulk {count} {seconds} {tag}")

    def singly(self, count: int, gap_s: float) -> None:
        """Submit so many jobs one by one, each tagged with the time in ns."""
        self._ask(f"singly {count} {gap_s}")

    def wait_for_none(self) -> None:
        """Until the peer has recorded all jobs as done."""
        end = time.monotonic() + PATIENCE_S
        while self._ask("left"):
            if time.monotonic() > end:
                raise PeerFailed("jobs have run and are not recorded as done")
            time.sleep(_LOOK_S)

    def _ask(self, line: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed(f"its submitter ended: {self._last_words()}") from None
        answer = self._process.stdout.readline()
        if not answer:
            raise PeerFailed(f"its submitter ended: {self._last_words()}")
        return float(answer)
