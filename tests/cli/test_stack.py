"""Where a running attempt stands, on the command line."""

from waiting import until

from .shell import Shell


def test_the_stack_of_a_running_job_and_what_is_kept_afterwards(working: Shell) -> None:
    flag = working.folder / "stack.flag"
    job = working.ok("submit", "until", "-p", f"flag={flag}").strip()
    until(lambda: '"state":"running"' in working.ok("show", job, "--json").replace(" ", ""))

    refusal = working.refused(1, "stack", job, "--kept")
    assert f"no stacks of job {job} are kept; 'spinney stack {job}' shows" in refusal
    text = working.ok("stack", job)

    assert "thread MainThread:" in text.splitlines()
    assert "in until" in text
    flag.touch()
    working.ok("wait", job)
    assert "in until" in working.ok("stack", job)
    output = working.ok("stack", job, "--kept")
    assert "in until" in output
    assert "thread MainThread:" in output.splitlines()


def test_where_nothing_runs_and_nothing_is_kept_it_says_so(working: Shell) -> None:
    done = working.ok("submit", "double", "-p", "n=1", "--wait").split()[0]
    assert "no stacks of it are kept" in working.refused(1, "stack", done)
