"""The three state machines: every pair of states, allowed or refused."""

from itertools import product

import pytest

from spinney.bridges.merritt import AccessState, BatchState, JobState, MerrittStateError
from spinney.bridges.merritt.states import (
    State,
    is_deletable,
    requeue_target,
    require_transition,
)

TABLES: dict[type, str] = {
    JobState: """
        Pending      -> Held Estimating Failed
        Held         -> Pending Deleted
        Estimating   -> Provisioning Failed
        Provisioning -> Downloading Failed
        Downloading  -> Processing Failed
        Processing   -> Storing Failed
        Storing      -> Recording Failed
        Recording    -> Notify Failed
        Notify       -> Completed Failed
        Completed    ->
        Failed       -> Pending Estimating Provisioning Downloading Processing Storing Recording Notify Deleted
        Deleted      ->
    """,
    BatchState: """
        Pending         -> Held Processing
        Held            -> Pending Deleted
        Processing      -> Reporting Failed
        Reporting       -> Completed Failed
        UpdateReporting -> Completed Failed
        Completed       ->
        Failed          -> UpdateReporting Deleted
        Deleted         ->
    """,
    AccessState: """
        Pending    -> Processing
        Processing -> Completed Failed
        Completed  ->
        Failed     -> Processing Deleted
        Deleted    ->
    """,
}


def allowed(kind: type) -> set[tuple[str, str]]:
    """Return the pairs of the table."""
    lines = [line.split("->") for line in TABLES[kind].strip().splitlines()]
    return {(before.strip(), after) for before, afters in lines for after in afters.split()}


def is_allowed(before: State, after: State) -> bool:
    try:
        require_transition("/jobs/jid0000000001", before, after)
    except MerrittStateError:
        return False
    return True


def test_a_refusal_says_what_is_allowed() -> None:
    with pytest.raises(
        MerrittStateError, match="/jobs/jid1 is Held and cannot become Notify; it can become Pending, Del"
    ):
        require_transition("/jobs/jid1", JobState.HELD, JobState.NOTIFY)


@pytest.mark.parametrize("kind", TABLES)
def test_exactly_the_pairs_of_the_table_are_allowed(kind: type[State]) -> None:
    passed = {
        (before.value, after.value) for before, after in product(kind, kind) if is_allowed(before, after)
    }

    assert passed == allowed(kind)


@pytest.mark.parametrize("kind", TABLES)
def test_the_states_after_which_none_comes_are_deletable(kind: type[State]) -> None:
    assert [state.value for state in kind if is_deletable(state)] == ["Completed", "Deleted"]


@pytest.mark.parametrize(
    ("last", "target"),
    [
        (None, "Estimating"),
        ("", "Estimating"),
        ("Pending", "Estimating"),
        ("Estimating", "Provisioning"),
        ("Provisioning", "Downloading"),
        ("Downloading", "Processing"),
        ("Processing", "Storing"),
        ("Storing", "Recording"),
        ("Recording", "Notify"),
        ("Failed", "Estimating"),
        ("Held", "Estimating"),
        ("no state", "Estimating"),
    ],
)
def test_a_failed_job_goes_on_after_its_last_successful_step(last: str | None, target: str) -> None:
    assert requeue_target(last).value == target
