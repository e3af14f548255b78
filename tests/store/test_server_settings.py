"""What a DBA has set for a server, a database or a role, and what a store on it makes of that."""

import subprocess
import sys
from urllib.parse import urlsplit

import psycopg
import pytest

from servers import postgres_schema, postgres_url
from spinney.model.errors import StoreUnusable
from spinney.store.sql.connection.postgres_connection import Connector

SET = "client_encoding=LATIN1&options=-c%20idle_session_timeout%3D1h"


def test_texts_have_every_letter_and_idle_connections_stay() -> None:
    with (
        postgres_schema() as url,
        Connector(f"{url}&{SET}").connected() as connection,
    ):
        row = connection.execute(
            "select %s::text, current_setting('idle_session_timeout')", ("\u0416\U0001f600",)
        )
        assert row.fetchone() == ("\u0416\U0001f600", "0")


def test_the_driver_prints_nothing_of_its_own_in_a_command() -> None:
    """On Ctrl-C while the server does not answer it would warn on stderr, in words that say nothing to a user."""
    line = (
        "import logging, spinney.store.sql.connection.postgres_connection; "
        "logging.getLogger('psycopg').warning('query cancellation failed')"
    )

    result = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)

    assert (result.returncode, result.stderr) == (0, "")


def test_a_database_whose_encoding_lacks_letters_is_refused() -> None:
    name = urlsplit(postgres_url()).path[1:] + "_latin1"
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(
            f'create database "{name}" encoding "LATIN1" locale "C" template template0 strategy file_copy'
        )
        try:
            with pytest.raises(StoreUnusable, match="createdb -E UTF8"):
                Connector(urlsplit(postgres_url())._replace(path=f"/{name}").geturl()).connect()
        finally:
            connection.execute(f'drop database "{name}" with (force)')
