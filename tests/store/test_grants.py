"""Who owns a store on PostgreSQL and who works with it; what ``init`` would do, as a script; several stores in one
database."""

import re
import select
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import job_verbs
from private_server import PrivateServer, server_with_store_schema
from spinney.model.errors import StoreUnusable, UsageError
from spinney.model.jobs import ClaimRequest, Filter, LaneRequest, NodeInfo, Record, SlotRequest, Submission
from spinney.model.outcomes import Outcome
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.parts import Store
from spinney.store.sql import open_store


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    made = PrivateServer().start()
    with made.connect() as connection:
        connection.execute("create role gardener login; create role digger login; create role owner login")
        connection.execute("grant create on database postgres to gardener")
    yield made
    made.stop("immediate")


@pytest.fixture
def schema(server: PrivateServer) -> Iterator[str]:
    with server_with_store_schema(server) as name:
        yield name


def worked(store: Store, type_: str = "t") -> int:
    """A job has gone the whole way: registered, submitted, claimed, recorded, with what operators do meanwhile."""
    store.register([TypeSpec(name=type_, stages=(StageSpec(name="s"),))], [])
    node = NodeInfo(
        id=0,
        name="oak",
        boot_id="b",
        host="h",
        pid=1,
        slots=1,
        state="active",
        beat=0,
        started_us=1,
        seen_us=1,
        version="0",
        types=(type_,),
    )
    node_id = store.join(node, now_us=1)
    (job_id,) = store.submit([Submission(type=type_)], now_us=1).ids
    want = ClaimRequest(
        node_id=node_id, slots=[SlotRequest(0, 1, 0.0, True)], lanes={(type_, "s"): LaneRequest()}
    )
    (lease,) = store.flush_and_claim([], want, now_us=2).leases
    assert lease.job_id == job_id
    store.put_data(job_id, lease.fence, "a", "1", job_id)
    store.flush_and_claim([Record(job_id, lease.fence, Outcome.OK, 2, 3)], None, now_us=3)
    job_verbs.rerun(store, job_id, stage=None, by="ann", now_us=4)
    job_verbs.cancel(store, job_id, tree=False, by="ann", reason=None, now_us=5)
    job_verbs.delete(store, job_id, by="ann", now_us=6)
    store.note_removed_folders([job_id])
    store.sweep(now_us=7)
    store.update_node(node_id, state="left", now_us=8)
    assert len(store.audit.entries(limit=10)) >= 3
    return job_id


