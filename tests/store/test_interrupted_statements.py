"""Ctrl-C while a database server works on a statement."""

import os
import signal
import threading
from contextlib import closing

import psycopg
import pytest

from servers import postgres_url
from spinney.store.sql.connection.postgres_connection import Connector
from waiting import until

SLEEP = "select pg_sleep(600)"


def test_ctrl_c_ends_the_statement_and_does_not_wait_for_the_servers_consent() -> None:
    """A server that is frozen would never give it."""
    with (
        closing(Connector(postgres_url()).connect()) as connection,
        psycopg.connect(postgres_url(), autocommit=True) as looker,
    ):
        backend = connection.info.backend_pid

        def state() -> str | None:
            query = "select state from pg_stat_activity where pid = %s and query = %s"
            row = looker.execute(query, (backend, SLEEP)).fetchone()
            return None if row is None else row[0]

        def interrupt() -> None:
            until(lambda: state() == "active", "the server works on the statement")
            os.kill(os.getpid(), signal.SIGINT)

        interruption = threading.Thread(target=interrupt)
        interruption.start()
        with pytest.raises(KeyboardInterrupt):
            connection.execute(SLEEP)
        interruption.join()

        assert connection.closed
        until(lambda: state() is None, "the server has ended the statement and the session")
