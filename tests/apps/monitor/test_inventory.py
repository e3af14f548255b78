"""The tables of the monitor: imports again and again, results once, and what is counted."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from spinney import Defer
from spinney.apps.monitor import check_stages, sequences, settings, upkeep
from spinney.apps.monitor.checks import uri
from spinney.apps.monitor.inventory import entities, imports, results, services
from spinney.apps.monitor.inventory.imports import Imported, Row, WrongRow
from spinney.apps.monitor.inventory.model import Result
from spinney.apps.monitor.settings import Network
from spinney.apps.monitor.tasks.modules import Context
from spinney.apps.monitor.tasks.task_list import Task
from spinney.tables.database import Database
from spinney.tables.errors import TablesAway, TablesUnusable
from spinney.testing import StageHarness

from .monitor import PATIENCE_S, Monitor, service


def row(line: int, **fields: Any) -> Row:
    made: dict[str, Any] = {"entity": "Sea Institute", "type": "wms", "uri": f"http://h/{line}", **fields}
    return Row(place=f"line {line}", **made)


def run(tables: Database, *rows: Row | WrongRow, is_part: bool = False) -> Imported:
    return imports.run(tables, iter(rows), is_part=is_part)


def result(gid: int, task: str, status: str, at_us: int, job_id: int, drops: tuple[str, ...] = ()) -> Result:
    return Result(
        gid=gid,
        task=task,
        status=status,
        info=f"{task} {status}",
        at_us=at_us,
        duration_s=0.1,
        job_id=job_id,
        drops=drops,
    )


def test_what_an_import_no_longer_names_is_retired_and_comes_back_with_its_number(tables: Database) -> None:
    first = run(tables, row(2), row(3))
    second = run(tables, row(2, description="Soil"))
    third = run(tables, row(2, description="Soil"), row(3))

    assert (first.added, first.retired) == (2, 0)
    assert (second.changed, second.retired) == (1, 1)
    assert (third.same, third.changed, third.added) == (1, 1, 0)
    assert [s.gid for s in services.all_present(tables)] == [1, 2]
    assert services.all_present(tables)[0].type == "WMS"


def test_a_part_retires_nothing_and_neither_does_a_file_with_a_wrong_line(tables: Database) -> None:
    run(tables, row(2), row(3))

    assert run(tables, row(2), is_part=True).retired == 0
    wrong = run(tables, row(2), WrongRow(sentence="line 3: uri is missing"))
    assert (wrong.retired, wrong.wrong) == (0, ["line 3: uri is missing"])
    doubled = run(tables, row(2), row(3), row(4, uri="http://h/2"))
    assert doubled.wrong == ["line 4: it is the same service as line 2; leave one of them out"]


def test_wrong_lines_are_told_by_their_numbers(monitor: Monitor) -> None:
    (monitor.place / "s.csv").write_text(
        "entity;type;uri;gid;email\n"
        "Sea;WMS;http://h/1;1;a@example.org\n"
        ";WMS;http://h/2;2;\n"
        "Sea;;http://h/3;3;\n"
        "Sea;WMS;http://h/4;four;\n"
        "Sea;WMS;http://h/5;5;not an address\n"
    )
    result = monitor.shell.call("monitor", "import", "s.csv")

    assert [line.partition(":")[0] for line in result.stderr.splitlines()[:4]] == [
        "line 3",
        "line 4",
        "line 5",
        "line 6",
    ]
    assert result.stdout == "1 added, 0 changed, 0 as before, 0 retired, 4 wrong\n"


def test_a_broken_address_is_imported_for_a_check_to_report(tables: Database, tmp_path: Path) -> None:
    run(tables, row(2), row(3))
    context = Context(timeout_s=5.0, data=tmp_path, network=Network())

    for broken in ("no scheme", "htp://127.0.0.1/x", "http//h/x", "http://[::1", "C:\\maps"):
        parsed = imports.parse(
            "line 2", {"entity": "Sea Institute", "type": "WMS", "uri": broken, "gid": "1"}
        )
        assert run(tables, parsed).wrong == []
        [present] = services.all_present(tables)  # the other one is retired
        assert uri.check(present, context).code == "invalid_uri"
        assert sequences.host_of(broken)


def test_wrong_items_of_json_are_told_by_their_numbers(monitor: Monitor) -> None:
    (monitor.place / "s.json").write_text(
        '[{"entity": "Sea",\n"type": "WMS", "uri": "http://h/1", "language": "pt-BR"},\n"no object",'
        '{"entity": "Sea", "type": "WMS", "uri": "http://h/3", "language": "Portuguese (Brazil)"},'
        '{"entity": "Sea", "type": "WMS", "uri": "http://h/1"}]'
    )
    result = monitor.shell.call("monitor", "import", "s.json")

    assert result.stderr.splitlines()[:3] == [
        "item 2: it is no object; write an object with entity, type, uri",
        "item 3: language must be a tag such as 'pt' or 'pt-BR', not 'Portuguese (Brazil)'",
        "item 4: it is the same service as item 1; leave one of them out",
    ]
    assert result.stdout == "1 added, 0 changed, 0 as before, 0 retired, 3 wrong\n"


def test_a_file_that_a_spreadsheet_wrote_is_read(monitor: Monitor) -> None:
    (monitor.place / "s.csv").write_bytes(
        "\ufeffEntity; Type ;URI;Description;\r\n"
        'Sea;WMS;http://h/1;"Soil; two\u00a0parts";\r\n'
        ";;;;\r\n"
        "Sea;WMS;http://h/1;;\r\n"
        ";;;;\r\n".encode()
    )
    result = monitor.shell.call("monitor", "import", "s.csv")

    assert result.stderr.splitlines()[0] == "line 4: it is the same service as line 2; leave one of them out"
    assert result.stdout == "1 added, 0 changed, 0 as before, 0 retired, 1 wrong\n"


def test_one_identifier_for_two_numbers_is_told(tables: Database) -> None:
    one = "0a5c1b1e-0000-4000-8000-000000000001"
    assert run(tables, row(2, gid=1, uuid=one), row(3, gid=2, uuid=one)).wrong == [
        "line 3: it is the same service as line 2; leave one of them out"
    ]


def test_entities_keep_the_numbers_that_clients_know(tables: Database) -> None:
    run(tables, row(2, entity="Soil", eid=7), row(3), row(4, entity="Roads", eid=3))
    numbers = {entity.description: entity.eid for entity in entities.query(tables, "%")}
    assert numbers == {"Soil": 7, "Sea Institute": 8, "Roads": 3}

    done = run(
        tables, row(2, entity="Soil", eid=8), row(3, entity="Water", eid=7), row(4, entity="Roads", eid=3)
    )

    assert done.wrong == [
        "line 2: 'Soil' has the eid 7, and not 8; correct it",
        "line 3: eid 7 is another entity's; correct it",
    ]
    assert {entity.description: entity.eid for entity in entities.query(tables, "%")} == numbers


def test_no_entity_gets_a_number_that_a_later_line_names(tables: Database) -> None:
    done = run(tables, row(2), row(3, entity="Soil"), row(4, eid=1), row(5, entity="Roads", eid=2))

    assert done.wrong == []
    numbers = {entity.description: entity.eid for entity in entities.query(tables, "%")}
    assert numbers == {"Sea Institute": 1, "Soil": 3, "Roads": 2}


@pytest.mark.parametrize("monitor", ["postgresql"], indirect=True)
def test_imports_at_once_give_no_number_twice(tables: Database, monitor: Monitor) -> None:
    imported: list[Imported] = []
    other = threading.Thread(target=lambda: imported.append(run(tables, row(2, entity="Soil"))))
    with tables.write() as connection:
        connection.execute(text("insert into mon_entities values (1, 'Sea', '', '', 'en', 'key')"))
        other.start()
        monitor.wait(lambda: _waits_for_a_lock(tables, "mon_entities"))
    other.join()

    assert [done.added for done in imported] == [1]
    numbers = {entity.description: entity.eid for entity in entities.query(tables, "%")}
    assert numbers == {"Sea": 1, "Soil": 2}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_new_service_may_take_the_address_from_which_another_moves(
    tables: Database, order: tuple[int, int]
) -> None:
    one = "0a5c1b1e-0000-4000-8000-000000000001"
    run(tables, row(2, uuid=one, uri="http://h/1"))
    moved = [row(2, uuid=one, uri="http://h/2"), row(3, uri="http://h/1")]

    for _ in range(2):
        assert run(tables, *(moved[number] for number in order)).wrong == []
        assert [(s.gid, s.uri, s.uuid == one) for s in services.by_numbers(tables, [1, 2, 3])] == [
            (1, "http://h/2", True),
            (2, "http://h/1", False),
        ]


def test_patterns_are_those_of_sql_and_case_counts(tables: Database) -> None:
    names = ["Solo 100%", "solo", "S*lo", "Mar [x]", "Mar_x"]
    run(tables, *(row(n, entity=name) for n, name in enumerate(names, 2)))

    def like(pattern: str) -> set[str]:
        return {entity.description for entity in entities.query(tables, pattern)}

    assert like("%") == set(names)
    assert like("S%") == {"Solo 100%", "S*lo"}
    assert like("s_lo") == {"solo"}
    assert like("S*lo") == {"S*lo"}
    assert like("Mar [x]") == {"Mar [x]"}
    assert like("x' OR '1'='1") == set()
    assert like("Mar\\_x") == set()


def test_a_result_is_stored_once_and_an_older_one_never_wins(tables: Database) -> None:
    run(tables, row(2))
    for _ in range(2):  # as when the stage runs again
        results.write(tables, [result(1, "http", "ok", 100, job_id=5)])
    results.write(tables, [result(1, "http", "error", 300, job_id=6)])
    results.write(tables, [result(1, "http", "ok", 200, job_id=7)])

    current = results.current(tables, [1])[1]
    assert [(r.status, r.at_us, r.since_us) for r in current] == [("error", 300, 300)]
    history = results.changes(tables, gid=1)
    assert [(c.at_us, c.before, c.status) for c in history] == [
        (300, "ok", "error"),
        (200, "error", "ok"),
        (100, "", "ok"),
    ]
    assert services.counts(tables) == {"error": 1, "warning": 0, "ok": 0, "unchecked": 0}


@pytest.mark.parametrize("status", ["error", "ok"])
def test_a_result_of_a_clock_that_was_ahead_is_replaced(tables: Database, status: str) -> None:
    run(tables, row(2))
    now_us = time.time_ns() // 1000
    results.write(tables, [result(1, task, "ok", now_us + 86_400_000_000, job_id=1) for task in ("a", "b")])

    results.write(tables, [result(1, "a", status, now_us, job_id=2)])
    results.drop(tables, 1, "b", now_us)

    (current,) = results.current(tables, [1])[1]
    assert (current.task, current.status, current.at_us, current.since_us) == ("a", status, now_us, now_us)


def test_results_of_one_task_that_are_written_together_follow_one_another(tables: Database) -> None:
    run(tables, row(2))
    results.write(tables, [result(1, "http", "ok", 100, job_id=1)])

    results.write(
        tables,
        [
            result(1, "http", "ok", 300, job_id=3),
            result(1, "http", "error", 200, job_id=2),
            result(1, "http", "error", 50, job_id=4),  # older than what is stored
        ],
    )

    history = results.changes(tables, gid=1)
    assert [(c.at_us, c.before, c.status) for c in history] == [
        (300, "error", "ok"),
        (200, "ok", "error"),
        (100, "", "ok"),
        (50, "ok", "error"),
    ]
    (current,) = results.current(tables, [1])[1]
    assert (current.status, current.at_us, current.since_us) == ("ok", 300, 300)


def test_an_error_drops_the_results_of_the_tasks_behind(tables: Database) -> None:
    run(tables, row(2), row(3))
    results.write(
        tables, [result(gid, task, "ok", 100, job_id=gid) for gid in (1, 2) for task in ("a", "b", "c")]
    )
    results.write(tables, [result(1, "a", "error", 200, job_id=9, drops=("b", "c"))])

    current = results.current(tables, [1, 2])
    assert [r.task for r in current[1]] == ["a"]
    assert [r.task for r in current[2]] == ["a", "b", "c"]


def test_many_threads_write_in_groups_and_nothing_is_lost(tables: Database) -> None:
    run(tables, *(row(n) for n in range(2, 42)))
    writer = results.ResultWriter(tables)
    begin = threading.Barrier(20)

    def write(first: int) -> None:
        begin.wait()
        for gid in (first, first + 20):
            writer.write(result(gid, "http", "ok", 100, job_id=gid))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 21)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert services.counts(tables)["ok"] == 40


def test_while_the_database_is_away_a_group_waits_for_it_once(
    tables: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[int] = []
    refused: list[str] = []

    def away(database: Database, group: Sequence[Result]) -> None:
        groups.append(len(group))
        raise TablesAway("the file was kept locked")

    def write(number: int) -> None:
        try:
            writer.write(result(number, "http", "ok", 100, job_id=number))
        except TablesAway as error:
            refused.append(str(error))

    monkeypatch.setattr(results, "write", away)
    monkeypatch.setattr(results, "WAITED_S", 0.0)
    writer = results.ResultWriter(tables, most=3, wait_s=PATIENCE_S)
    _at_once(write)
    assert (groups, refused) == ([3], ["the file was kept locked"] * 3)


def test_a_deadlock_or_a_lost_connection_costs_no_result(
    tables: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tables, *(row(line) for line in (2, 3, 4)))
    groups: list[int] = []
    really_write = results.write

    def lost(database: Database, group: Sequence[Result]) -> None:
        groups.append(len(group))
        if len(group) == 3:
            writer._wait_s = 0.0  # the others of the group wait for no more results
            raise TablesAway("the database ended the transaction (deadlock detected); go on")
        really_write(database, group)

    monkeypatch.setattr(results, "write", lost)
    monkeypatch.setattr(results, "WAITED_S", PATIENCE_S)
    writer = results.ResultWriter(tables, most=3, wait_s=PATIENCE_S)

    _at_once(lambda number: writer.write(result(number, "http", "ok", 100, job_id=number)))
    assert groups[0] == 3
    assert services.counts(tables)["ok"] == 3


def _at_once(write: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=write, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_group_waits_for_its_number_where_a_time_is_set(
    tables: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tables, *(row(n) for n in range(2, 5)))
    groups: list[int] = []
    write = results.write
    monkeypatch.setattr(results, "write", lambda *args: groups.append(len(args[1])) or write(*args))
    writer = results.ResultWriter(tables, most=3, wait_s=PATIENCE_S)

    threads = [
        threading.Thread(target=writer.write, args=(result(gid, "http", "ok", 100, job_id=gid),))
        for gid in (1, 2, 3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert groups == [3]
    results.ResultWriter(tables, most=3, wait_s=0.01).write(result(1, "http", "ok", 200, job_id=4))
    assert groups == [3, 1]


@pytest.mark.parametrize("monitor", ["postgresql"], indirect=True)
def test_no_result_appears_behind_the_newest_id_that_was_read(
    tables: Database, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "LOCK_S", PATIENCE_S)
    run(tables, row(2), row(3))
    stands, go_on = threading.Event(), threading.Event()

    def hold(connection: object) -> None:
        if threading.current_thread().name == "slow":
            stands.set()
            assert go_on.wait(PATIENCE_S)

    event.listen(tables._engine, "commit", hold)
    slow = threading.Thread(
        target=lambda: results.write(tables, [result(1, "http", "error", 100, job_id=1)]), name="slow"
    )
    slow.start()
    assert stands.wait(PATIENCE_S)
    results.write(tables, [result(2, "http", "error", 100, job_id=2)])
    read: list[list[int]] = []

    def mails() -> None:
        newest = results.newest_id(tables)
        read.append([change.gid for change in results.changes(tables, ids=range(1, newest + 1))])

    reader = threading.Thread(target=mails)
    reader.start()
    try:
        monitor.wait(lambda: bool(read) or _waits_for_a_lock(tables))
    finally:
        go_on.set()
        slow.join()
        reader.join()
        event.remove(tables._engine, "commit", hold)

    assert sorted(read[0]) == [1, 2]


@pytest.mark.parametrize("monitor", ["postgresql"], indirect=True)
def test_mails_are_deferred_and_results_written_while_something_keeps_the_table_of_results(
    tables: Database, monitor: Monitor
) -> None:
    run(tables, row(2))
    with tables.write() as other:
        # As VACUUM does, also where it has to, against wraparound.
        other.execute(text("lock table mon_history in share update exclusive mode"))
        harness = StageHarness()
        deferred = harness.run(upkeep.mails, "send")
        results.write(tables, [result(1, "http", "error", 100, job_id=1)])

        (pid,) = other.execute(text("select pg_backend_pid()")).one()
        assert isinstance(deferred.signal, Defer)
        assert f"process {pid}" in deferred.message
        assert "range" not in deferred.data

    assert harness.run(upkeep.mails, "send").value["newest_id"] == 1


@pytest.mark.parametrize("monitor", ["postgresql"], indirect=True)
def test_an_attempt_to_mail_that_is_repeated_needs_no_lock(tables: Database, monitor: Monitor) -> None:
    harness = StageHarness()
    first = harness.run(upkeep.mails, "send")
    with tables.write() as other:
        other.execute(text("lock table mon_history in share update exclusive mode"))
        assert harness.run(upkeep.mails, "send").value == first.value


def _waits_for_a_lock(tables: Database, table: str = "mon_history") -> bool:
    """Whether a statement about this table waits. Its lock may be that of a transaction, which names no table."""
    waiting = (
        f"select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%{table}%'"
    )
    with tables.read() as connection:
        return bool(connection.scalar(text(waiting)))


def test_old_results_are_thinned_to_the_changes(tables: Database) -> None:
    run(tables, row(2))
    for at_us, status in ((1, "ok"), (2, "ok"), (3, "error"), (4, "error"), (50, "error")):
        results.write(tables, [result(1, "http", status, at_us, job_id=at_us)])

    assert results.thin(tables, before_us=10) == 2
    assert [change.at_us for change in results.changes(tables)] == [50, 3, 1]


@pytest.mark.parametrize("monitor", ["sqlite"], indirect=True)
def test_changes_are_read_without_the_results_between_them(tables: Database) -> None:
    executed: list[tuple[str, Any]] = []

    def listen(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        executed.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        results.changes(tables, after_us=5, only_changes=True)
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    (query,) = [(text, values) for text, values in executed if text.startswith("SELECT")]
    with tables.read() as connection:
        plan = connection.exec_driver_sql(f"explain query plan {query[0]}", query[1]).all()
    assert [row.detail for row in plan] == ["SEARCH mon_history USING INDEX mon_history_changes (at_us>?)"]


@pytest.fixture
def imported(monitor: Monitor) -> Monitor:
    monitor.import_([service(1), service(2, entity="Town", type="WFS")])
    return monitor


def test_the_command_line_lists_what_is_there(imported: Monitor) -> None:
    assert "Sea Institute" in imported.shell.ok("monitor", "entities")
    assert "http://127.0.0.1:9/2" in imported.shell.ok("monitor", "services", "town")
    assert imported.shell.ok("monitor", "report") == "Sea Institute: 1 unchecked\n\nTown: 1 unchecked\n"
    assert imported.shell.call("monitor", "status", "99").stderr.startswith("spinney: there is no service 99")


def test_new_services_take_no_number_that_a_row_names(tables: Database) -> None:
    run(tables, row(2, uri="http://h/new"), row(3, gid=1), row(4, gid=2))
    run(tables, row(2, uri="http://h/newer"), is_part=True)

    assert [s.uri for s in services.all_present(tables)] == [
        "http://h/3",
        "http://h/4",
        "http://h/new",
        "http://h/newer",
    ]


@pytest.mark.parametrize("number", [-(2**32), -1, 0, 2**31, 2**63, 10**99])
def test_numbers_that_no_service_and_no_entity_can_have_name_nothing(tables: Database, number: int) -> None:
    run(tables, row(2))

    assert services.get(tables, number) is None
    assert entities.get(tables, number) is None
    assert [service.gid for service in services.by_numbers(tables, [number, 1])] == [1]


def test_the_same_service_twice_in_a_file_is_told(tables: Database) -> None:
    for _ in range(2):
        assert run(tables, row(2), row(3, uri="http://h/2")).wrong == [
            "line 3: it is the same service as line 2; leave one of them out"
        ]


def test_one_result_that_cannot_be_written_holds_up_no_other(tables: Database) -> None:
    run(tables, row(2))
    writer = results.ResultWriter(tables)
    failures: list[str] = []

    def write(gid: int) -> None:
        try:
            writer.write(result(gid, "http", "ok", 100, job_id=gid))
        except Exception:  # noqa: BLE001 - whatever the database says of it
            failures.append(str(gid))

    threads = [threading.Thread(target=write, args=(gid,)) for gid in (99, 1, 98)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(failures) == ["98", "99"]  # there are no such services
    assert services.counts(tables)["ok"] == 1


def test_no_text_has_a_nul(tables: Database) -> None:
    run(tables, row(2, description="Soil"))

    for pattern in ("%\0%", "\0", "Soil\0"):
        assert entities.query(tables, pattern) == []
        assert services.like_description(tables, pattern) == []


def test_while_the_tables_are_away_a_mail_that_was_sent_is_not_forgotten(
    tables: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its changes would be mailed once more an hour later."""
    harness = StageHarness(results={"send": {"eids": [1], "at_us": 1, "newest_id": 1}})
    run(tables, row(2))

    def away(*args: object) -> None:
        raise TablesAway("the database does not answer")

    with monkeypatch.context() as outage:
        outage.setattr(entities, "set_mailed", away)
        assert isinstance(harness.run(upkeep.mails, "record").signal, Defer)
    assert harness.run(upkeep.mails, "record").signal is None
    assert entities.mailed(tables, 1) == (1, 1)


