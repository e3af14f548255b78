"""Tests that share what is made once run in one process. Where that is broken nothing fails, but all takes longer."""

import pytest


@pytest.mark.xdist_group("one of a group")
def test_the_group_of_a_test_is_known_to_what_hands_tests_out(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("loadgroup", False):
        pytest.skip("tests are not handed out by groups")

    assert request.node.nodeid.endswith("@one of a group")


@pytest.fixture(scope="module")
def made_once() -> None:
    """What a module makes once."""


def test_a_module_that_makes_something_once_is_a_group(
    request: pytest.FixtureRequest, made_once: None
) -> None:
    if not request.config.getoption("loadgroup", False):
        pytest.skip("tests are not handed out by groups")

    assert request.node.nodeid.endswith(f"@{__name__}")


@pytest.mark.parametrize("case", [1, 2])
def test_the_cases_of_a_test_are_a_group(request: pytest.FixtureRequest, case: int) -> None:
    if not request.config.getoption("loadgroup", False):
        pytest.skip("tests are not handed out by groups")

    assert request.node.nodeid.endswith(f"[{case}]@{__name__}.test_the_cases_of_a_test_are_a_group")
