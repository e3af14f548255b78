"""What the doctor says of a server: who keeps it from clearing up."""

import psycopg
import pytest

from servers import postgres_schema, postgres_url
from spinney.features.doctor.sql import integrity
from spinney.store.sql import open_store


def test_who_keeps_a_transaction_open_is_named_with_the_way_to_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(integrity, "OPEN_MOST_S", 0)
    with postgres_schema() as url, psycopg.connect(postgres_url(), application_name="a dump") as other:
        store = open_store(url)
        store.create()
        other.execute("set transaction isolation level repeatable read")
        other.execute("select count(*) from pg_class")

        violations = list(store.doctor.examine({"transaction-open"}, now_us=1))
        pid = other.info.backend_pid
        sentences = [v.sentence for v in violations if f"process {pid} " in v.sentence]
        other.rollback()

        assert len(sentences) == 1
        assert "a dump, idle in transaction" in sentences[0]
        assert f"select pg_terminate_backend({pid})" in sentences[0]
        assert not [
            v for v in store.doctor.examine({"transaction-open"}, now_us=1) if f"process {pid} " in v.sentence
        ]
        store.close()


def test_a_short_transaction_is_nobodys_concern() -> None:
    with postgres_schema() as url, psycopg.connect(postgres_url()) as other:
        store = open_store(url)
        store.create()
        other.execute("select count(*) from pg_class")
        assert not list(store.doctor.examine({"transaction-open"}, now_us=1))
        store.close()
