"""The application: declaring, submitting to its store, being loaded by name."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import job_verbs
from spinney import Job, Spinney, SpinneyError, load_app
from spinney.model.errors import BadParameters, NoSuchJob, UnknownType, UsageError
from spinney.model.jobs import Filter
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.model.values.paths import socket_name
from spinney.wakeup.local import bound_socket


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Spinney]:
    from spinney.store.sql import open_store

    url = f"sqlite:///{tmp_path}/jobs.db"
    store = open_store(url)
    store.create()
    store.close()
    app = Spinney(url)
    yield app
    app.close()


# --- declaring ---------------------------------------------------------------------------------


def test_one_function_is_a_job_type_with_one_stage() -> None:
    app = Spinney()

    @app.job
    def resize(picture: Path, width: int = 200) -> str:
        """Make a picture small.

        With more to say.
        """
        return f"{picture} {width}"

    spec = app.types["resize"].spec
    assert [s.name for s in spec.stages] == ["resize"]
    assert spec.description == "Make a picture small."
    assert resize(Path("a"), width=3) == "a 3", "called like a function it is the function"
    assert resize.__name__ == "resize"


def test_a_queue_gives_its_name_for_stages() -> None:
    app = Spinney()
    slow = app.queue("slow", limit=2, order="fifo")

    @app.job(queue=slow)
    def work() -> None: ...

    assert app.queues[0].limit == 2
    assert work.spec.stages[0].queue == "slow"
    assert work.spec.queue is None, "so that a subjob goes there whatever queue its parent is in"
    with pytest.raises(UsageError, match="declared twice"):
        app.queue("slow")


def test_two_types_of_one_name_are_refused() -> None:
    app = Spinney()
    app.pipeline("deposit")
    with pytest.raises(UsageError, match="two job types are named 'deposit'"):
        app.pipeline("deposit")


# --- submitting --------------------------------------------------------------------------------


def test_a_submitted_job_is_in_the_store_with_its_options(app: Spinney) -> None:
    @app.job
    def resize(picture: Path, width: int = 200) -> None: ...

    by_handle = resize.submit(picture=Path("cat.jpg"), width="5")
    by_name = app.submit("resize", picture="dog.jpg")
    with_options = resize.options(priority=7, collection="pets").options(needs=[by_name]).submit(picture="x")

    assert app.job_info(by_handle).params == {"picture": "cat.jpg", "width": 5}
    assert app.job_info(by_handle).state is State.PENDING
    job = app.job_info(with_options)
    assert (job.priority, job.collection, job.waits_for) == (7, "pets", "needs")


def test_a_wrong_parameter_is_refused_by_name_and_nothing_is_stored(app: Spinney) -> None:
    @app.job
    def resize(picture: Path, width: int = 200) -> None: ...

    resize.submit(picture="first")
    with pytest.raises(
        BadParameters, match=r"^job type 'resize': there is no parameter 'widht' \(did you mean 'width'\?\)"
    ):
        resize.submit(picture="cat.jpg", widht=5)
    with pytest.raises(
        BadParameters, match="job 3 of the list: parameter 'width' must be a whole number, not 'x'"
    ):
        resize.submit_many([{"picture": "a"}, {"picture": "b"}, {"picture": "c", "width": "x"}])

    with app._use_store() as (store, _):
        assert len(store.jobs(Filter())) == 1


def test_many_jobs_are_accepted_in_order_with_a_key_each(app: Spinney) -> None:
    @app.job
    def count(n: int) -> None: ...

    ids = count.submit_many(({"n": n} for n in range(2500)), keys=(f"k{n}" for n in range(2500)))

    assert ids == sorted(ids)
    assert len(set(ids)) == 2500
    last = app.job_info(ids[-1])
    assert (last.params, last.key) == ({"n": 2499}, "k2499")
    assert count.submit_many([]) == []
    with pytest.raises(
        BadParameters, match="parameters are wrong: each job needs a dict of them, and this is a str"
    ):
        count.submit_many({"n": 1})  # type: ignore[arg-type]


def test_parameters_that_are_no_dict_are_refused_alike_where_one_is_a_secret(app: Spinney) -> None:
    @app.job
    def login(password: SecretStr) -> None: ...

    with pytest.raises(BadParameters, match="parameters are wrong: each job needs a dict") as caught:
        login.submit_many(["correct horse"])  # type: ignore[list-item]
    assert "horse" not in str(caught.value)


def test_an_unknown_type_is_refused_with_the_known_ones(app: Spinney) -> None:
    app.pipeline("deposit")
    with pytest.raises(UnknownType, match=r"'depsit' .*\(did you mean 'deposit'\?\); .*use one of: deposit$"):
        app.submit("depsit")


def test_a_parameter_without_its_name_is_refused_in_words_of_jobs(app: Spinney) -> None:
    @app.job
    def double(unnamed: int) -> None: ...

    for submit in (double.submit, double.options(priority=3).submit, partial(app.submit, double)):
        with pytest.raises(UsageError, match="given by name"):
            submit(1)  # type: ignore[arg-type]
        assert app.job_info(submit(unnamed=2)).params == {"unnamed": 2}


def test_a_submitter_does_not_replace_what_a_node_registered(app: Spinney) -> None:
    newer = Spinney(app.settings.store)

    @newer.job(name="resize", description="newer")
    def resize_new(n: int, how: str = "fast") -> None: ...

    @app.job
    def resize(n: int) -> None: ...

    newer.submit("resize", n=1)
    resize.submit(n=2)
    with app._use_store() as (store, _):
        assert store.types()["resize"].description == "newer"
    newer.close()


def test_an_application_is_introduced_to_a_store_before_its_first_job(app: Spinney) -> None:
    from spinney.store.sql import open_store

    app.program("copies", ["true"], queue=app.queue("disk", limit=2))
    with closing(open_store(app.settings.store)) as store:
        assert app.introduce(store) == {"copies"}
        assert (set(store.types()), store.queues()["disk"].limit) == ({"copies"}, 2)

        app.queue("late")
        assert app.introduce(store) == {"copies"}
        assert "late" not in store.queues(), "the types are there already, and are their nodes' to replace"


def test_waiting_gives_up_in_time_and_says_where_the_job_stands(app: Spinney) -> None:
    @app.job
    def work() -> None: ...

    job_id = work.submit()
    with pytest.raises(TimeoutError, match=f"job {job_id} is still pending after 0.01 s"):
        app.wait(job_id, timeout=0.01)
    for timeout in ("0.01s", timedelta(milliseconds=10)):
        with pytest.raises(TimeoutError, match=r"after 0\.01 s"):
            app.wait(job_id, timeout=timeout)
    with pytest.raises(UsageError, match="timeout: 'soon' is no length of time"):
        app.wait(job_id, timeout="soon")
    with pytest.raises(NoSuchJob):
        app.wait(job_id + 1)


@pytest.mark.parametrize("several", [[1, 2], "1", 2**70, True])
def test_what_is_no_number_of_a_job_is_refused(app: Spinney, several: Any) -> None:
    for ask in (app.wait, app.job_info, app.results):
        with pytest.raises(UsageError, match="a job is named by its number"):
            ask(several)


def test_a_number_of_a_job_may_be_of_a_type_of_its_own(app: Spinney) -> None:
    class JobId(int): ...

    @app.job
    def work() -> None: ...

    job_id = work.submit()

    assert app.job_info(JobId(job_id)).id == job_id


def test_a_type_that_only_the_store_knows_is_submitted_by_its_name(app: Spinney) -> None:
    elsewhere = Spinney(app.settings.store)

    @elsewhere.job(queue="pictures")
    def resize(picture: Path, width: int = 200) -> None: ...

    resize.submit(picture="a")
    elsewhere.close()

    @app.job
    def size() -> None: ...

    ids = [app.submit("resize", picture="b"), *app.submit_many("resize", [{"picture": "c"}], keys=["c"])]

    jobs = [app.job_info(job_id) for job_id in ids]
    assert [(job.type, job.queue, job.params, job.key) for job in jobs] == [
        ("resize", "pictures", {"picture": "b"}, None),
        ("resize", "pictures", {"picture": "c"}, "c"),
    ]
    with pytest.raises(BadParameters, match="there is no parameter 'widht'"):
        app.submit("resize", picture="b", widht=3)
    with pytest.raises(UnknownType, match=r"no job type 'resise' .*mean 'resize'.*: resize, size$"):
        app.submit("resise", picture="b")


def test_a_function_that_is_no_job_type_is_refused_by_name(app: Spinney) -> None:
    def resize() -> None: ...

    for use in (
        lambda: app.submit(resize),
        lambda: app.schedule(resize, every="1h"),
        lambda: app.poll(resize, "rows.csv", key="n", every="1h"),
    ):
        with pytest.raises(UsageError, match=r"resize is no job type; make .* with @app\.job"):
            use()


def test_waiting_ends_when_the_job_settles(app: Spinney) -> None:
    @app.job
    def work() -> None: ...

    job_id = work.submit()

    def cancel() -> None:
        from spinney.model.values.times import now_us
        from spinney.store.sql import open_store

        store = open_store(app.settings.store)
        job_verbs.cancel(store, job_id, tree=False, by="test", reason=None, now_us=now_us())
        store.close()

    other = threading.Thread(target=cancel)
    other.start()
    assert app.wait(job_id, timeout=20).state is State.CANCELLED
    other.join()


def test_results_of_a_job_that_is_not_there_are_refused(app: Spinney) -> None:
    @app.job
    def work() -> None: ...

    job_id = work.submit()
    assert app.results(job_id) == {}
    for look in (app.results, app.job_info, app.wait):
        with pytest.raises(NoSuchJob, match="there is no job 99999"):
            look(99999)


def test_threads_share_one_application(app: Spinney) -> None:
    @app.job
    def count(n: int) -> None: ...

    count.submit(n=0)
    ids: list[int] = []
    threads = [threading.Thread(target=lambda: ids.append(count.submit(n=1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 8


def _forked(run: Callable[[], object]) -> int:
    """Return the process that runs this, forked from this one. It exits with 0 unless the function raises, and is
    killed if it never returns."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(30)
        try:
            run()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def test_what_a_forked_child_submits_is_kept_when_its_parent_closes_the_store(app: Spinney) -> None:
    @app.job
    def count(n: int) -> None: ...

    assert count.submit(n=1) == 1
    said, submitted = os.pipe()
    closed, close = os.pipe()

    def run() -> None:
        count.submit(n=2)
        os.write(submitted, b".")
        os.read(closed, 1)
        count.submit(n=3)
        os.kill(os.getpid(), signal.SIGKILL)  # which merges no log into the file

    child = _forked(run)
    os.read(said, 1)
    app.close()
    os.write(close, b".")
    os.waitpid(child, 0)
    for end in (said, submitted, closed, close):
        os.close(end)

    assert count.submit(n=4) == 4


