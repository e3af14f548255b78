"""An ingest service with a store and folders of its own, as a consumer of Merritt's queue: real processes."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cli.shell import Shell
from spinney.apps.ingest.manifests import PayloadKind, Row, write
from spinney.bridges.merritt import Batch, MerrittQueue
from waiting import until

DEADLINE_S = 90.0


class IngestService:
    """``start``, ``kill``, ``stop`` it however often you like."""

    def __init__(self, place: Path, hosts: str, name: str, *, settings: str = "", poll: str = "0.2s") -> None:
        self.place, self.hosts, self.name, self.queue = place, hosts, name, place.parent / "queue"
        (place / "profiles").mkdir(parents=True)
        self.queue.mkdir(exist_ok=True)
        (place / "ingest.toml").write_text(
            f'home = "{place}"\nfile_roots = ["{self.queue}"]\n[storage.main]\nurl = "{place}/archive"\n'
            '[minters.main]\nnaan = "99999"\nshoulder = "fk4"\n'
        )
        (place / "profiles" / "maps.toml").write_text('collection = "maps"\n')
        (place / "merritt.toml").write_text(
            f'queue = "{self.queue}"\nsession = "4s"\npoll = "{poll}"\n{settings}'
        )
        self._own = {"SPINNEY_INGEST": str(place / "ingest.toml"), "MERRITT_ZOOKEEPER": hosts}
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("SPINNEY_", "MERRITT_"))
        } | self._own
        self.processes: list[subprocess.Popen[bytes]] = []
        self.spinney("init")
        self.spinney("ingest", "init")

    def spinney(self, *words: str, code: int | None = 0) -> str:
        """What it told; it must end with that code, if any."""
        result = Shell(self.place).call(*words, **self._own)
        assert code in (None, result.returncode), (words, result.stdout, result.stderr)
        return result.stdout + result.stderr

    def start(self, *options: str, slots: int = 1) -> None:
        """``slots``: each costs a worker, which has much to import."""
        words = ["merritt", "run", "--name", self.name, "--slots", str(slots), *options]
        with (self.place / "log").open("ab") as log:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "spinney", *words],
                    cwd=self.place,
                    env=self.environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def kill_bridge(self) -> None:
        """End the bridge alone without a warning; its node works on."""
        self.processes[-1].kill()
        self.processes[-1].wait()

    def kill(self) -> None:
        """End the bridge and the node and all that they run, without a warning."""
        process = self.processes[-1]
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        process = self.processes[-1]
        process.terminate()
        assert process.wait(DEADLINE_S) == 0, self.log()

    def log(self) -> str:
        return (self.place / "log").read_text()

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
                process.wait(DEADLINE_S)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the node of a bridge that was killed

    def submit(self, queue: MerrittQueue, objects: int, *, missing: int = 0) -> Batch:
        """Put a batch into the queue as Merritt's services do: a manifest of objects of one file each.

        ``missing``: of so many the file is not there."""
        bid = f"bid-{uuid.uuid4()}"
        folder = self.queue / bid
        folder.mkdir()
        rows = []
        for number in range(objects):
            file = folder / f"{number}.txt"
            if number >= missing:
                file.write_text(f"{bid} {number}\n")
            rows.append(Row(url=file.as_uri(), name=file.name))
        with (folder / "batch.checkm").open("wb") as stream:
            write(rows, PayloadKind.SINGLE_FILE_BATCH_MANIFEST, stream)
        return queue.batches.create(
            {
                "batchID": bid,
                "profile": "maps",
                "submitter": "ann",
                "filename": "batch.checkm",
                "type": "single-file-batch-manifest",
            }
        )

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs of the store, the latest first."""
        return [json.loads(line) for line in self.spinney("list", "--json").splitlines()]

    def wait_for_look(self) -> None:
        """Wait until the bridge has begun to look at the queue anew, and has looked."""
        for _ in range(2):  # the first time may be of a look that has begun before
            before = self._looked_us()
            self.until("a look", lambda before=before: self._looked_us() != before)

    def _looked_us(self) -> int:
        (bridge,) = (json.loads(line) for line in self.spinney("bridges", "--json").splitlines())
        return int(bridge["seen_us"])

    @contextmanager
    def standing_still(self, queue: str) -> Iterator[None]:
        """Jobs stand still in this queue."""
        self.until(f"the queue {queue} to be known", lambda: queue in self.spinney("queues"))
        self.spinney("queue", queue, "--limit", "0")
        try:
            yield
        finally:
            self.spinney("queue", queue, "--limit", "declared")

    def until(self, what: str, look: Callable[[], Any], deadline_s: float = DEADLINE_S) -> Any:
        """Return what ``look`` returns, as soon as it is true."""
        return until(look, lambda: f"{what}\n{self.log()[-4000:]}", deadline_s)
