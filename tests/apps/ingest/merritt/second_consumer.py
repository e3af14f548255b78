"""A consumer of jobs written from the layout's description alone: one process, one job at a time.

    python -m apps.ingest.merritt.second_consumer HOSTS NOTES

It takes pending jobs, and those that it left in a later state when it was killed: those without a lock that no consumer
of Spinney has marked. Each step is noted in a file, so that the test sees who did what."""

import fcntl
import json
import signal
import sys
import time
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError

STEPS = [
    "Pending",
    "Estimating",
    "Provisioning",
    "Downloading",
    "Processing",
    "Storing",
    "Recording",
    "Notify",
    "Completed",
]


def main(hosts: str, notes: str) -> None:
    zk = KazooClient(hosts, timeout=4.0)
    zk.start(timeout=20)
    ended: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))

    def note(what: str, job: str) -> None:
        with Path(notes).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(f"{what} {job}\n")

    def status(job: str) -> dict[str, object]:
        return json.loads(zk.get(f"/jobs/{job}/status")[0])

    def move(job: str, before: dict[str, object], state: str) -> None:
        priority = int(zk.get(f"/jobs/{job}/priority")[0])
        bid = zk.get(f"/jobs/{job}/bid")[0].decode()
        old, lists = str(before["status"]), f"/batches/{bid}/states"
        fields = {**before, "status": state, "last_successful_status": old}
        together = zk.transaction()
        together.set_data(f"/jobs/{job}/status", json.dumps(fields).encode())
        together.create(f"/jobs/states/{state.lower()}/{priority:02d}-{job}")
        together.delete(f"/jobs/states/{old.lower()}/{priority:02d}-{job}")
        if state == "Completed":
            zk.ensure_path(f"{lists}/batch-completed")
            together.create(f"{lists}/batch-completed/{job}")
            together.delete(f"{lists}/batch-processing/{job}")
        results = together.commit()
        assert not any(isinstance(each, Exception) for each in results), results

    def marked() -> set[str]:
        return {
            job
            for node in zk.get_children("/spinney/nodes")
            for job in zk.get_children(f"/spinney/nodes/{node}")
        }

    def take() -> str | None:
        for state in reversed(STEPS[:-1]):
            for name in sorted(zk.get_children(f"/jobs/states/{state.lower()}")):
                job = name.partition("-")[2]
                if zk.exists(f"/jobs/{job}/lock") or (state != "Pending" and job in marked()):
                    continue
                try:
                    zk.create(f"/jobs/{job}/lock", ephemeral=True)
                except (NodeExistsError, NoNodeError):
                    continue
                if status(job)["status"] == state and (state == "Pending" or job not in marked()):
                    return job
                zk.delete(f"/jobs/{job}/lock")
        return None

    while not ended:
        job = take()
        if job is None:
            time.sleep(0.05)
            continue
        note("begin", job)
        while (now := status(job))["status"] != "Completed":
            move(job, now, STEPS[STEPS.index(str(now["status"])) + 1])
        note("end", job)
        zk.delete(f"/jobs/{job}/lock")
    zk.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
