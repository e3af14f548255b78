"""``spinney audit``: what operators did, and the proof that nothing of it was changed."""

import json
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import job_verbs
from contract.behind import sql_store
from spinney.model.operators.audits import BEGINNING, AuditEntry, digest
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.store.sql.audit import note
from spinney.store.sql.schema.statements import GUARDS
from spinney.terminal.connection import open_local_store

from .shell import Shell


def hold(shell: Shell, name: str, call: str, by: str = "bob", at_us: int = 1_700_000_000_000_000) -> None:
    """One step of a call."""
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        store.holds.lay(Scope.TYPE, name, "both", Actor(by=by, call=call, reason="both"), now_us=at_us)


@pytest.fixture
def busy(shell: Shell) -> Shell:
    """Ann cancels two jobs, one by one; bob lays holds in a call of two steps, between which ann retries one."""
    shell.ok("submit", "double", "-p", "n=1")
    shell.ok("submit", "double", "-p", "n=2")
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        # The command refuses such a reason; an older version may have taken it.
        job_verbs.cancel(
            store, 1, tree=False, by="ann", reason="wrong\u202e batch", now_us=time.time_ns() // 1000
        )
    shell.ok("cancel", "2", "--by", "ann")
    hold(shell, "double", "b1")
    shell.ok("retry", "1", "--by", "ann")
    hold(shell, "tell", "b1")
    return shell


@pytest.fixture
def tamper(busy: Shell) -> Callable[[str], None]:
    """A statement of somebody who has the file."""

    def run(sql: str) -> None:
        with closing(sqlite3.connect(busy.folder / "spinney.db")) as connection:
            for name in GUARDS["sqlite"]:
                connection.execute(f"drop trigger {name}")
            connection.execute(sql)
            connection.commit()

    return run


def head(shell: Shell) -> str:
    return shell.ok("audit").splitlines()[-1].removeprefix("head ")


# --- list -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["audit"], ["audit", "list"]])
def test_verbs_are_listed_the_latest_last_and_then_the_head(busy: Shell, words: list[str]) -> None:
    heading, *lines, last = busy.ok(*words).splitlines()

    assert heading.split() == ["ENTRY", "WHEN", "BY", "VERB", "COUNT", "WHAT", "REASON"]
    assert [line.split()[0] for line in lines] == ["1", "2", "3–5", "4"]
    assert [line.split()[3:6] for line in lines] == [
        ["ann", "cancel", "1"],
        ["ann", "cancel", "1"],
        ["bob", "hold", "2"],
        ["ann", "retry", "1"],
    ]
    assert last.startswith("head 5:")
    assert len(last) == len("head 5:") + 64


def test_what_was_asked_is_told_in_words(shell: Shell) -> None:
    request = {
        "from": None,
        "jobs": list(range(11, 19)),
        "tree": True,
        "which": {"states": ["failed"], "type": "t"},
        "rights": {"within": {"queues": None}, "external": []},
        "after_s": 0,
    }
    with (
        open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store,
        sql_store(store).database.write() as tx,
    ):
        note(tx, 1, Actor(by="ann", call="c", reason=None), "cancel", request, 8)

    line = shell.ok("audit").splitlines()[1]

    assert line.rstrip().endswith(
        " 8      after 0 seconds, jobs 11 12 13 14 15 and 3 more, with all subjobs, "
        "filter (state failed, type t)"
    )


def test_a_call_of_several_steps_names_the_jobs_of_all(shell: Shell) -> None:
    for n in range(7):
        shell.ok("submit", "double", "-p", f"n={n}")

    shell.ok("cancel", "3", "4", "--by", "ann")
    shell.ok("hold", "1", "2", "5", "6", "7", "--reason", "wait", "--each")
    shell.ok("retry", "3", "4", "--queue", "default")

    whats = [line.split()[5:] for line in shell.ok("audit", "--limit", "3").splitlines()[1:-1]]
    assert [" ".join(what) for what in whats] == [
        "2 jobs 3 4",
        "5 jobs 1 2 5 6 7 wait",
        "2 queue default, jobs 3 4",
    ]


def test_a_reason_cannot_turn_the_terminal_round(busy: Shell) -> None:
    assert "wrong\\u202e batch" in busy.ok("audit").splitlines()[1]


def test_steps_are_shown_by_themselves_where_asked(busy: Shell) -> None:
    lines = busy.ok("audit", "--steps").splitlines()

    assert [line.split()[0] for line in lines[1:-1]] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("words", "entries"),
    [
        (["--limit", "2"], [3, 4]),
        (["--after", "1"], [2, 3, 4]),
        (["--after", "0", "--limit", "1"], [1]),
        (["--by", "ann"], [1, 2, 4]),
        (["--verb", "cancel"], [1, 2]),
        (["--by", "bob", "--verb", "cancel"], []),
        (["--steps", "--limit", "2"], [4, 5]),
        (["--steps", "--by", "bob"], [3, 5]),
    ],
)
def test_some_are_asked_for(busy: Shell, words: list[str], entries: list[int]) -> None:
    for command in (["audit"], ["audit", "list"]):
        listed = busy.listed(*command, *words)
        assert [e.get("seq", e.get("first")) for e in listed] == entries