@pytest.mark.parametrize(
    "error",
    [
        TablesAway("the database does not answer"),
        TablesUnusable("the database does not answer as it is; run init"),
    ],
    ids=["away", "unusable"],
)
def test_while_the_tables_cannot_be_used_checks_and_sequences_wait(
    tables: Database, monkeypatch: pytest.MonkeyPatch, error: TablesUnusable
) -> None:
    def away(*args: object) -> None:
        raise error

    monkeypatch.setattr(services, "get", away)
    monkeypatch.setattr(services, "all_present", away)
    task = Task(name="http", description="", file="10_http.py", kind="module", stamp="")
    check = check_stages._stage(task, (), settings.load())

    with pytest.raises(Defer, match="does not answer") as deferred:
        check(None, 1, "h")
    assert deferred.value.lane
    expanded = StageHarness().run(sequences.sequences, "expand", name="All", selection={})
    assert isinstance(expanded.signal, Defer)
    assert expanded.signal.lane


def test_while_the_settings_cannot_be_read_checks_and_sequences_wait(
    tables: Database, monitor: Monitor
) -> None:
    task = Task(name="http", description="", file="10_http.py", kind="module", stamp="")
    check = check_stages._stage(task, (), settings.load())
    file = monitor.place / settings.FILE
    before = file.read_bytes() if file.exists() else b""
    file.write_bytes(before + b"\ntimeout_s = [")

    with pytest.raises(Defer, match=settings.FILE) as deferred:
        check(None, 1, "h")
    assert deferred.value.lane
    harness = StageHarness()
    assert isinstance(harness.run(sequences.sequences, "expand", name="All", selection={}).signal, Defer)

    file.write_bytes(before)
    assert harness.run(sequences.sequences, "expand", name="All", selection={}).value == {"services": 0}
