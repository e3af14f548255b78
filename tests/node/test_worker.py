"""What a worker of one attempt at a time does with what it is given. Real processes throughout."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
import pytest_asyncio
from executor_fixtures import HERE, alive, host, shared_host

from spinney import Job, Spinney
from spinney.host import filesystem
from spinney.model.errors import Refused, StaleFence
from spinney.node.worker import result_rows
from spinney.node.worker.attempt_tools import AttemptTools
from spinney.node.worker.failure_frames import FailureFrames
from spinney.node.worker.ports import SerialChannel
from spinney.node.worker.process_state import CallRecorder, ProcessState
from spinney.node.worker.serial_worker import SerialWorker
from spinney.node.worker.stage_runners import StageRunners
from spinney.node.worker.worker import _load
from spinney.node.workers.boundaries import BoundaryWriter, pipe_watch
from spinney.node.workers.shared_page import CELL_RECALL, SharedPage
from spinney.node.workers.stack_dump import StackDump
from spinney.node.workers.stack_memory import StackMemory
from spinney.node.workers.wire import Channel, Decoder, pack

__all__ = ["host", "shared_host"]


@pytest_asyncio.fixture(loop_scope="module")
async def worker(host):
    return host.keep()


async def test_it_introduces_the_application(host):
    worker = host.start()
    await host.until(lambda: host.hellos)
    (hello,) = host.hellos
    assert hello.error is None
    assert [t.name for t in hello.types] == ["sample", "program", "many"]
    assert [(q.name, q.limit) for q in hello.queues] == [("slow", 2)]
    assert [(lock.name, lock.capacity) for lock in hello.locks] == [("disk:*", 100)]
    assert worker.ready


@pytest.mark.parametrize(
    ("app", "reason"),
    [
        ("no_such_module:app", "there is no module 'no_such_module'"),
        ("executor_app:nothing", "has nothing named 'nothing'"),
        ("broken_app:app", "ZeroDivisionError"),
        ("exiting_app:app", "SystemExit"),
    ],
)
def test_an_application_that_cannot_be_loaded_is_told_in_a_sentence(tmp_path, monkeypatch, app, reason):
    (tmp_path / "broken_app.py").write_text("1 / 0\n")
    (tmp_path / "exiting_app.py").write_text("raise SystemExit(4)\n")
    monkeypatch.syspath_prepend(tmp_path)
    there, here = socket.socketpair()
    with there, here:
        assert _load(app, Channel(here), lambda types: lambda: 0) is None
        (message,) = Decoder().feed(there.recv(10_000))
    assert reason in message["hello"]["error"]


async def test_a_worker_that_cannot_load_its_application_ends(host, tmp_path):
    (tmp_path / "exiting_app.py").write_text("raise SystemExit(4)\n")
    worker = host.start(app="exiting_app:app", path=[tmp_path])
    assert (await host.ended(worker)).code == 2
    (hello,) = host.hellos
    assert "SystemExit" in hello.error
    assert not worker.ready


async def test_a_plain_success_is_a_row_of_three(host, worker):
    before_us = time.time_ns() // 1000
    assert await host.run(worker, "noop") is None
    fence, started_us, ended_us = host.rows[1]
    assert fence == 1
    assert before_us <= started_us <= ended_us <= time.time_ns() // 1000
    assert not host.folder(1).exists()
    # In doubt a worker says that there is output, as when the pump is just reading: not of all attempts of a list.
    fences = range(2, 102)
    host.give(worker, "noop", *[(fence, "{}") for fence in fences])
    await host.until(lambda: set(fences) <= set(host.rows))
    assert None in [host.detail(fence) for fence in fences]


async def test_a_list_comes_back_as_lists_in_its_order(host, worker):
    done = worker.page.done()
    host.give(worker, "noop", *[(fence, "{}") for fence in range(1, 1001)])
    await host.until(lambda: len(host.rows) == 1000)
    assert list(host.rows) == list(range(1, 1001))
    assert worker.outstanding == 0
    assert worker.page.done() - done == 1000


async def test_values_travel_as_json_text(host, worker):
    assert await host.run(worker, "value", '{"n": 3}') == {"outcome": "ok", "result": '{"n":3}'}


async def test_a_coroutine_is_awaited(host, worker):
    assert await host.run(worker, "coroutine") == {"outcome": "ok", "result": '"awaited"'}


async def test_what_a_stage_raises_is_its_outcome(host, worker):
    cases = {
        "plain": {"outcome": "error", "message": "no good", "retryable": True},
        "silent": {"outcome": "error", "message": "ValueError"},
        "surrogate": {"outcome": "error", "message": "?"},
        "fail": {"outcome": "error", "message": "gave up", "retryable": False, "code": 7},
        "exit": {"outcome": "error", "message": "the stage called exit (3); return instead, or raise Fail"},
        "interrupt": {"outcome": "error", "message": "the stage was interrupted (SIGINT)"},
        "breakpoint": {
            "outcome": "error",
            "message": "the stage called breakpoint(), and a worker has no terminal; run it with 'spinney debug'",
        },
        "defer": {"outcome": "defer", "message": "later", "delay_s": 90.0, "lane": True},
        "bad-defer": {"outcome": "error", "retryable": False},
        "hold": {"outcome": "hold", "message": "look at this"},
        "na": {"outcome": "not_applicable", "message": "not here"},
        "warn": {"outcome": "warning", "message": "hm", "result": "5"},
        "finish": {"outcome": "finish", "message": "enough", "result": "[1]"},
    }
    for fence, (kind, expected) in enumerate(cases.items(), 1):
        detail = await host.run(worker, "raises", json.dumps({"kind": kind}), fence=fence)
        assert detail.items() >= expected.items(), kind


async def test_an_error_keeps_its_traceback_without_the_engines_frames(host, worker):
    detail = await host.run(worker, "raises", '{"kind": "plain"}')
    error = json.loads(detail["error"])
    assert error["type"] == "ValueError"
    assert error["message"] == "no good"
    _, first_frame, *_ = error["traceback"].splitlines()
    assert "executor_app.py" in first_frame
    assert "/spinney/node/" not in error["traceback"]


async def test_a_value_that_cannot_be_kept_is_an_error_that_no_retry_mends(host, worker):
    cases = {"big": "70002 bytes", "umlauts": "80002 bytes", "object": "cannot be kept as JSON"}
    for fence, (kind, message) in enumerate(cases.items(), 1):
        detail = await host.run(worker, "result", json.dumps({"kind": kind}), fence=fence)
        assert detail["outcome"] == "error"
        assert message in detail["message"]
        assert detail["retryable"] is False


async def test_a_stage_that_the_code_no_longer_has_is_held(host, worker):
    detail = await host.run(worker, "vanished")
    assert detail["outcome"] == "hold"
    assert "restart the node" in detail["message"]


# --- the handle ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("code", "a code that is no integer from 1"),
        ("wide", "a code that is no integer from 1"),
        ("text", "a code that is no integer from 1"),
        ("speechless", "stage 'raises_oddly' ended with cannot be recorded"),
        ("name", "surrogates"),
    ],
)
async def test_what_cannot_be_told_is_an_error_of_its_attempt_alone(host, worker, kind, reason):
    """Given a stage that raises what no message can hold, then its attempt ends as an error that
    nobody tries again, and the worker goes on."""
    detail = await host.run(worker, "raises_oddly", json.dumps({"kind": kind}))
    assert (detail["outcome"], detail["retryable"]) == ("error", False)
    assert re.search(reason, detail["message"])
    assert await host.run(worker, "noop", fence=2) is None
    assert worker.alive


def test_a_row_that_cannot_be_packed_takes_none_of_its_neighbours_with_it():
    """Given rows of which one cannot be packed, when they are sent, then each attempt is told of."""
    sent = []

    def send(message):
        pack(message)
        sent.extend(message["done"])

    result_rows.ResultSender().send(
        send, [[1, 5, 6], [2, 5, 6, {"outcome": "ok", "result": object()}], [3, 5, 6]]
    )
    assert [row[0] for row in sent] == [1, 2, 3]
    assert (sent[1][3]["outcome"], sent[1][3]["retryable"]) == ("error", False)
    assert "cannot be recorded" in sent[1][3]["message"]


@pytest.mark.parametrize("busy", [True, False])
async def test_the_handle_of_an_ended_attempt_does_nothing_in_the_name_of_the_next(host, tmp_path, busy):
    # Given an attempt that has ended, whose handle a thread of the application still has
    use, outcome_file, go = tmp_path / "use", tmp_path / "said", tmp_path / "go"
    worker = host.start(app="late_app:app")
    params = json.dumps({"file": str(use), "note_in": str(outcome_file)})
    await host.run(worker, "hands_its_handle_on", params, fence=1, type_="hands_its_handle_on")
    # And the next attempt, of which cancellation was requested, or none
    if busy:
        host.give(worker, "waits", (2, json.dumps({"file": str(go)})), type_="waits")
        await host.until(lambda: host.printed(2))
        worker.request_cancel(2)
    # When the thread uses the handle
    use.touch()
    await host.until(outcome_file.exists)
    # Then it is refused, and was not cancelled
    assert outcome_file.read_text() == "False StaleFence StaleFence StaleFence"
    assert host.requests == []
    # And the worker goes on with its next attempt
    go.touch()
    if busy:
        await host.until(lambda: 2 in host.rows)
        assert host.detail(2)["result"] == "true"
    assert (await host.run(worker, "waits", json.dumps({"file": str(go)}), fence=3, type_="waits"))[
        "result"
    ] == "false"


def watch_of_nothing() -> int:
    """What a worker inherits, for one whose output is not looked at."""
    with pipe_watch(()) as watch:
        return os.dup(watch.fileno())


def test_an_attempt_whose_row_cannot_be_sent_is_still_on_the_page(tmp_path):
    """Given a worker that dies of telling, then its page says that the attempt had begun."""
    page = SharedPage.create(tmp_path / "page")

    class Port(SerialChannel):
        def send(self, message):
            raise ConnectionError("dies")

    there, here = socket.socketpair()
    with there, here:
        serial = SerialWorker(
            Port(Channel(here), page),
            AttemptTools(
                page=page,
                marker=BoundaryWriter(page, b"t" * 16, watch_of_nothing()),
                stages=StageRunners({}),
                frames=FailureFrames(str(tmp_path), {}, most_bytes=0, depth=4),
                stacks=StackDump(StackMemory().fd),
                folder_root=str(tmp_path),
            ),
        )
        there.sendall(pack({"run": [["gone", "stage", [[7, 7, 1, "{}", None, 7]]]]}))
        serial._done = [[n, 1, 2] for n in range(200)]  # so many that the next is told at once
        with pytest.raises(ConnectionError):
            serial.run(ProcessState(CallRecorder(), signals=True))
    assert [line.fence for line in page.running()] == [7]


def test_its_disk_is_synced_by_what_was_opened_before_it_wrote(tmp_path, monkeypatch):
    """Given a stage that writes, then a failure to write back since it began is told to what its disk is synced by."""
    open_files, by = [], []
    (tmp_path / ".spinney-token").touch()

    def links():
        return {
            int(file.name): str(file.readlink()) for file in Path("/proc/self/fd").iterdir() if file.exists()
        }

    application = Spinney()

    @application.job
    def writing(job: Job) -> None:
        open_files.append(links())
        (job.folder / "file").write_text("kept")

    class Port(SerialChannel):
        def send(self, message):
            there.shutdown(socket.SHUT_RDWR)  # that is all

    monkeypatch.setattr(filesystem, "is_worth_it", lambda device: True)
    monkeypatch.setattr(filesystem, "sync_whole", lambda fd: by.append(fd))
    page = SharedPage.create(tmp_path / "page")
    there, here = socket.socketpair()
    with there, here:
        serial = SerialWorker(
            Port(Channel(here), page),
            AttemptTools(
                page=page,
                marker=BoundaryWriter(page, b"t" * 16, watch_of_nothing()),
                stages=StageRunners(application.types),
                frames=FailureFrames(str(tmp_path), application.types, most_bytes=0, depth=4),
                stacks=StackDump(StackMemory().fd),
                folder_root=str(tmp_path),
            ),
        )
        there.sendall(pack({"run": [["writing", "writing", [[7, 7, 1, "{}", None, 7]]]]}))
        serial.run(ProcessState(CallRecorder(), signals=True))
    assert open_files[0][by[0]] == str(tmp_path)
    assert str(tmp_path) not in links().values()


async def test_directory_and_input_are_what_they_were_for_the_next_attempt(host, worker, tmp_path):
    before = await host.run(worker, "where", fence=1)
    await host.run(worker, "moves", json.dumps({"to": str(tmp_path)}), fence=2)
    await host.run(worker, "meddles", '{"how": "silent-close-input"}', fence=3)
    assert await host.run(worker, "where", fence=4) == before


async def test_a_hello_that_cannot_be_read_is_told_in_a_sentence(host, tmp_path):
    """Given an application whose type has an isolation that nobody knows, then the worker is ended
    and the reason said."""
    (tmp_path / "odd_app.py").write_text(
        "from spinney import Spinney\n"
        "from spinney.model.types import TypeSpec\n"
        "app = Spinney()\n"
        "@app.job\n"
        "def noop() -> None: pass\n"
        "to_json = TypeSpec.to_json\n"
        "def odd(spec):\n"
        "    told = to_json(spec)\n"
        "    told['stages'][0]['isolation'] = 'nowhere'\n"
        "    return told\n"
        "TypeSpec.to_json = odd\n"
    )
    worker = host.start(app="odd_app:app", path=[tmp_path])
    assert (await host.ended(worker)).signal == "SIGKILL"
    (hello,) = host.hellos
    assert hello.error.startswith("the worker cannot serve: ")
    assert "nowhere" in hello.error
    assert not worker.ready


async def test_the_handle_asks_the_supervisor(host, worker):
    host.answers = {"get_data": {"a": 1}, "data_names": ["a"]}
    detail = await host.run(worker, "handle", '{"p": [1]}', fence=9)
    assert json.loads(detail["result"]) == {
        "ids": [9, 9],
        "fence": 9,
        "stage": "handle",
        "data": {"a": 1},
        "params": {"p": [1]},
    }
    assert host.requests[0] == ("put_data", {"target": 9, "name": "a", "value": "1"})


async def test_the_handle_may_be_used_by_several_threads(host, worker):
    host.answers = {"append_data": 1}
    assert await host.run(worker, "handle_in_threads") is None
    assert sorted(args["value"] for _, args in host.requests) == [str(n) for n in range(8)]


async def test_a_forked_process_may_not_use_the_handle(host, worker):
    detail = await host.run(worker, "handle_in_fork")
    assert detail["result"] == "1"
    assert host.requests == []
    assert "works only in the process" in host.printed(1, "stderr")


async def test_a_refusal_is_raised_in_the_attempt(host, worker):
    for fence, error in enumerate((Refused("not now; wait"), StaleFence(5, 1), OSError("strange")), 1):
        host.answers = {"get_data": None, "put_data": error}
        detail = await host.run(worker, "handle", fence=fence)
        assert detail["outcome"] == "error"
        assert detail["message"] == str(error)
        expected = type(error).__name__ if not isinstance(error, OSError) else "SpinneyError"
        assert json.loads(detail["error"])["type"] == expected


async def test_a_taken_lock_ends_the_attempt_as_locked(host, worker):
    host.answers = {"take_lock": False}
    detail = await host.run(worker, "takes_lock")
    assert detail["outcome"] == "locked"
    assert detail["lock"] == "the place"
    assert "wanted" not in detail

    detail = await host.run(worker, "takes_much", fence=2)
    assert (detail["lock"], detail["wanted"]) == ("disk:1", [60, 90])


async def test_work_that_arrives_during_a_request_is_not_lost(host, worker):
    host.answers = {"get_data": {}, "put_data": ...}
    host.give(worker, "handle", (1, "{}"))
    await host.until(lambda: host.requests)
    host.give(worker, "noop", (2, "{}"))
    host.answers["put_data"] = None
    worker.answer(host.number, None)
    await host.until(lambda: len(host.rows) == 2)


# --- handing back ----------------------------------------------------------------------------------


async def test_a_recall_brings_back_what_has_not_begun_and_what_was_kept_back(host, worker, tmp_path):
    """Given a list whose quick jobs are followed by a long one, when it is recalled, then the rest
    comes back and the quick ones are reported, while the long one runs on."""
    await host.until(lambda: worker.ready)
    go = tmp_path / "go"
    long = [50, 50, 1, json.dumps({"file": str(go)}), None, 50]
    quick = [[f, f, 1, "{}", None, f] for f in range(1, 11)]
    rest = [[f, f, 1, "{}", None, f] for f in range(60, 64)]
    host.stages[50] = (50, "wait_for")
    worker.send_run([("sample", "noop", quick), ("sample", "wait_for", [long]), ("sample", "noop", rest[:2])])
    worker.send_run([("sample", "noop", rest[2:])])
    await host.until(lambda: worker.page.fence() == 50)
    worker.recall()
    await host.until(lambda: len(host.returned) == 2 and len(host.rows) == 10)
    assert set(host.returned) == {60, 61}
    assert worker.page.fence() == 50

    go.touch()
    await host.until(lambda: len(host.returned) == 4 and 50 in host.rows)
    assert set(host.returned) == {60, 61, 62, 63}
    assert worker.outstanding == 0


async def test_what_a_worker_has_not_read_is_taken_back_without_its_help_and_never_runs(
    host, worker, tmp_path
):
    """Given a list that arrives while an attempt runs, when everything is recalled, then it is known at the second
    look that nothing of it will begin, and what the worker says of it later is no news."""
    go = tmp_path / "go"
    host.give(worker, "wait_for", (50, json.dumps({"file": str(go)})))
    await host.until(lambda: worker.page.fence() == 50)
    host.give(worker, "noop", (60, "{}"), (61, "{}"))
    assert (worker.blocking_fence(), worker.blocking_fence()) == (0, 0)

    worker.recall()
    assert (worker.blocking_fence(), worker.blocking_fence()) == (0, 50)
    worker.take_back([60, 61])
    assert worker.outstanding == 1
    host.give(worker, "noop", (62, "{}"))
    assert worker.blocking_fence() == 0

    go.touch()
    await host.until(lambda: 62 in host.rows)
    assert (set(host.rows), host.returned, worker.outstanding) == ({50, 62}, [], 0)


async def test_a_recall_is_seen_between_attempts_without_any_signal(host, worker, tmp_path):
    await host.until(lambda: worker.ready)
    go = tmp_path / "go"
    host.give(worker, "wait_for", (1, json.dumps({"file": str(go)})), (2, "{}"), (3, "{}"))
    await host.until(lambda: worker.page.fence() == 1)
    worker.page.cells[CELL_RECALL] = worker._lists
    go.touch()
    await host.until(lambda: len(host.returned) == 2 and 1 in host.rows)
    assert await host.run(worker, "noop", fence=4) is None


async def test_what_is_sent_after_a_recall_is_run(host, worker):
    await host.run(worker, "noop", fence=1)
    worker.recall()
    assert await host.run(worker, "noop", fence=2) is None
    assert host.returned == []


async def test_quick_rows_behind_which_a_long_attempt_runs_are_fetched(host, worker, tmp_path):
    go = tmp_path / "go"
    host.stages[9] = (9, "wait_for")
    quick = [[f, f, 1, "{}", None, f] for f in range(1, 6)]
    long = [9, 9, 1, json.dumps({"file": str(go)}), None, 9]
    worker.send_run([("sample", "noop", quick), ("sample", "wait_for", [long])])
    await host.until(lambda: len(host.rows) == 5)
    assert 9 not in host.rows
    go.touch()
    await host.until(lambda: 9 in host.rows)


async def test_end_finishes_what_was_begun_and_hands_back_the_rest(host, worker, tmp_path):
    go = tmp_path / "go"
    host.give(worker, "wait_for", (1, json.dumps({"file": str(go)})), (2, "{}"))
    await host.until(lambda: worker.page.fence() == 1)
    worker.end()
    go.touch()
    how = await host.ended(worker)
    assert (how.code, how.running) == (0, ())
    assert host.detail(1)["result"] == '"seen"'
    assert host.returned == [2]


# --- promises --------------------------------------------------------------------------------------


async def test_what_a_stage_wrote_in_its_folder_is_kept(host, worker):
    detail = await host.run(worker, "writes", fence=1270)
    assert json.loads(detail["result"]) == str(host.folder(1270))
    assert (host.folder(1270) / "sub" / "file.txt").read_text() == "kept"


@pytest.mark.parametrize("how", ["child", "daemon"])
async def test_an_attempt_has_ended_when_no_descendant_of_it_is_left(host, worker, tmp_path, how):
    """Given a stage that leaves a process behind, when its row comes, then that process is gone,
    and the worker ends with what it still had handed back."""
    file = tmp_path / "pid"
    host.give(worker, "leaves", (1, json.dumps({"file": str(file), "how": how})), (2, "{}"))
    await host.until(lambda: 1 in host.rows)
    assert not alive(int(file.read_text()))
    # In doubt a worker says that there is output, as when the pump is just reading.
    assert host.detail(1) in (None, {"outcome": "ok", "output": True})
    how_ended = await host.ended(worker)
    assert how_ended.code == 0
    assert host.returned == [2]


@pytest.mark.parametrize("how", ["return", "raise"])
async def test_a_forked_child_that_comes_back_does_not_become_a_second_worker(host, worker, how):
    detail = await host.run(worker, "fork", json.dumps({"how": how}))
    assert detail["result"] == '"parent"'
    assert await host.run(worker, "noop", fence=2) is None
    assert ("in the child" in host.printed(1, "stderr")) == (how == "raise")


async def test_cancelled_turns_true_for_that_attempt(host, worker, tmp_path):
    file = tmp_path / "begun"
    host.give(worker, "watch", (1, json.dumps({"file": str(file)})))
    await host.until(lambda: file.exists() and file.read_text())
    worker.request_cancel(1)
    await host.until(lambda: 1 in host.rows)
    assert host.detail(1)["result"] == '"heard"'


async def test_it_ends_with_its_supervisor(tmp_path):
    """Given a supervisor that is killed, when nobody else does anything, then its worker is gone."""
    code = (
        "import asyncio, pathlib, sys\n"
        "from executor_fixtures import host_in\n"
        "async def main():\n"
        "    async with host_in(pathlib.Path(sys.argv[1])) as host:\n"
        "        worker = host.start()\n"
        "        await host.until(lambda: worker.ready)\n"
        "        print(worker.pid, flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join((str(HERE), os.environ.get("PYTHONPATH", "")))}
    supervisor = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(tmp_path), stdout=asyncio.subprocess.PIPE, env=env
    )
    assert supervisor.stdout is not None
    worker = int(await supervisor.stdout.readline())
    assert alive(worker)
    supervisor.send_signal(signal.SIGKILL)
    await supervisor.wait()
    async with asyncio.timeout(10):
        while alive(worker):  # noqa: ASYNC110 - another process's end, told by no event
            await asyncio.sleep(0.01)


async def test_user_code_sees_nothing_of_the_handover(host, worker):
    detail = await host.run(worker, "environment")
    assert not any(name.startswith("SPINNEY_WORKER") for name in json.loads(detail["result"]))


async def test_a_worker_imports_no_database_and_no_command_line(host, worker):
    detail = await host.run(worker, "modules")
    assert "spinney.app.application" in json.loads(detail["result"])
    assert not {"sqlalchemy", "alembic", "typer", "rich"} & set(json.loads(detail["result"]))
