"""The signal by which a stage has ended, as what it has to be."""

from spinney import Defer, Fail
from spinney.testing import StageResult


def failure(ran: StageResult) -> Fail:
    assert isinstance(ran.signal, Fail), (ran.outcome, ran.message)
    return ran.signal


def deferral(ran: StageResult) -> Defer:
    assert isinstance(ran.signal, Defer), (ran.outcome, ran.message)
    return ran.signal
