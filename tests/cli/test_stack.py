"""Where a running attempt stands, on the command line."""

from collections.abc import Callable

from .shell import Shell, one_node


@one_node
def test_the_stack_of_a_running_job_and_what_is_kept_afterwards(
    working_for_all: Shell, until_true: Callable[[Callable[[], object]], None]
) -> None:
    flag = working_for_all.folder / "stack.flag"
    job = working_for_all.ok("submit", "until", "-p", f"flag={flag}").strip()
    until_true(lambda: '"state":"running"' in working_for_all.ok("show", job, "--json").replace(" ", ""))

    text = working_for_all.ok("stack", job)

    assert "thread MainThread:" in text
    assert "in until" in text
    flag.touch()
    working_for_all.ok("wait", job)
    assert "in until" in working_for_all.ok("stack", job)
    assert "in until" in working_for_all.ok("stack", job, "--kept")


@one_node
def test_where_nothing_runs_and_nothing_is_kept_it_says_so(working_for_all: Shell) -> None:
    done = working_for_all.ok("submit", "double", "-p", "n=1", "--wait").split()[0]
    assert "no stacks of it are kept" in working_for_all.refused(1, "stack", done)
