"""What lies beyond: S3, callbacks, an inventory that is away."""

import json
import sqlite3
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import boto3
import pytest

from apps.ingest.objects.scene import Service
from apps.ingest.signals import failure
from spinney.apps.ingest import application
from spinney.apps.ingest.config import open_resources
from spinney.reports import verify
from spinney.testing import StageHarness


def test_an_object_is_stored_in_s3(service: Service, s3_server: str, bucket: str) -> None:
    service.write(storage={"main": {"url": f"s3://{bucket}/archive", "endpoint": s3_server}})
    # Given that nobody has made it a storage root, nothing is stored there.
    deposit = service.of_files({"a": b"1"}, number=2)
    assert "is no storage root now" in deposit.to("processing").message
    assert "Contents" not in boto3.client("s3", endpoint_url=s3_server).list_objects_v2(Bucket=bucket)
    service.prepare()
    done = service.of_files({"a": b"1", "b": b"2"}).deposit()
    client: Any = boto3.client("s3", endpoint_url=s3_server)
    keys = [one["Key"] for one in client.list_objects_v2(Bucket=bucket)["Contents"]]
    assert "archive/0=ocfl_1.1" in keys
    storage = open_resources.storage(service.settings, "main")
    assert storage.verify(done["ark"]).faults == ()
    assert [file.path for file in storage.files(done["ark"])] == [
        "producer/a",
        "producer/b",
        "system/mrt-dc.xml",
        "system/mrt-erc.txt",
    ]


# --- callbacks --------------------------------------------------------------------------------


class Receiver(BaseHTTPRequestHandler):
    server: "Receiving"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.came.append((dict(self.headers), body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


class Receiving(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.came: list[tuple[dict[str, str], bytes]] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"


@pytest.fixture
def receiving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiving]:
    monkeypatch.setenv("SPINNEY_WEBHOOK_SECRET_PARTNER", "shared")
    with Receiving() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_callback_tells_of_the_object_and_is_signed(service: Service, receiving: Receiving) -> None:
    service.profile(
        hosts=[service.web.host, receiving.host],
        context="atlas",
        callback={"url": f"http://{receiving.host}/told", "secret": "partner"},
    )
    deposit = service.of_file()
    done = deposit.deposit()
    [message] = deposit.harness.submitted
    sent = StageHarness().run(application.outbox.webhook, **message.params)
    assert sent.outcome == "ok", sent.message
    [(headers, body)] = receiving.came
    verify("shared", headers, body, time.time())
    document = json.loads(body)
    assert (document["event"], document["ark"], document["version"], document["context"]) == (
        "deposited",
        done["ark"],
        1,
        "atlas",
    )
    assert headers["Spinney-Delivery"] == f"{deposit.order['jid']}.1"


def test_a_callback_to_a_private_address_is_not_made(service: Service, receiving: Receiving) -> None:
    service.profile(callback={"url": f"http://{receiving.host}/told?token=hush", "secret": "partner"})
    deposit = service.of_file()
    deposit.deposit()
    refused = StageHarness().run(application.outbox.webhook, **deposit.harness.submitted[0].params)
    assert not failure(refused).retryable
    assert "127.0.0.1" in refused.message
    assert "hush" not in refused.message
    assert receiving.came == []


def test_a_callback_waits_while_a_profile_cannot_be_read(service: Service, receiving: Receiving) -> None:
    target = {"url": f"http://{receiving.host}/told", "secret": "partner", "body": {}}
    (service.folder / "home/profiles/coins.toml").write_text("collection = ")
    assert StageHarness().run(application.outbox.webhook, **target).outcome == "defer"


# --- the inventory ----------------------------------------------------------------------------


def test_an_inventory_that_is_away_uses_no_attempt(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinney.tables.database._BUSY_S", 0.01)
    deposit = service.of_file()
    deposit.to("processing")
    open_resources._inventory.cache_clear()
    writer = sqlite3.connect(service.folder / "home/inventory.db", isolation_level=None)
    writer.execute("begin immediate")
    ran = deposit.run("recording")
    writer.rollback()
    writer.close()
    assert ran.outcome == "defer"
    assert deposit.run("recording").outcome == "ok"
