"""What is read through a server is what is read from the store directly: to the byte, in tables and as JSON."""

import re

import pytest

from long_tests import long_alone

from .conftest import Both

READING = (
    "list",
    "list --json",
    "list --state failed",
    "list --count",
    "list --count --json",
    "list --oldest --limit 2",
    "list --after 3",
    "list --collection alpha",
    "list --root 4 --json",
    "list --parent 4",
    "list --roots",
    "list --type double --json",
    "list --node n1",
    "list --message flag",
    "list --since 1h",
    "list --older-than 1h",
    "show 1",
    "show 2 --json",
    "show 3",
    "show 3 --json",
    "show 4",
    "show 8",
    "show 8 --json",
    "tree 4",
    "tree 4 --json",
    "tree 4 --limit 2",
    "explain 8",
    "explain 1 3 8 --json",
    "logs 2",
    "logs 2 --stdout",
    "logs 3 --stderr",
    "files 2",
    "files 2 --json",
    "files 1",
    "failures",
    "failures --json",
    "failures --type fragile",
    "wait 1 4",
    "wait 3",
    "wait 1 --json",
    "holds",
    "holds --json",
    "queues",
    "queues --json",
    "queue default",
    "queue default --json",
    "locks",
    "locks --json",
    "locks --capacities",
    "lock download:*",
    "lock download:x --json",
    "lock other",
    "schedule list",
    "schedule list --json",
    "schedule show nightly",
    "schedule show nightly --json",
    "webhook list",
    "webhook list --json",
    "webhook show archive",
    "webhook deliveries archive --json",
    "keep",
    "keep --json",
    "user list",
    "user list --json",
    "user show ann",
    "token list",
    "audit",
    "audit --json",
    "audit list --steps",
    "audit list --steps --json --after 2",
    "audit list --verb hold",
    "audit head",
    "audit head --json",
    "audit verify",
    "audit verify --json",
    "retry --failure zz --dry-run",
    "retry --state failed --dry-run",
    "retry --state failed --dry-run --json",
    "retry 1 999 --dry-run",
    "cancel --type until --dry-run",
    "rerun --type double --dry-run",
)
WRONG = (
    "show 999",
    "explain 999",
    "tree 999",
    "logs 999",
    "files 999",
    "stack 2 --kept",
    "postmortem 1",
    "wait 999",
    "list --queue defalt",
    "list --type dobule",
    "list --root 5",
    "failures --type dobule",
    "queue defalt",
    "schedule show nightli",
    "schedule drop nightli",
    "webhook show archiv",
    "submit dobule",
    "submit double",
    "submit double -p n=x",
    "submit double -p n=1 -p m=2",
    "retry 1",
    "retry 999",
    "retry --type dobule",
    "move 8 --queue defalt",
    "cancel 1",
    "release --hold 77",
    "release --queue nothing",
    "priority 8",
    "unlock nothing --reason gone --yes",
    "user show bob",
    "token revoke nothing",
    "user add ann --role viewer --no-password",
    "keep nothing completed 3d",
    "hold 1 --reason why",
    "stats --type dobule",
    "stats --queue defalt",
    "queue default --type nothing",
)


@pytest.mark.parametrize(
    "words", [pytest.param(w, marks=long_alone) if f"{w} --json" in READING else w for w in READING]
)
def test_the_same_is_read_through_a_server(both: Both, words: str) -> None:
    # when
    here, afar = both.here(*words.split()), both.afar(*words.split())

    # then
    assert (afar.returncode, afar.stdout, afar.stderr) == (here.returncode, here.stdout, here.stderr)


@pytest.mark.parametrize("words", WRONG)
def test_the_same_is_refused_through_a_server(both: Both, words: str) -> None:
    # when
    here, afar = both.here(*words.split()), both.afar(*words.split())

    # then
    assert here.returncode != 0
    assert (afar.returncode, afar.stdout, afar.stderr) == (here.returncode, here.stdout, here.stderr)


@pytest.mark.parametrize("words", ["nodes --json", "stats --json"])
def test_what_moves_has_the_same_parts(both: Both, words: str) -> None:
    # when
    here, afar = both.here(*words.split()), both.afar(*words.split())

    # then
    assert afar.returncode == here.returncode == 0
    assert re.findall(r'"[a-z_]+":', afar.stdout) == re.findall(r'"[a-z_]+":', here.stdout)


@pytest.mark.parametrize("words", ["drain n1 --reason why", "resume n1", "slots n1 3", "slots n1 default"])
def test_nodes_are_told_alike(both: Both, words: str) -> None:
    # given
    if words.startswith("resume"):
        both.here("drain", "n1")

    # when
    here = both.here(*words.split())
    if words.startswith("resume"):
        both.here("drain", "n1")
    afar = both.afar(*words.split())

    # then
    assert (afar.returncode, afar.stdout, afar.stderr) == (0, here.stdout, here.stderr)
