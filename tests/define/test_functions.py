"""What may be a stage: functions and methods of objects; whatever else is refused where it is declared."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from spinney import Spinney
from spinney.model.errors import BadName, UsageError
from spinney.model.types import Isolation
from spinney.testing import run_stage


def double(n: int) -> int:
    return 2 * n


def each(n: int) -> Iterator[int]:
    yield n


async def each_later(n: int) -> AsyncIterator[int]:
    yield n


class Scale:
    def __init__(self, factor: int = 3) -> None:
        self.factor = factor

    def __call__(self, n: int) -> int:
        return self.factor * n

    def scaled(self, n: int) -> int:
        return self.factor * n

    async def later(self, n: int) -> int:
        return self.factor * n

    def each(self, n: int) -> Iterator[int]:
        yield n

    @classmethod
    def of_class(cls, n: int) -> int:
        return cls().factor * n


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (each, r"each is a generator function, .* Return a list"),
        (each_later, r"each_later is a generator function"),
        (Scale().each, r"Scale.each is a generator function"),
        (functools.partial(each), r"is a function, not functools.partial\(.*; write a function"),
        (functools.partial(double, n=1), r"is a function, not functools.partial\("),
        (Scale.scaled, r"Scale.scaled is a method without its object"),
        (Scale(), r"is a function, not <.*Scale object"),
        (Scale, r"is a function, not <class"),
        (staticmethod(double), r"double is declared above @staticmethod; declare it outside of its class"),
        (Scale.__dict__["of_class"], r"Scale.of_class is declared above @classmethod"),
        (3, r"is a function, not 3"),
    ],
    ids=range(11),
)
def test_what_no_job_can_call_is_refused_where_it_is_declared(function: Any, sentence: str) -> None:
    app = Spinney()
    line = app.pipeline("line")
    for declare in (app.job, app.job(name="n"), line.stage, line.stage(name="n")):
        with pytest.raises(UsageError, match=sentence):
            declare(function)
    assert list(app.types) == ["line"]


METHODS = [Scale().scaled, Scale.of_class, Scale().later, functools.lru_cache(Scale().scaled)]


@pytest.mark.parametrize("function", METHODS, ids=range(4))
def test_a_method_of_an_object_is_a_function_like_any_other(function: Callable[..., Any]) -> None:
    assert run_stage(Spinney().job(function), n=2).value == 6


def test_a_lambda_needs_a_name() -> None:
    assert run_stage(Spinney().job(name="triple")(lambda n: 3 * n), n=2).value == 6
    with pytest.raises(BadName, match="give it one with name="):
        Spinney().job(lambda n: 3 * n)


def test_the_function_of_a_job_type_may_be_a_stage_too() -> None:
    app = Spinney()

    @app.job
    async def fetch(n: int) -> int:
        return n + 1

    line = app.pipeline("line")
    line.stage(fetch)
    assert line.spec.stages[0].isolation is Isolation.ASYNC
    assert run_stage(line, n=2).value == 3
