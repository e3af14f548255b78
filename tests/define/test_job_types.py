"""How functions and programs become job types: stages, policy, runners, and what is refused."""

import asyncio
import inspect
import math
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import Field, PlainSerializer

from spinney import Backoff, Fail, Job, LockSpec, Secret, Spinney
from spinney.define.job import Assignment
from spinney.define.jobtype.signature import DeclaredParameter, Signature, merge_signatures
from spinney.model.errors import BadName, UsageError
from spinney.model.types import Isolation, TypeSpec
from spinney.testing import StageHarness


@pytest.fixture
def app() -> Spinney:
    return Spinney()


def handle(text: str = "{}") -> Job:
    return Job(Assignment(3, 1, "t", "s", 1, text, None, 3, Path("/nowhere")), StageHarness())


# --- declaring ---------------------------------------------------------------------------------


def test_stages_of_a_pipeline_stand_in_the_order_of_their_definition(app: Spinney) -> None:
    deposit = app.pipeline("deposit", children="settled", queue="slow", priority=3, serial=True)

    @deposit.stage
    def receive(path: Path) -> None: ...

    deposit.program("scan", ["clamscan", "--quiet"], params={"path": Path}, exit_codes={1: "hold"})

    @deposit.stage(
        name="tell", again=True, max_attempts=5, backoff=Backoff(base_s=2), timeout=timedelta(minutes=1)
    )
    def report(job: Job, mail: str | None = None) -> None: ...

    spec = deposit.spec
    assert [s.name for s in spec.stages] == ["receive", "scan", "tell"]
    assert (spec.children, spec.queue, spec.priority, spec.serial) == ("settled", "slow", 3, True)
    scan, tell = spec.stages[1:]
    assert (scan.isolation, scan.program, scan.exit_codes) == (
        Isolation.PROGRAM,
        ("clamscan", "--quiet"),
        {1: "hold"},
    )
    assert (tell.again, tell.max_attempts, tell.backoff.base_s, tell.timeout_s) == (True, 5, 2, 60.0)
    assert set(spec.schema["properties"]) == {"path", "mail"}
    assert spec.schema["required"] == ["path"]
    assert TypeSpec.from_json(spec.to_json()) == spec
    assert callable(receive), "a stage's function stays what it is"


def test_the_spec_follows_stages_that_are_added_later(app: Spinney) -> None:
    line = app.pipeline("line")
    line.stage(name="one")(lambda: None)
    assert len(line.spec.stages) == 1
    line.stage(name="two")(lambda: None)
    assert len(line.spec.stages) == 2


def test_functions_pipelines_and_programs_may_have_a_circuit_breaker(app: Spinney) -> None:
    @app.job(breaker=20)
    def call() -> None: ...

    @app.job
    def calm() -> None: ...

    line = app.pipeline("line", breaker=3)
    line.program("first", ["true"])
    app.program("alone", ["true"], breaker=1)

    assert {n: t.spec.breaker for n, t in app.types.items()} == {
        "call": 20,
        "calm": None,
        "line": 3,
        "alone": 1,
    }


def test_a_stage_gets_only_what_it_declares_although_another_takes_anything(app: Spinney) -> None:
    line = app.pipeline("line")

    @line.stage
    def first(x: int, **more: int) -> int:
        return x + more["y"]

    @line.stage
    def second(x: int) -> int:
        return x

    text = line.parameters.text({"x": 1, "y": 2})

    assert line.runner("first")(text, handle(text)) == 3
    assert line.runner("second")(text, handle(text)) == 1


def test_isolation_follows_the_function_unless_said(app: Spinney) -> None:
    @app.job
    def plain() -> None: ...

    @app.job
    async def waiting() -> None: ...

    @app.job(isolation="process")
    async def alone() -> None: ...

    isolations = [app.types[n].spec.stages[0].isolation for n in ("plain", "waiting", "alone")]
    assert isolations == [Isolation.PROCESS, Isolation.ASYNC, Isolation.PROCESS]