def test_a_role_that_may_only_work_with_the_store_does_all_that_nodes_and_operators_do(
    server: PrivateServer, schema: str
) -> None:
    owner = open_store(server.url(user="gardener", schema=schema))
    owner.create()
    owner.grant(["digger"])
    digger = open_store(server.url(user="digger", schema=schema))

    worked(digger)

    # ... and alters nothing: neither the tables, nor what the store is, nor what was done
    with psycopg.connect(server.url(user="digger"), autocommit=True) as connection:
        for forbidden in (
            "drop table {}.jobs",
            "alter table {}.jobs add column x int",
            "create table {}.x (y int)",
            "update {}.meta set value = ''",
            "delete from {}.alembic_version",
            "delete from {}.audit",
            "update {}.audit set by = ''",
            "truncate {}.jobs",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(sql.SQL(forbidden).format(sql.Identifier(schema)))
    digger.close()
    owner.close()


def test_tables_that_the_owner_makes_later_are_granted_with_it(server: PrivateServer, schema: str) -> None:
    owner = open_store(server.url(user="gardener", schema=schema))
    owner.create()
    owner.grant(["digger"])
    owner.close()
    with psycopg.connect(server.url(user="gardener"), autocommit=True) as connection:
        connection.execute(sql.SQL("create table {}.later (x int)").format(sql.Identifier(schema)))
    with psycopg.connect(server.url(user="digger"), autocommit=True) as connection:
        connection.execute(sql.SQL("insert into {}.later values (1)").format(sql.Identifier(schema)))


def test_one_who_does_not_own_the_store_may_not_make_it_or_grant_it(
    server: PrivateServer, schema: str
) -> None:
    digger = open_store(server.url(user="digger", schema=schema))
    with pytest.raises(StoreUnusable, match=r"digger may not make a store .* have a DBA run 'create schema"):
        digger.create()
    owner = open_store(server.url(user="gardener", schema=schema))
    owner.create()
    owner.grant(["digger"])
    for verb in (digger.create, lambda: digger.grant(["owner"])):
        with pytest.raises(
            StoreUnusable, match=r"belongs to the role gardener.*run 'spinney init' as gardener"
        ):
            verb()
    with pytest.raises(UsageError, match=r"there is no role 'nobody' .* 'create role nobody login'"):
        owner.grant(["nobody"])
    digger.close()
    owner.close()


def test_a_role_without_any_grant_is_told_whom_to_ask(server: PrivateServer, schema: str) -> None:
    owner = open_store(server.url(user="gardener", schema=schema))
    owner.create()
    owner.close()
    digger = open_store(server.url(user="digger", schema=schema))
    with pytest.raises(StoreUnusable, match="'spinney init --grant digger'"):
        digger.nodes()
    digger.close()


def test_a_schema_that_a_dba_has_made_for_the_owner_will_do(server: PrivateServer, schema: str) -> None:
    with server.connect() as connection:
        connection.execute(sql.SQL("create schema {} authorization owner").format(sql.Identifier(schema)))
    store = open_store(server.url(user="owner", schema=schema))
    store.create()
    worked(store)
    store.close()


# --- the script -------------------------------------------------------------------------------


def test_the_script_makes_what_init_makes(server: PrivateServer, schema: str) -> None:
    # Given the script for an empty place, which nothing has touched
    store = open_store(server.url(user="gardener", schema=schema))
    script = store.script(["digger"])
    with server.connect() as connection:
        assert connection.execute("select to_regnamespace(%s)", (schema,)).fetchone() == (None,)
    # When somebody runs it
    with psycopg.connect(server.url(user="gardener"), autocommit=True) as connection:
        connection.execute(script)
    # Then there is a store that works, also for the role it was granted to
    worked(store)
    digger = open_store(server.url(user="digger", schema=schema))
    worked(digger)
    digger.close()
    # ... the same as init makes
    with server_with_store_schema(server) as other:
        made = open_store(server.url(user="gardener", schema=other))
        made.create()
        made.grant(["digger"])
        assert _catalog(server, schema) == _catalog(server, other)
        made.close()
    # ... and init finds nothing to do
    before = _catalog(server, schema)
    store.create()
    assert _catalog(server, schema) == before
    store.close()


def test_the_script_of_a_store_that_is_current_changes_nothing(server: PrivateServer, schema: str) -> None:
    store = open_store(server.url(user="gardener", schema=schema))
    store.create()
    before, facts = _catalog(server, schema), store.facts()

    script = store.script()
    assert "create" not in script.lower()
    with psycopg.connect(server.url(user="gardener"), autocommit=True) as connection:
        connection.execute(script)

    assert (_catalog(server, schema), store.facts()) == (before, facts)
    store.close()


def test_a_file_has_neither_roles_nor_a_script(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    for verb in (lambda: store.grant(["digger"]), store.script):
        with pytest.raises(UsageError, match="is one file"):
            verb()


def _catalog(server: PrivateServer, schema: str) -> list[tuple[object, ...]]:
    """All that the database knows of a schema, but for its name and what is in the jobs' tables."""
    here = "relnamespace = to_regnamespace(%(schema)s)"
    looks = (
        f"select relname, relkind, reloptions, relacl, pg_get_userbyid(relowner) from pg_class where {here}",
        "select c.relname, attname, format_type(atttypid, atttypmod), attnotnull, attcollation, "
        f"pg_get_expr(adbin, adrelid) from pg_class c join pg_attribute on attrelid = c.oid and attnum > 0 "
        f"left join pg_attrdef on adrelid = c.oid and adnum = attnum where {here} and relkind = 'r'",
        f"select pg_get_indexdef(indexrelid) from pg_index join pg_class c on c.oid = indexrelid where {here}",
        "select conname, pg_get_constraintdef(o.oid) from pg_constraint o join pg_class c on c.oid = conrelid "
        f"where {here}",
        f"select pg_get_triggerdef(t.oid), tgenabled from pg_trigger t join pg_class c on c.oid = tgrelid where {here}",
        "select pg_get_functiondef(oid) from pg_proc where pronamespace = to_regnamespace(%(schema)s)",
        "select defaclobjtype, defaclacl from pg_default_acl where defaclnamespace = to_regnamespace(%(schema)s)",
    )
    statements: list[tuple[object, ...]] = []
    with server.connect() as connection:
        for look in looks:
            rows = connection.execute(look, {"schema": schema}).fetchall()
            statements += sorted([tuple(str(v).replace(schema, "S") for v in row) for row in rows])
        for table, column in (("meta", "name"), ("alembic_version", "version_num"), ("counters", "name")):
            rows = connection.execute(
                sql.SQL("select {} from {} order by 1").format(
                    sql.Identifier(column), sql.Identifier(schema, table)
                )
            ).fetchall()
            statements += [(table, *row) for row in rows]
    assert len(statements) > 200
    return statements


# --- several in one database ------------------------------------------------------------------


def test_two_in_one_database_know_nothing_of_each_other(server: PrivateServer) -> None:
    with server_with_store_schema(server) as one_schema, server_with_store_schema(server) as two_schema:
        one, two = (open_store(server.url(schema=name)) for name in (one_schema, two_schema))
        one.create()
        two.create()
        assert one.facts()["folder_token"] != two.facts()["folder_token"]
        listener = two.listen()
        assert listener is not None

        first = worked(one, "of-one")
        one.notify("one")
        signature = two.signature()
        one.submit([Submission(type="of-one")], now_us=9)

        assert two.signature() == signature, "nobody there looks because of what happens here"
        assert list(listener.poll()) == []
        assert (two.types(), two.nodes(), two.jobs(Filter()), two.audit.entries(limit=9)) == ({}, [], [], [])
        assert worked(two, "of-two") == first, "each counts for itself"
        listener.close()
        one.close()
        two.close()


@pytest.mark.parametrize("name", ["_9", "select", "x" * 63])
def test_names_of_schemas(server: PrivateServer, name: str) -> None:
    store = open_store(server.url(schema=name))
    store.create()
    try:
        worked(store)
        listener = store.listen()
        assert listener is not None
        store.notify("me")
        select.select([listener], [], [], 10)
        assert list(listener.poll()) == ["me"]
        listener.close()
    finally:
        store.close()
        with server.connect() as connection:
            connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(name)))


@pytest.mark.parametrize("name", ["", "Spinney", "9a", "a-b", "a b", 'a"b', "pg_x", "x" * 64, "ä", "a;b"])
def test_names_that_no_store_may_have(server: PrivateServer, name: str) -> None:
    with pytest.raises(UsageError, match="use small letters, digits and underscores"):
        open_store(
            server.url() + "?schema=" + re.sub(r"[^A-Za-z0-9_]", lambda m: f"%{ord(m.group()):02x}", name)
        )
