"""Records of the queues before this layout: read, listed and moved."""

from datetime import UTC, datetime
from typing import Any

import pytest
from kazoo.client import KazooClient

from bridges.merritt.trees import tree
from spinney.bridges.merritt import AccessState, BatchState, JobState, MerrittQueue, MerrittZKNodeInvalid
from spinney.bridges.merritt.legacy.payload import parse, parse_properties, parse_xml
from spinney.bridges.merritt.legacy.records import LegacyQueue, LegacyStatus, parse_record

TIME = datetime(2023, 5, 17, 8, 30, 0, tzinfo=UTC)
PROPERTIES = r"""#Wed May 17 08:30:00 UTC 2023
batchID=bid-6e5b
jobID=jid-71c0
profile=ucsd_lib_content
submitter=dpr
filename=two.checkm
type=object-manifest
responseForm=json
creator=Jos\u00e9 \u00c1lvarez
title=A\: b \
    and c
localIdentifier=x;y
primaryIdentifier=ark\:/99999/fk4x
"""
XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<inv:submission xmlns:inv="http://uc3.cdlib.org/inv"><inv:manifestURL>http://store/manifest/1</inv:manifestURL>
<inv:mode>add</inv:mode></inv:submission>"""


def record(status: int, payload: bytes, time: int = int(TIME.timestamp())) -> bytes:
    return bytes([status]) + time.to_bytes(8, "big") + payload


@pytest.mark.parametrize("time", [int(TIME.timestamp()), int(TIME.timestamp()) * 1000])
def test_a_record_with_properties(time: int) -> None:
    data = record(0, PROPERTIES.encode(), time)
    parsed = parse_record(LegacyQueue.INGEST, "/ingest/mrtQ-02100000000003", data)

    assert (parsed.priority, parsed.number, parsed.status) == (2, 3, LegacyStatus.PENDING)
    assert parsed.time == TIME
    assert parsed.fields["creator"] == "José Álvarez"
    assert parsed.fields["title"] == "A: b and c"
    assert parsed.fields["primaryIdentifier"] == "ark:/99999/fk4x"


@pytest.mark.parametrize(
    ("name", "priority", "number"),
    [
        ("mrtQ-050000212177", 5, 212177),
        ("mrtQ-02100000000003", 2, 3),
        ("mrtQ-0000000001", None, None),
        ("other", None, None),
    ],
)
def test_names(name: str, priority: int | None, number: int | None) -> None:
    parsed = parse_record(LegacyQueue.INGEST, f"/ingest/{name}", record(5, b""))
    assert (parsed.priority, parsed.number, parsed.status) == (priority, number, LegacyStatus.HELD)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb:2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a  =  b  \n", {"a": "b  "}),
        ("# no\n! no\n\na", {"a": ""}),
        (r"a\ b\=c=d\te", {"a b=c": "d\te"}),
        ("a=b\\\r\n   c", {"a": "bc"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=\\u00E9\\z", {"a": "éz"}),
        ("\\ud83d\\ude00=\\uD83D\\uDE00!", {"\U0001f600": "\U0001f600!"}),
        ("", {}),
    ],
)
def test_properties_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_properties_in_latin_1() -> None:
    assert parse("/ingest/x", "who=José".encode("iso-8859-1")) == {"who": "José"}


def test_xml_and_the_xml_of_java_properties() -> None:
    assert parse("/x", XML) == {"manifestURL": "http://store/manifest/1", "mode": "add"}
    properties = b"""<?xml version="1.0"?><!DOCTYPE properties SYSTEM "http://java.sun.com/dtd/properties.dtd">
    <properties><comment>c</comment><entry key="a">1 &lt; 2 &amp; 3</entry></properties>"""
    assert parse("/x", properties) == {"comment": "c", "a": "1 < 2 & 3"}


def test_an_element_of_nothing_but_a_less_than_sign_is_that_sign() -> None:
    assert parse_xml("/x", b"<a><b>&lt;</b><c><![CDATA[<]]></c></a>") == {"b": "<", "c": "<"}


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
        '<!DOCTYPE a [<!ENTITY % b SYSTEM "http://127.0.0.1:1/x">%b;]><a/>',
        "<!DOCTYPE a ["
        + '<!ENTITY a0 "lol">'
        + "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 9}">' for i in range(9))
        + "]><a/>",
    ],
)
def test_xml_with_entities_is_refused(text: str) -> None:
    with pytest.raises(MerrittZKNodeInvalid, match="declares an entity"):
        parse_xml("/x", text.encode())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\xac\xed\x00\x05sr", "serialized Java object"),
        (b"<a><b></a>", "no XML"),
        (b"<a>" * 60, "levels"),
        (b'{"a":', "no JSON"),
        pytest.param(b'{"a":' + b"[" * 200_000, "no JSON", id="too deep for Python"),
        pytest.param(b'{"a":' + b"[" * 60 + b"]" * 60 + b"}", "levels", id="too deep"),
        (b"<a>&undefined;</a>", "no XML"),
        (b"title=\\ude00\\ud83d", "half of a character"),
        (b'{"title":["\\ud83d"]}', "half of a character"),
    ],
)
def test_what_cannot_be_read_is_said(data: bytes, says: str) -> None:
    with pytest.raises(MerrittZKNodeInvalid, match=says):
        parse("/ingest/mrtQ-020000000001", data)


@pytest.mark.parametrize("data", [b"", b"\x00" * 8, b"\x09" + b"\x00" * 8, b"\x00" + b"\x7f" * 8])
def test_headers_that_are_none(data: bytes) -> None:
    with pytest.raises(MerrittZKNodeInvalid, match="/ingest/x"):
        parse_record(LegacyQueue.INGEST, "/ingest/x", data)


@pytest.fixture
def old_queues(client: KazooClient) -> dict[str, bytes]:
    nodes = {
        "/ingest/mrtQ-020000000000": record(0, PROPERTIES.encode()),
        "/ingest/mrtQ-070000000001": record(3, PROPERTIES.replace("jid-71c0", "jid-71c1").encode()),
        "/ingest/mrtQ-050000000002": record(1, PROPERTIES.encode()),
        "/ingest/mrtQ-050000000003": record(4, PROPERTIES.encode()),
        "/ingest/mrtQ-050000000004": record(
            5,
            b"profile=other\nobjectID=ark:/99999/fk4y\nlocalID=z\nupdate=true\ndigestType=md5\ndigestValue=0f",
        ),
        "/ingest/mrtQ-050000000005": record(0, b"\xac\xed\x00\x05"),
        "/mrt.inventory.full/mrtQ-050000000000": record(0, XML),
        "/accessSmall.1/mrtQ-050000000000": record(0, b'{"token":"t","cloud-content-byte":5}'),
        "/accessLarge.1/mrtQ-050000000000": record(3, b'{"token":"u"}'),
    }
    for path, data in nodes.items():
        client.create(path, data, makepath=True)
    return nodes


def left(client: KazooClient, nodes: dict[str, Any]) -> list[str]:
    return [path for path in nodes if client.exists(path)]


def test_listing_and_a_dry_run_change_nothing(
    client: KazooClient, queue: MerrittQueue, old_queues: dict[str, bytes]
) -> None:
    records, errors = queue.legacy()
    assert [record.path for record in records] == [
        path for path in sorted(old_queues, key=order) if "00005" not in path
    ]
    assert len(errors) == 1

    moves = queue.move_legacy(dry_run=True)

    assert {move.path for move in moves} == set(old_queues)
    assert [move.action.split()[0] for move in moves].count("Would") == 6
    assert {path: client.get(path)[0] for path in old_queues} == old_queues
    assert tree(client) == {}


def order(path: str) -> tuple[int, str]:
    return [each.value for each in LegacyQueue].index(path.rpartition("/")[0]), path


def test_moving(client: KazooClient, queue: MerrittQueue, old_queues: dict[str, bytes]) -> None:
    moves = {move.path: move for move in queue.move_legacy(dry_run=False)}

    assert left(client, old_queues) == [f"/ingest/mrtQ-05000000000{number}" for number in (2, 3, 5)]
    assert all(
        bool(move.target) != client.exists(path) for path, move in moves.items() if not client.exists(path)
    )
    assert "works at it" in moves["/ingest/mrtQ-050000000002"].action
    assert "serialized Java object" in moves["/ingest/mrtQ-050000000005"].action

    batch = queue.batches.find_by_uuid("bid-6e5b")
    assert batch is not None
    assert (batch.state, batch.submission["profile"]) == (BatchState.PROCESSING, "ucsd_lib_content")
    jobs = {job.priority: job for job in queue.jobs.list() if job.bid == batch.id}
    assert {priority: job.state for priority, job in jobs.items()} == {
        2: JobState.PENDING,
        7: JobState.FAILED,
    }
    assert jobs[2].configuration == {
        "profile_name": "ucsd_lib_content",
        "submitter": "dpr",
        "payload_url": "two.checkm",
        "payload_type": "object-manifest",
        "response_type": "json",
        "submissionDate": "",
        "batchID": "bid-6e5b",
        "jobID": "jid-71c0",
        "filename": "two.checkm",
    }
    assert jobs[2].identifiers == {"primary_id": "ark:/99999/fk4x", "local_id": ["x", "y"]}
    assert jobs[2].metadata["erc_who"] == "José Álvarez"
    (held,) = queue.jobs.list(JobState.HELD)
    assert held.bid != batch.id
    assert held.identifiers == {"primary_id": "ark:/99999/fk4y", "local_id": ["z"]}
    assert held.metadata == {"erc_where": "z"}
    payload = [held.configuration.get(name) for name in ("update", "digest_type", "digest_value")]
    assert payload == ["true", "md5", "0f"]
    (recording,) = queue.jobs.list(JobState.RECORDING)
    assert recording.inventory == {"manifest_url": "http://store/manifest/1", "mode": "add"}
    assert recording.last_successful_status == "Storing"
    assert queue.access.list("small", AccessState.PENDING)[0].token == {"token": "t", "cloud-content-byte": 5}
    assert queue.access.list("large", AccessState.FAILED)[0].token == {"token": "u"}
    assert queue.check() == []

    before = tree(client)
    assert [move.target for move in queue.move_legacy(dry_run=False)] == [None] * 3
    assert tree(client) == before


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    "payload",
    [
        b'{"batchID":"../x"}',
        b'{"batchID":"a/b"}',
        b'{"batchID":"a\\u0000"}',
        b'{"batchID":"\\ufffd"}',
        b'{"batchID":"\\ud83d\\ude00"}',
        b'{"primaryIdentifier":5}',
        b'{"localIdentifier":{"a":1}}',
        b'{"a":' + b"[" * 200_000,
    ],
    ids=["above", "below", "nul", "special", "astral", "number", "object", "nested"],
)
def test_a_record_that_cannot_be_moved_stays_and_those_behind_it_are_moved(
    client: KazooClient, queue: MerrittQueue, payload: bytes, dry_run: bool
) -> None:
    bad, good = "/ingest/mrtQ-020000000000", "/ingest/mrtQ-020000000001"
    client.create(bad, record(0, payload), makepath=True)
    client.create(good, record(0, PROPERTIES.encode()))

    moves = {move.path: move for move in queue.move_legacy(dry_run=dry_run)}

    assert moves[bad].action.startswith("Stays: ")
    assert moves[bad].target is None
    assert client.get(bad)[0] == record(0, payload)
    assert (moves[good].target is not None, client.exists(good) is None) == (not dry_run, not dry_run)
    assert len(queue.jobs.list()) == (0 if dry_run else 1)
    assert queue.check() == []


def test_a_batch_is_not_created_with_a_uuid_that_no_node_can_have(queue: MerrittQueue) -> None:
    with pytest.raises(MerrittZKNodeInvalid, match="name of a node"):
        queue.batches.create({"batchID": "a/b"})


def test_a_record_that_changed_meanwhile_stays(
    client: KazooClient, queue: MerrittQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spinney.bridges.merritt.legacy import move

    path = "/ingest/mrtQ-020000000000"
    client.create(path, record(0, PROPERTIES.encode()), makepath=True)
    read = move.list_records

    def read_and_consume(*args: Any) -> Any:
        entries = read(*args)
        client.set(path, record(1, PROPERTIES.encode()))
        return entries

    monkeypatch.setattr(move, "list_records", read_and_consume)

    (stays,) = queue.move_legacy(dry_run=False)

    assert stays.target is None
    assert client.exists(path)
    assert tree(client) == {}