def test_locks_are_templates_or_specs_and_make_their_field_required(app: Spinney) -> None:
    @app.job(locks=["receiver:{serno}", LockSpec(template="disk", until="job")])
    def read(serno: str = "none") -> None: ...

    assert [lock.until for lock in read.spec.stages[0].locks] == ["attempt", "job"]
    assert read.spec.schema["required"] == ["serno"]


def test_later_stages_need_the_locks_that_the_job_keeps(app: Spinney) -> None:
    update = app.pipeline("update")
    device = LockSpec(template="device:{serno}", until="job")

    @update.stage(locks=["net", device])
    def fetch(serno: int) -> None: ...

    @update.stage(locks=["device:{serno}", "usb"])
    def write(serno: int) -> None: ...

    @update.stage
    def check(serno: int) -> None: ...

    # A job that failed in 'write' has let the device go, and a retry begins there
    assert [stage.locks for stage in update.spec.stages] == [
        (LockSpec(template="net"), device),
        (device, LockSpec(template="usb")),
        (device,),
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_attemps": 3}, r"no option 'max_attemps' \(did you mean 'max_attempts'\?\)"),
        ({"isolation": "docker"}, "isolation is one of async, cold, process, thread, not 'docker'"),
        ({"isolation": "program"}, "isolation is one of"),
        ({"isolation": "async"}, "no async function; write 'async def'"),
        ({"timeout": "5"}, "stage 'work' of 'work': timeout: '5' is no length of time; write"),
        ({"timeout": 0}, "timeout must be more than 0 seconds"),
        ({"max_attempts": 0}, "max_attempts must be 1 or more"),
        ({"locks": "receiver:{n}"}, r"write locks=\['receiver:\{n\}'\]"),
        ({"priority": 100}, "priority must be a whole number from 0"),
        ({"children": "all"}, "children must be 'completed' or 'settled'"),
        ({"queue": "a/b"}, "cannot name a queue"),
        ({"name": "../x"}, "cannot name a"),
        ({"backoff": 5}, "stage 'work': backoff must be a Backoff"),
        ({"timeout": float("inf")}, "stage 'work' of 'work': timeout: inf is no length of time"),
        ({"timeout": 10**400}, "stage 'work' of 'work': timeout: 1000.* is no length of time"),
        ({"grace": -1}, "stage 'work': grace must be 0 seconds or more"),
        ({"max_attempts": 1.5}, "stage 'work': max_attempts must be 1 or more, a whole number"),
        ({"again": 1}, "stage 'work': again must be True or False"),
        ({"serial": "no"}, "job type 'work': serial must be True or False"),
        ({"poison_after": 0}, "job type 'work': poison_after must be 1 or more"),
        ({"breaker": 0}, "job type 'work': breaker must be 1 or more"),
        ({"breaker": True}, "job type 'work': breaker must be 1 or more"),
        ({"breaker": "20"}, "job type 'work': breaker must be 1 or more"),
        ({"breaker": 1001}, "job type 'work': breaker must be up to 1,000 jobs"),
        ({"description": 2}, "job type 'work': description must be text"),
        ({"description": None}, "job type 'work': description must be text"),
        ({"locks": ["receiver:{n"]}, r"stage 'work' of 'work': 'receiver:\{n' cannot name a lock"),
        ({"locks": 5}, "stage 'work' of 'work': locks is a list of names"),
    ],
)
def test_a_wrong_option_is_refused_where_it_is_written(
    app: Spinney, options: dict[str, Any], sentence: str
) -> None:
    def work(n: int) -> None: ...

    with pytest.raises(UsageError, match=sentence):
        app.job(**options)(work)
    assert app.types == {}


@pytest.mark.parametrize("name", ["a/b", 5, ""])
def test_a_wrong_name_is_refused_where_it_is_written(app: Spinney, name: Any) -> None:
    with pytest.raises(BadName):
        app.pipeline(name)
    with pytest.raises(BadName):
        app.program(name, ["convert"])
    with pytest.raises(BadName):
        app.queue(name)
    with pytest.raises(BadName):
        app.pipeline("p", queue=name)
    assert (app.types, app.queues) == ({}, [])


def test_a_program_with_nul_in_an_argument_is_refused(app: Spinney) -> None:
    with pytest.raises(
        UsageError, match="stage 'convert': a program's argument is text in UTF-8 without NUL"
    ):
        app.program("convert", ["convert", "a\0b"])


