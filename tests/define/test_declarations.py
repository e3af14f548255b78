"""What could only fail when a job runs is refused where it is declared."""

import datetime
import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol

import pytest
from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, Field, SecretBytes, SecretStr, StringConstraints

from spinney import Job, LockSpec, Spinney
from spinney.model.errors import BadParameters, UsageError
from spinney.testing import run_stage


class Handle(Protocol):
    """What a stage needs of its job, in the words of its author."""

    @property
    def id(self) -> int: ...


@dataclass
class Filters:
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FrozenFilters:
    names: tuple[str, ...] = ()


class Size(BaseModel):
    width: int = 1


class FrozenSize(BaseModel):
    model_config = ConfigDict(frozen=True)
    width: int = 1


class Colour(enum.Enum):
    RED = ["red"]  # noqa: RUF012


def number(job: int) -> None: ...
def text(job: str | None = None) -> None: ...
def two(job, handle: Job) -> None: ...  # type: ignore[no-untyped-def]
def twice(one: Job, other: Job) -> None: ...
def parts(parts: list[str] = []) -> None: ...  # noqa: B006
def names(names: dict[str, int] = {"a": 1}) -> None: ...  # noqa: B006
def pick(filters: Filters = Filters()) -> None: ...
def resize(size: Size = Size()) -> None: ...
def pairs(pairs: tuple[str, list[str]] = ("a", [])) -> None: ...
def alias(width: Annotated[int, Field(alias="w")]) -> None: ...
def marked(width: int = Field(ge=1)) -> None: ...
def bound(width: int = Ge(1)) -> None: ...  # type: ignore[assignment]
def constraints(name: str = StringConstraints(max_length=9)) -> None: ...  # type: ignore[assignment]


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
        (
            pick,
            "the default of 'filters' is Filters(names=[]), one Filters that all jobs of a worker would share",
        ),
        (resize, "the default of 'size' is Size(width=1), one Size that all jobs of a worker would share"),
        (pairs, "the default of 'pairs' is ('a', []), one tuple that all jobs of a worker would share"),
        (
            marked,
            "Field(…) is no default of 'width'; write width: Annotated[…, Field(…)], with its type in place",
        ),
        (bound, "Ge(…) is no default of 'width'; write width: Annotated[…, Ge(…)], with its type in place"),
        (
            constraints,
            "StringConstraints(…) is no default of 'name'; write name: Annotated[…, StringConstraints(…)]",
        ),
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


def test_a_default_that_cannot_be_changed_is_accepted() -> None:
    def keep(
        filters: FrozenFilters = FrozenFilters(),
        size: FrozenSize = FrozenSize(),
        colour: Colour = Colour.RED,
        password: SecretStr = SecretStr("a long password"),
        path: Path = Path("here"),
        day: datetime.date = datetime.date(2026, 1, 1),
        pair: tuple[str, tuple[int, ...]] = ("a", (1, 2)),
    ) -> None: ...

    app = Spinney()
    app.job(keep)
    assert set(app.types) == {"keep"}


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
