"""``spinney failures``, as people and programs see it."""

import pytest

from spinney.features.failures.cli import unique_prefix_length
from spinney.model.jobs import ClaimRequest, LaneRequest, NodeInfo, Record, SlotRequest
from spinney.model.outcomes import Outcome
from spinney.terminal.connection import now_us, open_local_store

from .shell import Shell

Failing = tuple[str, str, str]
"""Type, exception, message."""


def fail(shell: Shell, *failures: Failing) -> None:
    """Pending jobs fail in the order of their numbers, each so; nodes need not run for it."""
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        info = NodeInfo(
            id=0,
            name="n",
            boot_id="",
            host="",
            pid=1,
            slots=64,
            state="active",
            beat=0,
            started_us=1,
            seen_us=1,
            version="",
            types=(),
        )
        node = store.join(info, now_us=now_us())
        lanes = {(t.name, s.name): LaneRequest() for t in store.types().values() for s in t.stages}
        want = ClaimRequest(
            node_id=node, slots=[SlotRequest(n, 1, 1e5, True) for n in range(len(failures))], lanes=lanes
        )
        leases = sorted(store.flush_and_claim([], want, now_us=now_us()).leases)
        records = [
            Record(
                lease.job_id,
                lease.fence,
                Outcome.ERROR,
                1,
                2,
                message=message,
                retryable=False,
                error=f'{{"type": "{exception}"}}',
            )
            for lease, (_, exception, message) in zip(leases, failures, strict=True)
        ]
        store.flush_and_claim(records, None, now_us=now_us())


@pytest.fixture
def failed(shell: Shell) -> Shell:
    """Five jobs that failed with three causes, and one that did not fail."""
    failing: list[Failing] = [
        *[("double", "ConnectionError", f"refused by 10.0.0.{n}") for n in range(3)],
        ("double", "KeyError", "'na\x1b[31mme'"),
        ("tell", "OSError", "[Errno 2] No such file or directory: '/x/y'"),
    ]
    for type_, _, _ in failing:
        shell.ok("submit", type_, "-p", "n=1" if type_ == "double" else "text=x")
    fail(shell, *failing)
    shell.ok("submit", "double", "-p", "n=2")
    return shell


def test_failures_are_told_by_their_causes(failed: Shell) -> None:
    lines = failed.ok("failures").splitlines()

    assert lines[0] == "5 failures, 3 causes"
    assert lines[1].split() == ["FAILURE", "JOBS", "TYPE", "STAGE", "EXCEPTION", "MESSAGE", "FIRST", "LAST"]
    assert lines[2].split()[1:5] == ["3", "double", "double", "ConnectionError"]
    assert "refused by #" in lines[2]
    assert len(lines) == 6
    assert "\x1b" not in "".join(lines)


def test_what_to_do_next_names_the_most_frequent(failed: Shell) -> None:
    (first, *_) = failed.listed("failures")

    last = failed.ok("failures").splitlines()[-1]

    assert f"spinney retry --failure {first['fingerprint'][:8]}" in last


def test_programs_get_a_line_for_each_cause(failed: Shell) -> None:
    groups = failed.listed("failures")

    assert [f["jobs"] for f in groups] == [3, 1, 1]
    assert set(groups[0]) == {
        "fingerprint",
        "type",
        "stage",
        "exception",
        "message",
        "first_us",
        "last_us",
        "jobs",
    }
    assert len(groups[0]["fingerprint"]) == 16


def test_those_of_one_type_are_listed(failed: Shell) -> None:
    assert failed.ok("failures", "--type", "tell").startswith("1 failure, 1 cause\n")
    assert [f["type"] for f in failed.listed("failures", "--type", "double")] == ["double", "double"]
    assert "did you mean 'double'" in failed.refused(2, "failures", "--type", "dubble")


def test_that_more_causes_are_there_than_shown_is_told(failed: Shell) -> None:
    lines = failed.ok("failures", "--limit", "1").splitlines()

    assert lines[:2] == ["5 failures, 3 causes", "only the most frequent is shown; --limit shows more"]
    assert failed.ok("failures", "--limit", "2").splitlines()[1].startswith("the 2 most frequent are shown")
    assert len(failed.listed("failures", "--limit", "1")) == 1


def test_where_nothing_failed_that_is_told(shell: Shell) -> None:
    assert shell.ok("failures") == "0 failures, 0 causes\n"
    assert shell.ok("failures", "--json") == ""


def test_consequences_are_counted_beside(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    shell.ok("submit", "double", "-p", "n=2", "--needs", "1")
    fail(shell, ("double", "KeyError", "x"))

    assert shell.ok("failures").splitlines()[:2] == [
        "1 failure, 1 cause",
        "1 more job failed because a subjob or a needed job failed",
    ]


def test_a_job_that_was_opened_again_is_counted_no_longer(failed: Shell) -> None:
    failed.ok("retry", "1")

    assert failed.ok("failures").startswith("4 failures, 3 causes\n")


@pytest.mark.parametrize(
    ("marks", "digits"),
    [
        (["3f9a0b1c00000000"], 8),
        (["3f9a0b1c00000000", "3f9a0b1d00000000"], 8),
        (["3f9a0b1c00000000", "3f9a0b1c01000000"], 10),
        (["3f9a0b1c00000000", "3f9a0b1c00000001", "0" * 16], 16),
    ],
)
def test_so_many_digits_are_shown_that_no_two_causes_look_alike(marks: list[str], digits: int) -> None:
    assert unique_prefix_length(marks) == digits