def test_a_lock_named_by_no_parameter_is_refused(app: Spinney) -> None:
    @app.job(locks=["receiver:{serno}"])
    def read(number: str) -> None: ...

    with pytest.raises(UsageError, match="no parameter 'serno'"):
        _ = read.spec


def test_two_stages_may_not_mean_different_things_by_one_name(app: Spinney) -> None:
    deposit = app.pipeline("deposit")

    @deposit.stage
    def receive(size: int, note) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(UsageError, match="'size' is int in stage 'receive' but str in stage 'check'"):

        @deposit.stage
        def check(size: str) -> None: ...

    @deposit.stage
    def tell(note: str, size: int = 4) -> None: ...

    assert [s.name for s in deposit.spec.stages] == ["receive", "tell"]
    assert deposit.spec.schema["properties"]["note"] == {"type": "string"}, "an annotation wins over none"


class _Mark:
    """A mark of the author's own; two of them say nothing the same."""

    __slots__ = ("__unit",)

    def __init__(self, unit: str) -> None:
        self.__unit = unit


def _sized(field: Any, others: Any = int) -> Any:
    return dict[str, Annotated[int, field]] | others | None


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (_sized(Field(ge=0, description="pixels")), _sized(Field(ge=0, description="pixels")), True),
        (_sized(Field(ge=0)), _sized(Field(ge=1)), False),
        (_sized(Field(ge=0), Literal[1]), _sized(Field(ge=0), Literal[True]), False),
        (_sized(Field(default_factory=lambda: 1)), _sized(Field(default_factory=lambda: 1)), False),
        (_sized(_Mark("pixels")), _sized(_Mark("bytes")), False),
    ],
)
def test_annotations_that_say_the_same_mean_the_same(one: Any, other: Any, *, alike: bool) -> None:
    parameters = [{"size": DeclaredParameter(annotation=a, required=True)} for a in (one, other)]
    stages = {f"stage {i}": Signature(fields=fields) for i, fields in enumerate(parameters)}

    if alike:
        assert merge_signatures("deposit", stages)["size"].annotation is one
    else:
        with pytest.raises(UsageError, match="annotate both alike, best with one name"):
            merge_signatures("deposit", stages)


