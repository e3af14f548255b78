"""How often it is looked anew at who asks, by a clock of the test's own."""

import asyncio
from dataclasses import dataclass

import pytest

from spinney.features.files.output_stream import LOOK_S
from spinney.model.errors import Forbidden, StoreUnavailable
from spinney.web.principal_refresh import PrincipalRefresh
from spinney.web.problems import Unidentified
from spinney.web.request_context import REFRESH_S
from spinney.web.timed_cache import KEPT_S

PROMISED_S = 2.0
"""docs/server.md: so soon a change of rights is obeyed."""


@dataclass(frozen=True)
class Person:
    name: str
    role: str = "operator"


class Look:
    """Answers as the test says, and counts."""

    def __init__(self) -> None:
        self.now_s, self.looks = 100.0, 0
        self.answers: list[Person | Exception | None] = []

    async def __call__(self) -> Person | None:
        self.looks += 1
        answer = self.answers.pop(0) if self.answers else Person("ann")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def principal_refresh(self, every_s: float = 1.0) -> PrincipalRefresh:
        return PrincipalRefresh(
            Person("ann"), self, every_s=every_s, looked_s=self.now_s, monotonic=lambda: self.now_s
        )


def test_a_change_is_obeyed_within_what_is_promised() -> None:
    assert REFRESH_S + KEPT_S + LOOK_S <= PROMISED_S


async def test_given_a_look_that_is_not_old_then_there_is_none() -> None:
    look = Look()
    principal_refresh = look.principal_refresh()

    look.now_s += 0.99
    assert await principal_refresh.principal() == Person("ann")
    assert look.looks == 0
    look.now_s += 0.01
    look.answers = [Person("ann", "viewer")]
    assert await principal_refresh.principal() == Person("ann", "viewer")
    assert await principal_refresh.principal() == Person("ann", "viewer")
    assert look.looks == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, Unidentified),
        (Person("bob"), Unidentified),
        (Forbidden("no"), Forbidden),
        (StoreUnavailable("away"), StoreUnavailable),
    ],
    ids=["nobody", "somebody else", "refused", "away"],
)
async def test_given_nobody_any_more_then_it_is_said_and_looked_again_each_time(
    answer: Person | Exception | None, error: type[Exception]
) -> None:
    look = Look()
    principal_refresh = look.principal_refresh()
    look.now_s += 1
    look.answers = [answer, answer]

    for _ in range(2):
        with pytest.raises(error):
            await principal_refresh.principal()
    assert look.looks == 2


async def test_given_a_store_that_is_away_then_an_answer_waits_for_it() -> None:
    look = Look()
    principal_refresh = look.principal_refresh(every_s=0.0)
    look.answers = [StoreUnavailable("away"), StoreUnavailable("away"), Person("ann", "viewer")]

    assert await principal_refresh.steady_principal() == Person("ann", "viewer")


async def test_given_a_long_call_and_other_rights_then_it_is_told_to_stop_once() -> None:
    look = Look()
    principal_refresh = look.principal_refresh(every_s=0.0)
    look.answers = [Person("ann"), StoreUnavailable("away"), Person("ann", "viewer")]
    refusals: list[Forbidden] = []

    async with asyncio.timeout(10):
        await principal_refresh.watch(refusals.append)

    assert "the rights of ann have changed" in str(refusals[0])
    assert len(refusals) == 1
