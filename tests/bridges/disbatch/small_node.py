"""A Disbatch node written from the protocol's description alone: one process, one task at a time.

    python -m bridges.disbatch.small_node URL DATABASE NAME NOTES

It counts behind its claim, and gives back what exceeds a limit, as a node must whose limits are to hold always."""

import fcntl
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from pymongo import MongoClient

SORTS = {"fifo": [("_id", 1)], "lifo": [("_id", -1)]}


def main(url: str, database: str, name: str, notes: str) -> None:
    tasks, ended = MongoClient(url)[database]["tasks"], []
    db = tasks.database
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))

    def note(what: str, task: object) -> None:
        with Path(notes).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(f"{time.time():.6f} {what} {task}\n")

    def running(queue: dict[str, object]) -> int:
        return tasks.count_documents({"queue": queue["_id"], "status": {"$in": [-1, 0]}})

    while not ended:
        now = datetime.now(UTC)
        db["nodes"].update_one({"node": name}, {"$set": {"timestamp": now}}, upsert=True)
        for queue in db["queues"].find({"plugin": "Disbatch::Plugin::Demo"}):
            if running(queue) >= queue["threads"]:
                continue
            task = tasks.find_one_and_update(
                {"node": None, "status": -2, "queue": queue["_id"]},
                {"$set": {"node": name, "status": -1, "mtime": now}},
                sort=SORTS.get(queue.get("sort")),
            )
            if task is None:
                continue
            mine = {"_id": task["_id"], "node": name}
            if running(queue) > queue["threads"]:
                tasks.update_one(mine | {"status": -1}, {"$set": {"node": None, "status": -2}})
                continue
            tasks.update_one(mine, {"$set": {"status": 0, "mtime": now}})
            note("begin", task["_id"])
            note("end", task["_id"])
            result = {
                "status": 1,
                "stdout": "small",
                "stderr": "",
                "complete": True,
                "mtime": datetime.now(UTC),
            }
            tasks.update_one(mine, {"$set": result})
        time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
