"""One rule for going on, resuming, retrying and regrowing: the first stage that has not passed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.model.attempts.progress import again_stages, next_stage, stages_from
from spinney.model.types import StageSpec, TypeSpec

SPEC = TypeSpec(
    name="t",
    stages=(
        StageSpec(name="expand"),
        StageSpec(name="merge", again=True),
        StageSpec(name="publish"),
        StageSpec(name="report", again=True),
    ),
)
NAMES = [s.name for s in SPEC.stages]


@pytest.mark.parametrize(
    ("passed", "following"),
    [
        ([], "expand"),
        (["expand"], "merge"),
        (["expand", "merge", "publish"], "report"),
        (["expand", "publish"], "merge"),
        (NAMES, None),
        (["vanished"], "expand"),
    ],
)
def test_a_job_goes_to_the_first_stage_that_has_not_passed(passed: list[str], following: str | None) -> None:
    assert next_stage(SPEC, passed) == following


@given(st.sets(st.sampled_from(NAMES)))
def test_going_on_from_anywhere_passes_every_stage_once_and_ends(passed: set[str]) -> None:
    ran = []
    while (stage := next_stage(SPEC, passed)) is not None:
        ran.append(stage)
        passed = passed | {stage}

    assert len(ran) == len(set(ran))
    assert ran == sorted(ran, key=NAMES.index)
    assert passed == set(NAMES)


def test_a_rerun_supersedes_that_stage_and_all_behind_it() -> None:
    assert stages_from(SPEC, "publish") == ["publish", "report"]
    assert stages_from(SPEC, "expand") == NAMES
    assert stages_from(SPEC, "vanished") == []


def test_regrowing_supersedes_what_is_marked_again() -> None:
    assert again_stages(SPEC) == ["merge", "report"]