def test_processes_are_forked_while_threads_submit(app: Spinney) -> None:
    @app.job
    def count(n: int) -> None: ...

    count.submit(n=0)
    ended = threading.Event()

    def submit_on_and_on() -> None:
        while not ended.is_set():
            count.submit(n=1)

    threads = [threading.Thread(target=submit_on_and_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    children = [_forked(partial(count.submit, n=2)) for _ in range(5)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    ended.set()
    for thread in threads:
        thread.join()

    assert codes == [0] * 5


def test_without_a_store_the_sentence_says_how_to_make_one(tmp_path: Path) -> None:
    app = Spinney(f"sqlite:///{tmp_path}/none.db")
    app.job(name="work")(lambda: None)
    with pytest.raises(SpinneyError, match="spinney init"):
        app.submit("work")


def test_a_queue_with_a_default_type_takes_parameters_alone(app: Spinney) -> None:
    @app.job
    def resize(picture: str, width: int = 200) -> None: ...

    app.queue("pictures", type=resize, pinned=["oak"], barred=("elm",))
    assert app.queues == [QueueSpec(name="pictures", type="resize", pinned=("oak",), barred=("elm",))]

    job = app.job_info(app.submit_to("pictures", picture="a.jpg"))

    assert (job.type, job.queue, job.params) == ("resize", "pictures", {"picture": "a.jpg"})
    with pytest.raises(BadParameters):
        app.submit_to("pictures", width=3)
    with pytest.raises(
        UsageError, match="queue 'other' has no default job type; name the type, or give the queue one"
    ):
        app.submit_to("other", picture="b.jpg")


def test_the_default_type_is_the_one_that_operators_set_whoever_has_its_code(app: Spinney) -> None:
    from spinney.model.operators.queues import QueueChange
    from spinney.model.rights.actor import Actor
    from spinney.model.types import StageSpec, TypeSpec
    from spinney.store.sql import open_store

    @app.job
    def resize(picture: str) -> None: ...

    app.queue("pictures", type="resize")
    app.submit_to("pictures", picture="a.jpg")
    schema = {"type": "object", "properties": {"angle": {"type": "integer"}}, "required": ["angle"]}
    store = open_store(app.settings.store)
    store.register([TypeSpec(name="turn", stages=(StageSpec(name="turn"),), schema=schema)], [])
    actor = Actor(by="ann", call="c", reason=None)
    store.queue_admin.change("pictures", QueueChange(set={"type": "turn"}), actor, now_us=1)
    store.close()

    job = app.job_info(app.submit_to("pictures", angle=90))

    assert (job.type, job.queue, job.params) == ("turn", "pictures", {"angle": 90})
    with pytest.raises(BadParameters, match="angle"):
        app.submit_to("pictures", picture="b.jpg")


def test_nodes_are_named_in_a_list() -> None:
    with pytest.raises(UsageError, match=r"write pinned=\['oak'\]"):
        Spinney().queue("q", pinned="oak")


def test_a_submission_wakes_each_node_once(app: Spinney) -> None:
    @app.job
    def work() -> None: ...

    work.submit()
    run_dir = app.settings.run_dir
    assert run_dir is not None
    with bound_socket(run_dir, socket_name("oak", 1)) as node:
        for _ in range(3):
            work.submit()
            assert node.recv(1) == b""
            with pytest.raises(BlockingIOError):
                node.recv(1)


# --- loading -----------------------------------------------------------------------------------


def _module(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(textwrap.dedent(text))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", ".")])
    return tmp_path


def test_an_application_is_loaded_from_the_current_directory(here: Path) -> None:
    _module(here, "jobs_good", "from spinney import Spinney\napp = Spinney()\n")
    assert isinstance(load_app("jobs_good:app"), Spinney)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("jobs", "write module:attribute, for example jobs:app"),
        ("jobs.py:app", "write module:attribute, for example jobs:app"),
        ("my/jobs.py:app", "write module:attribute, for example my.jobs:app"),
        ("jobs_missing:app", "there is no module 'jobs_missing'; start in the folder that holds it"),
        ("jobs_other:app", "has nothing named 'app'; it has: batch"),
        ("jobs_other:number", "has no Spinney as 'number'; it has: batch"),
        ("jobs_broken:app", r"failed with ZeroDivisionError: division by zero \(jobs_broken.py, line 3\)"),
        ("jobs_needy:app", "failed with ModuleNotFoundError: No module named 'nonesuch'"),
        ("jobs_exit:app", r"failed with SystemExit: 3 \(jobs_exit.py, line 2\)"),
        ("jobs_usage:app", "jobs_usage: job type 'work': there is no option 'max_attemps'"),
    ],
)
def test_what_cannot_be_loaded_is_told_in_one_sentence(here: Path, target: str, sentence: str) -> None:
    _module(here, "jobs_other", "from spinney import Spinney\nbatch = Spinney()\nnumber = 5\n")
    _module(here, "jobs_broken", "x = 0\n\ny = 1 / x\n")
    _module(here, "jobs_exit", "import sys\nsys.exit(3)\n")
    _module(here, "jobs_needy", "import nonesuch\n")
    _module(
        here,
        "jobs_usage",
        """
        from spinney import Spinney
        app = Spinney()
        @app.job(max_attemps=3)
        def work(): ...
        """,
    )
    with pytest.raises(UsageError, match=sentence) as caught:
        load_app(target)
    assert "\n" not in str(caught.value)


def test_loading_an_application_stays_light(here: Path) -> None:
    _module(
        here,
        "jobs_light",
        """
        from pathlib import Path
        from spinney import Job, Spinney
        app = Spinney()
        @app.job
        def work(path: Path, job: Job): ...
        """,
    )
    program = """
        import sys
        from spinney import load_app
        app = load_app("jobs_light:app")
        app.types["work"].runner("work")
        app.types["work"].texts([{"path": "x"}])
        heavy = {"sqlalchemy", "alembic", "typer", "rich", "jsonschema", "psutil", "asyncio"}
        print(sorted(heavy & sys.modules.keys()))
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_the_example_of_the_readme_declares_what_it_says(here: Path) -> None:
    source = Path(__file__).parent.parent / "examples" / "words.py"
    (here / "words.py").write_text(source.read_text())
    app = load_app("words:app")
    assert [s.name for s in app.types["folder"].spec.stages] == ["expand", "report"]
    assert app.types["words"].spec.stages[0].timeout_s == 60


def test_the_handle_type_is_exported() -> None:
    assert Job.__module__ == "spinney.define.job.handle"


# --- schedules ---------------------------------------------------------------------------------


def test_schedules_are_declared_beside_their_type() -> None:
    app = Spinney()

    @app.job
    def report(day: str = "today", width: int = 80) -> None: ...

    name = app.schedule(report, cron="0 6 * * mon", zone="Europe/Berlin")
    other = app.schedule(
        report.options(queue="night", priority=0, submitter="clock"),
        every="1h30m",
        params={"width": 40},
        name="narrow",
        overlap="queue",
        catch_up="all",
    )
    by_name = app.schedule("report", every=timedelta(minutes=5), name="often")

    assert [name, other, by_name] == list(app.schedules) == ["report", "narrow", "often"]
    first, second, third = app.schedules.values()
    assert (first.type, first.cron, first.zone, first.overlap, first.catch_up) == (
        "report",
        "0 6 * * mon",
        "Europe/Berlin",
        "skip",
        "last",
    )
    assert (second.every_s, second.params, second.overlap, second.catch_up) == (
        5400,
        {"width": 40},
        "queue",
        "all",
    )
    assert second.options == {"queue": "night", "priority": 0, "submitter": "clock"}
    assert third.every_s == 300


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({}, UsageError, "either a cron expression or an interval"),
        ({"cron": "0 6 * *"}, UsageError, "does not have five fields"),
        ({"cron": "0 6 * * *", "zone": "Europe/Berln"}, UsageError, "did you mean 'Europe/Berlin'"),
        ({"every": 0.2}, UsageError, "between 1 second and"),
        ({"every": "soon"}, UsageError, "no length of time"),
        ({"every": 5, "overlap": "run"}, UsageError, "overlap must be one of"),
        ({"every": 5, "catch_up": "some"}, UsageError, "catch_up must be one of"),
        (
            {"every": 5, "params": {"n": "x"}},
            BadParameters,
            "'n' must be .* Nothing was scheduled; correct this and try again$",
        ),
        ({"every": 5, "name": "a/b"}, UsageError, "cannot name a schedule"),
        ({"every": 5, "name": "there"}, UsageError, "two schedules are named 'there'"),
    ],
)
def test_a_wrong_schedule_is_refused_where_it_is_declared(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    app = Spinney()

    @app.job
    def count(n: int = 1) -> None: ...

    app.schedule(count, every=5, name="there")
    with pytest.raises(error, match=says):
        app.schedule(count, **options)
    with pytest.raises(UsageError, match="no option 'key'"):
        app.schedule(count.options(key="k"), every=5, name="other")
    assert list(app.schedules) == ["there"]


def test_an_application_declares_how_much_there_is_of_its_locks(app: Spinney) -> None:
    @app.job
    def fetch(url: str) -> None: ...

    assert app.lock("download:*", capacity=4) == "download:*"
    for name, capacity, message in (
        ("download:*", 5, "declared twice"),
        ("*", 1, "no family"),
        ("a", 0, "from 1 to"),
        ("a", True, "from 1 to"),
    ):
        with pytest.raises(UsageError, match=message):
            app.lock(name, capacity=capacity)
    app.submit(fetch, url="x")

    from spinney.store.sql import open_store

    with closing(open_store(app.settings.store)) as store:
        assert [(info.name, info.capacity) for info in store.locks.capacities()] == [("download:*", 4)]


# --- the end of a process ----------------------------------------------------------------------

UNCLOSED = """
import gc, sys
from pathlib import Path
from spinney import Spinney

app = Spinney(f"sqlite:///{sys.argv[1]}/jobs.db")

@app.job
def noop(): pass

app.submit(noop)
gc.freeze()  # nothing is closed because somebody looks for garbage
"""


def test_whoever_never_closes_a_store_leaves_no_journal(app: Spinney, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", UNCLOSED, str(tmp_path)], check=True)

    assert [file.name for file in tmp_path.iterdir() if "-" in file.name] == []
    assert app.job_info(1).state is State.PENDING


LATE = """
import atexit, sys
atexit.register(lambda: app.submit(noop))  # runs after the handler that Spinney registers

from spinney import Spinney

app = Spinney(f"sqlite:///{sys.argv[1]}/jobs.db")

@app.job
def noop(): pass

app.submit(noop)
"""


def test_a_handler_that_runs_at_exit_after_the_store_was_closed_may_submit(
    app: Spinney, tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-c", LATE, str(tmp_path)], check=True, timeout=60)

    assert app.job_info(2).state is State.PENDING