def test_programs_get_what_was_asked_as_an_object(busy: Shell) -> None:
    entries = busy.listed("audit")

    assert entries[2]["what"]["name"] == "double"
    assert (entries[2]["first"], entries[2]["last"], entries[2]["steps"], entries[2]["count"]) == (3, 5, 2, 2)
    assert [len(e["link"]) for e in busy.listed("audit", "--steps")] == [64] * 5


def test_where_nothing_was_done_there_is_a_head_all_the_same(shell: Shell) -> None:
    assert shell.ok("audit") == f"head 0:{BEGINNING}\n"
    assert shell.ok("audit", "verify") == f"0 entries are intact\nhead 0:{BEGINNING}\n"


def test_the_head_is_there_for_programs_too(busy: Shell, tmp_path: Path) -> None:
    now = head(busy)

    assert busy.ok("audit", "head") == f"{now}\n"
    assert json.loads(busy.ok("audit", "head", "--json")) == {"entries": 5, "head": now}
    assert json.loads(busy.ok("audit", "verify", now, "--json")) == {"entries": 5, "up_to": now, "head": now}
    exported = busy.ok("audit", "export", str(tmp_path / "audit.jsonl"), "--json")
    assert json.loads(exported) == {"entries": 5, "head": now}


def test_an_option_before_the_wrong_word_is_told(busy: Shell) -> None:
    assert "spinney audit verify --limit" in busy.refused(2, "audit", "--limit", "3", "verify")


# --- verify ---------------------------------------------------------------------------------------


def test_a_whole_audit_is_proven(busy: Shell) -> None:
    early = head(busy)
    busy.ok("cancel", "1")

    assert busy.ok("audit", "verify").startswith("6 entries are intact\nhead 6:")
    assert busy.ok("audit", "verify", early).startswith(
        "6 entries are intact, and those up to that head are the same as when it was noted"
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("update audit set by = 'eve' where seq = 2", "entry 2 of the audit has been changed"),
        ("update audit set what = 'no json' where seq = 2", "entry 2 of the audit has been changed"),
        ("delete from audit where seq = 2", "entry 2 of the audit is missing"),
    ],
)
def test_a_broken_audit_is_told_with_code_1(
    busy: Shell, tamper: Callable[[str], None], sql: str, message: str
) -> None:
    tamper(sql)

    assert message in busy.refused(1, "audit", "verify")
    assert "eve" in busy.ok("audit") or "eve" not in sql, "it is still listed, as it stands"


def test_a_tail_that_was_cut_off_is_told_where_the_head_was_kept(
    busy: Shell, tamper: Callable[[str], None]
) -> None:
    audit_head = head(busy)
    tamper("delete from audit where seq = 5")

    busy.ok("audit", "verify")
    assert "it was cut off" in busy.refused(1, "audit", "verify", audit_head)


@pytest.mark.parametrize("wrong", ["5", "5:9f86", "five:" + "0" * 64])
def test_what_is_no_head_is_code_2(busy: Shell, wrong: str) -> None:
    assert "is no head of an audit" in busy.refused(2, "audit", "verify", wrong)


# --- export ---------------------------------------------------------------------------------------


def test_an_export_proves_itself(busy: Shell, tmp_path: Path) -> None:
    """With nothing but the file and what is written about the chain."""
    output = busy.ok("audit", "export", "audit.jsonl").splitlines()

    entries = [json.loads(line) for line in (busy.folder / "audit.jsonl").read_text().splitlines()]
    link = BEGINNING
    for entry in entries:
        link = digest(link, AuditEntry(**{k: v for k, v in entry.items() if k != "link"}))
        assert entry["link"] == link
    assert output == ["5 entries written to audit.jsonl", f"head 5:{link}"]
    assert busy.ok("audit", "verify", f"{entries[-1]['seq']}:{entries[-1]['link']}")


def test_an_export_is_its_owners_alone_and_leaves_nothing_beside_it(busy: Shell) -> None:
    before = set(busy.folder.iterdir())

    busy.ok("audit", "export", "audit.jsonl")

    assert set(busy.folder.iterdir()) - before == {busy.folder / "audit.jsonl"}
    assert stat.S_IMODE((busy.folder / "audit.jsonl").stat().st_mode) == 0o600


def test_an_export_overwrites_nothing(busy: Shell) -> None:
    (busy.folder / "audit.jsonl").write_text("mine")

    assert "is not overwritten" in busy.refused(1, "audit", "export", "audit.jsonl")
    assert (busy.folder / "audit.jsonl").read_text() == "mine"


def test_nor_what_comes_while_it_is_written(busy: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda self, **_: self.name == "spinney.db")
    (busy.folder / "audit.jsonl").write_text("mine")
    before = set(busy.folder.iterdir())

    assert "is not overwritten" in busy.refused(1, "audit", "export", "audit.jsonl")
    assert (busy.folder / "audit.jsonl").read_text() == "mine"
    assert set(busy.folder.iterdir()) == before


def test_an_export_into_a_folder_that_is_not_there_is_told(busy: Shell) -> None:
    assert "no-such-folder" in busy.refused(1, "audit", "export", "no-such-folder/audit.jsonl")
