"""What could only fail when a job runs is refused where it is declared."""

from collections.abc import Callable
from typing import Annotated, Any, Protocol

import pytest
from pydantic import Field, SecretBytes

from spinney import Job, LockSpec, Spinney
from spinney.model.errors import BadParameters, UsageError
from spinney.testing import run_stage


class Handle(Protocol):
    """What a stage needs of its job, in the words of its author."""

    @property
    def id(self) -> int: ...


def number(job: int) -> None: ...
def text(job: str | None = None) -> None: ...
def two(job, handle: Job) -> None: ...  # type: ignore[no-untyped-def]
def twice(one: Job, other: Job) -> None: ...
def parts(parts: list[str] = []) -> None: ...  # noqa: B006
def names(names: dict[str, int] = {"a": 1}) -> None: ...  # noqa: B006
def alias(width: Annotated[int, Field(alias="w")]) -> None: ...


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (number, "takes 'job', which is the handle of its job, as int; annotate it as spinney.Job, or give"),
        (text, "takes 'job', which is the handle of its job, as str | None"),
        (two, "takes its job twice, as 'job' and as 'handle'; keep one"),
        (twice, "takes its job twice, as 'one' and as 'other'; keep one"),
        (
            parts,
            "the default of 'parts' is [], one list that all jobs of a worker would share; write parts=None",
        ),
        (names, "the default of 'names' is {'a': 1}, one dict that all jobs of a worker would share"),
        (alias, "a parameter has the alias 'w', and parameters are stored and passed by their own names"),
    ],
)
def test_a_function_that_would_fail_in_every_job_is_refused(
    function: Callable[..., Any], sentence: str
) -> None:
    app = Spinney()
    with pytest.raises(UsageError) as caught:
        app.job(function)
    assert f"stage '{function.__name__}' of '{function.__name__}'" in str(caught.value)
    assert sentence in str(caught.value)
    assert app.types == {}


def test_what_is_called_job_may_be_typed_by_what_the_handle_is() -> None:
    def own(job: Handle) -> int:
        return job.id

    def maybe(job: Job | None = None) -> int:
        return 0 if job is None else job.id

    def named(handle: Job, job: str) -> str:
        return f"{job} {handle.id}"

    app = Spinney()
    assert [run_stage(app.job(function)).value for function in (own, maybe)] == [3, 3]
    assert run_stage(app.job(named), job="a parameter").value == "a parameter 3"


@pytest.mark.parametrize(
    ("locks", "sentence"),
    [
        (["x" * 201], "cannot name a lock: use up to 200"),
        (["a/{n}"], "'a/x' cannot name a lock"),
        ([""], "'' cannot name a lock"),
        (
            ["disk", LockSpec(template="disk", until="job")],
            "the lock 'disk' is named twice; keep one of the two",
        ),
    ],
)
def test_a_lock_that_no_job_could_take_is_refused(locks: list[Any], sentence: str) -> None:
    with pytest.raises(UsageError, match="stage 'work' of 'work'") as caught:
        Spinney().program("work", ["true"], locks=locks)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", [1, "", "a\0", "\ud800", None])
def test_a_parameter_of_a_program_has_a_name(name: Any) -> None:
    with pytest.raises(UsageError, match="cannot name a parameter; use printable text"):
        Spinney().program("work", ["true"], params={name: int})


@pytest.mark.parametrize("argv", [[""], [" ", "x"]])
def test_a_program_has_a_name(argv: list[str]) -> None:
    with pytest.raises(UsageError, match="a program is a list of arguments"):
        Spinney().program("work", argv)


@pytest.mark.parametrize("annotation", [bytes, SecretBytes])
def test_bytes_that_are_no_text_are_refused_by_name(annotation: Any) -> None:
    work = Spinney().program("work", ["true"], params={"data": annotation})
    assert work.texts([{"data": b"abc"}]) == ['{"data":"abc"}']
    with pytest.raises(BadParameters, match=r"parameter 'data' (must be|is wrong)"):
        work.texts([{"data": b"\xff"}])