def test_a_function_that_no_job_can_call_is_refused(app: Spinney) -> None:
    class Secret: ...

    with pytest.raises(UsageError, match="takes 'args' by position"):

        @app.job
        def spread(*args: int) -> None: ...

    def odd(thing: Any) -> None: ...

    odd.__annotations__["thing"] = Secret
    with pytest.raises(UsageError, match=r"'thing' \(Secret\) cannot be a parameter"):
        app.job(odd)

    with pytest.raises(UsageError, match="cannot be read: name 'Nowhere' is not defined"):

        @app.job
        def lost(thing: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(BadName):
        app.job(lambda: None)


class _Silent:
    """A type that refuses to be a parameter without a word."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise TypeError


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (_Silent, "TypeError"),
        (Annotated[Secret(), str], "'Secret' object has no attribute"),
        (Annotated[Decimal, Field(max_digits=3, allow_inf_nan=True)], "cannot be used with max_digits"),
    ],
)
def test_an_annotation_whose_parts_do_not_go_together_is_refused(
    app: Spinney, annotation: Any, reason: str
) -> None:
    def odd(thing: Any) -> None: ...

    odd.__annotations__["thing"] = annotation
    with pytest.raises(UsageError, match=rf"stage 'odd' .* of 'thing' \(.*\) cannot be used: .*{reason}"):
        app.job(odd)


@pytest.mark.parametrize("argv", ["convert -size 3", [], ["convert", 3]])
def test_a_program_is_a_list_of_arguments(app: Spinney, argv: Any) -> None:
    with pytest.raises(UsageError, match="never a shell string"):
        app.program("convert", argv)


@pytest.mark.parametrize("codes", [{3: "hlod"}, {300: "hold"}, {"3": "hold"}, {3: "died"}, {3: 4}, [3]])
def test_exit_codes_mean_outcomes(app: Spinney, codes: Any) -> None:
    with pytest.raises(UsageError, match=r"exit code"):
        app.program("convert", ["convert"], exit_codes=codes)


def test_a_program_takes_anything_unless_it_says_what(app: Spinney) -> None:
    loose = app.program("loose", ["x"])
    strict = app.program("strict", ["x"], params={"path": Path, "level": int | None})
    assert loose.spec.schema == {}
    assert loose.texts([{"any": [1]}]) == ['{"any":[1]}']
    assert strict.spec.schema["required"] == ["path"]


@pytest.mark.parametrize(
    "annotation",
    [
        None,
        Annotated[int | None, Field(ge=1)],
        Annotated[str | None, Secret()],
        Annotated[int, Field(ge=1)] | None,
        Literal["a", None],
    ],
)
def test_a_parameter_of_a_program_that_may_be_none_may_be_left_out(app: Spinney, annotation: Any) -> None:
    program = app.program("p", ["x"], params={"level": annotation, "levels": list[None]})
    assert program.spec.schema["required"] == ["levels"]


def test_what_only_a_program_gets_may_be_stored_as_no_function_could_read_it(app: Spinney) -> None:
    day = Annotated[date, PlainSerializer(lambda value: value.strftime("%d.%m.%Y"))]
    report = app.pipeline("report")
    report.program("write", ["report"], params={"day": day})
    report.external("talk", params={"until": day})
    row = {"day": "2030-01-31", "until": "2030-02-01"}

    assert report.parameters.text(row) == '{"day":"31.01.2030","until":"01.02.2030"}'

    @report.stage
    def check(until: day) -> None: ...  # type: ignore[valid-type]

    with pytest.raises(UsageError, match="parameter 'until' is not what its annotation"):
        report.parameters.text(row)


def test_how_long_jobs_are_kept_is_said_by_state(app: Spinney) -> None:
    @app.job(keep={"completed": timedelta(days=30), "failed": None, "cancelled": 60, "orphaned": "30d"})
    def work() -> None: ...

    assert work.spec.keep == {
        "completed": 2_592_000.0,
        "failed": None,
        "cancelled": 60.0,
        "orphaned": 2_592_000.0,
    }
    with pytest.raises(UsageError, match="cannot be kept for a time; keep is for cancelled, completed"):
        app.pipeline("p", keep={"running": 1})
    with pytest.raises(UsageError, match="job type 'p': keep for completed: '30' is no length of time"):
        app.pipeline("p", keep={"completed": "30"})
    with pytest.raises(UsageError, match="keep maps states to times"):
        app.pipeline("p", keep=timedelta(days=30))


class Colour(Enum):
    GREY = "grey"
    FULL = "full"


def test_the_schema_names_defaults_that_json_has(app: Spinney) -> None:
    @app.job
    def scan(
        n: int = 2,
        name: str = "Zoë",
        ratio: float = 0.5,
        keep: bool = False,
        folder: Path = Path("x"),
        huge: int = 2**80,
        endless: float = math.inf,
        long: str = "x" * 1_000,
        nothing: str | None = None,
        colour: Colour = Colour.GREY,
    ) -> None: ...

    properties = scan.spec.schema["properties"]
    assert {name: prop["default"] for name, prop in properties.items() if "default" in prop} == {
        "n": 2,
        "name": "Zoë",
        "ratio": 0.5,
        "keep": False,
        "colour": "grey",
    }
    assert scan.parameters.text({}) == "{}", "a default is the function's, and not stored"


def test_a_default_on_which_stages_differ_is_not_named(app: Spinney) -> None:
    deposit = app.pipeline("deposit")

    @deposit.stage
    def fetch(n: int = 1, same: int = 5, needed: int = 3) -> None: ...

    @deposit.stage
    def check(needed: int, n: int = 2, same: int = 5) -> None: ...

    properties = deposit.spec.schema["properties"]
    assert [name for name, prop in properties.items() if "default" in prop] == ["same"]


def test_a_docstring_describes_the_type_only_where_there_is_one_stage(app: Spinney) -> None:
    deposit = app.pipeline("deposit")

    @deposit.stage
    def fetch() -> None:
        """Fetch the payload.

        Slowly."""

    assert deposit.spec.description == "Fetch the payload."

    @deposit.stage
    def check() -> None:
        """Check it."""

    assert deposit.spec.description == ""
    described = app.pipeline("described", description="Deposit what comes")
    described.stage(name="fetch")(fetch)
    described.stage(name="check")(check)
    assert described.spec.description == "Deposit what comes"


# --- runners -----------------------------------------------------------------------------------


def test_a_runner_calls_the_function_with_the_parameters_by_name(app: Spinney) -> None:
    @app.job
    def add(a: int, b: int = 2) -> int:
        return a + b

    assert add.runner("add")('{"a":3}', handle()) == 5


def test_the_handle_goes_to_what_is_annotated_or_named_for_it(app: Spinney) -> None:
    @app.job
    def named(job) -> int:  # type: ignore[no-untyped-def]
        return int(job.id)

    @app.job
    def annotated(me: Job, n: int) -> int:
        return me.id + n

    assert named.runner("named")("{}", handle()) == 3
    assert annotated.runner("annotated")('{"n": 4}', handle()) == 7
    assert annotated.spec.schema["properties"].keys() == {"n"}


def test_it_is_known_which_stages_take_a_handle(app: Spinney) -> None:
    line = app.pipeline("line")

    @line.stage
    def bare(n: int) -> None: ...

    @line.stage
    def annotated(me: Job) -> None: ...

    @line.stage
    async def awaited(job: Job) -> None: ...

    @line.stage
    def rest(**rest: Any) -> None: ...

    line.program("program", ["true"])
    taking = [stage.name for stage in line.spec.stages if line.takes_handle(stage.name)]
    assert taking == ["annotated", "awaited", "program"]
    assert not line.takes_handle("gone")


def test_each_stage_gets_its_own_parameters_converted_as_annotated(app: Spinney) -> None:
    line = app.pipeline("line")
    values: list[Any] = []

    @line.stage
    def first(path: Path, when: datetime | None = None) -> None:
        values.append((path, when))

    @line.stage
    def second(n: int) -> None:
        values.append(n)

    @line.stage
    def third(**rest: Any) -> None:
        values.append(rest)

    text = line.texts([{"path": Path("a/b"), "when": datetime(2030, 1, 31), "n": 3, "more": [1]}])[0]
    for stage in ("first", "second", "third"):
        line.runner(stage)(text, handle())
    assert values[:2] == [(Path("a/b"), datetime(2030, 1, 31)), 3]
    assert values[2]["more"] == [1]


def test_stored_parameters_that_no_longer_fit_fail_for_good(app: Spinney) -> None:
    @app.job
    def work(when: datetime) -> None: ...

    with pytest.raises(Fail, match="stage 'work' of 'work': parameter 'when' must be a date and") as caught:
        work.runner("work")('{"when":"soon"}', handle())
    assert caught.value.retryable is False


class OldTypedDict(TypedDict):
    width: int


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic reads TypedDict of typing then")
def test_a_typed_dict_that_cannot_be_read_says_which_can(app: Spinney) -> None:
    def work(area: OldTypedDict) -> None: ...

    with pytest.raises(
        UsageError, match=r"'area' .* cannot be read; import TypedDict from typing_extensions"
    ):
        app.job(work)


def test_a_wrong_exit_code_suggests_the_word_as_it_is_written(app: Spinney) -> None:
    with pytest.raises(UsageError, match=r"cannot mean 'warn' \(did you mean 'warning'\?\)"):
        app.program("ls", ["ls"], exit_codes={3: "warn"})


def test_stored_parameters_of_plain_types_are_those_of_the_stage_as_it_is_now(app: Spinney) -> None:
    @app.job
    def work(size: int, name: str = "oak") -> str:
        return f"{name} {size + 1}"

    run = work.runner("work")
    assert run('{"size":3,"gone":true}', handle()) == "oak 4"
    assert run('{"size":"3","name":"elm"}', handle()) == "elm 4"
    for text, fault in (
        ('{"name":"elm"}', "parameter 'size' is missing"),
        ('{"size":"big"}', "parameter 'size' must be a whole number$"),
    ):
        with pytest.raises(Fail, match=f"do not fit stage 'work' of 'work': {fault}") as caught:
            run(text, handle())
        assert caught.value.retryable is False


def test_a_fault_of_stored_parameters_is_said_once_and_not_for_each_item_of_a_list(app: Spinney) -> None:
    @app.job
    def work(size: int | list[int] = 0, sizes: list[int] | None = None) -> None: ...

    run = work.runner("work")
    with pytest.raises(Fail, match=r"^[^;]*'size' must be a whole number or a list, each a whole number$"):
        run('{"size":"big"}', handle())
    with pytest.raises(Fail) as caught:
        run('{"sizes":["big"' + 49 * ',"big"' + "]}", handle())
    assert str(caught.value).count("parameter 'sizes'") == 5


def test_a_stored_decimal_is_refused_in_the_words_of_a_submission(app: Spinney) -> None:
    @app.job
    def pay(amount: Annotated[Decimal, Field(ge=0)]) -> None: ...

    with pytest.raises(
        Fail, match=r"must be a number at least 0.0 or a number as text such as '1.50' at least 0.0 \("
    ):
        pay.runner("pay")('{"amount":"-5"}', handle())


def test_the_runner_of_an_async_function_is_a_coroutine_function(app: Spinney) -> None:
    @app.job
    async def work(n: int, job: Job) -> int:
        return n + job.id

    run = work.runner("work")
    assert inspect.iscoroutinefunction(run)
    assert asyncio.run(run('{"n":1}', handle())) == 4


def test_there_is_no_runner_for_what_is_no_function(app: Spinney) -> None:
    convert = app.program("convert", ["convert"])
    with pytest.raises(UsageError, match="a program, no function"):
        convert.runner("convert")
    with pytest.raises(UsageError, match="has no stage 'gone'; its stages are: convert"):
        convert.runner("gone")


# --- stages that run elsewhere -----------------------------------------------------------------


def test_a_stage_may_be_run_elsewhere_and_still_says_what_it_is_called_with(app: Spinney) -> None:
    talk = app.pipeline("talk")
    talk.stage(name="fetch")(lambda file: None)
    talk.external("listen", params={"language": str}, timeout=timedelta(hours=1), max_attempts=3)
    alone = app.external("alone", params={"n": int}, queue="far", breaker=5)

    listen = talk.spec.stages[1]
    assert (listen.isolation, listen.timeout_s, listen.max_attempts) == (Isolation.EXTERNAL, 3600.0, 3)
    assert set(talk.spec.schema["required"]) == {"file", "language"}
    assert TypeSpec.from_json(talk.spec.to_json()) == talk.spec
    assert (alone.spec.stages[0].name, alone.spec.stages[0].queue, alone.spec.breaker) == ("alone", "far", 5)
    assert alone.function() is None


def test_an_external_stage_that_says_nothing_of_parameters_takes_whatever_comes(app: Spinney) -> None:
    assert app.external("any").texts([{"a": 1}]) == ['{"a":1}']


def test_an_external_stage_runs_nowhere_here(app: Spinney) -> None:
    alone = app.external("alone")
    with pytest.raises(UsageError, match="what an external worker runs, no function, as stage 'alone'"):
        StageHarness().run(alone)


def test_a_function_is_no_external_stage(app: Spinney) -> None:
    with pytest.raises(UsageError, match=r"write external\('listen', …\) in its place"):

        @app.job(isolation="external")
        def listen() -> None: ...


def test_an_option_of_a_stage_that_is_given_to_a_pipeline_is_sent_where_it_belongs() -> None:
    with pytest.raises(
        UsageError, match="'max_attempts' is an option of its stages; give it where each of them is"
    ):
        Spinney().pipeline("folder", max_attempts=3)  # type: ignore[call-arg]


def test_what_an_external_stage_cannot_have_is_refused(app: Spinney) -> None:
    with pytest.raises(UsageError, match="there is no option 'exit_codes'"):
        app.pipeline("talk").external("listen", exit_codes={3: "hold"})  # type: ignore[call-arg]
