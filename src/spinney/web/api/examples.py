"""Examples for the API's document: each body that is sent, each answer, and each parameter.

Bodies are written out by their shapes, as somebody would send them; answers are made of their schemas, field by field,
of words that fit. So a field that is new is in the examples at once, and a test holds all of them to their schemas.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from spinney.web.api.json_routes import LINE_SCHEMA
from spinney.web.media_types import EVENT_STREAM, JSON, NDJSON

Schema = Mapping[str, Any]

NOW_US = 1_795_301_061_399_620
_JOB = 17
_HEAD = "41:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
BODIES: Mapping[str, Any] = {
    "RetryJob": {"reason": "the receiver is back", "stage": "fetch"},
    "SetCapacity": {"capacity": 3, "reason": "two more drives"},
    "CancelJob": {"reason": "sent twice", "tree": True},
    "ChangeQueue": {"limit": 20, "pin": ["node-1"], "reason": "more disks"},
    "SpawnSubjobs": {"jobs": [{"type": "resize", "params": {"picture": "/scans/page-1.tif"}}]},
    "ClaimAttempts": {"seen": 3, "limit": 2},
    "SettleAttempt": {"outcome": "ok", "result": {"words": 1_200}, "message": "1,200 words"},
    "PutAttemptData": {"name": "words", "value": 1_200},
    "AppendAttemptData": {"name": "words", "value": 1_200},
    "LayHold": {"scope": "queue", "name": "nightly", "reason": "the receiver is being repaired"},
    "HoldJob": {"reason": "the receiver is being repaired", "until": "2030-01-31T08:00:00Z"},
    "JoinExternalWorker": {
        "name": "transcriber-1",
        "lanes": [{"type": "talk", "stage": "listen"}],
        "slots": 2,
    },
    "SetRetention": {"keep_s": 2_592_000, "reason": "the archive has them"},
    "SendHeartbeat": {"seen": 4, "fences": [41, 42]},
    "TakeAttemptLock": {"name": "receiver:SG-1", "until": "job"},
    "MoveJob": {"queue": "nightly", "reason": "not urgent"},
    "AddWebhook": {
        "name": "archive",
        "url": "https://example.org/hooks/spinney",
        "events": ["failed", "batch"],
    },
    "ChangePassword": {"before": "the one that there is", "after": "correct horse battery staple"},
    "PauseSchedule": {"paused": True, "reason": "the source is away"},
    "OutputRequest": {"stream": "stdout", "text": "begun\n"},
    "PrioritiseJob": {"priority": 10, "reason": "wanted on Monday"},
    "ReportProgress": {"fraction": 0.25, "message": "12 of 48 minutes"},
    "CreateQueue": {"name": "nightly", "limit": 10, "reason": "large files"},
    "PutSchedule": {
        "type": "fetch",
        "cron": "0 3 * * *",
        "zone": "Europe/Berlin",
        "params": {"year": 2026},
    },
    "SetSlots": {"slots": 8, "reason": "more memory"},
    "MakeToken": {"name": "nightly", "rights": {"role": "submitter"}, "expires": "2030-01-31T08:00:00Z"},
    "AddUser": {
        "name": "bird-lab",
        "rights": {"role": "operator", "within": {"collections": ["birds"]}, "priorities": [20, 99]},
    },
    "ChangeUser": {"disabled": True, "reason": "left"},
    "RunBulk": {
        "verb": "retry",
        "filter": {"state": ["failed"], "type": "fetch"},
        "reason": "the source is back",
        "dry_run": True,
    },
    "ChangeWebhook": {"paused": True, "reason": "the receiver is being moved"},
}
"""Bodies of requests, by the name of their schema."""
_COMMON: dict[str, Any] = {
    "by": "alice",
    "collection": "birds",
    "head": _HEAD,
    "node": "node-1",
    "owner": "alice",
    "queue": "nightly",
    "reason": "the receiver is back",
    "stage": "fetch",
    "submitter": "alice",
    "type": "fetch",
}
"""Values of parameters and of response fields, by name."""
PARAMETERS: Mapping[str, Any] = _COMMON | {
    "Idempotency-Key": "2026-11-21/7",
    "below": 17,
    "created_after": "2030-01-31T08:00:00Z",
    "created_before": NOW_US,
    "failure": "9f86d0",
    "fence": 3,
    "hold": 4,
    "ids": [17],
    "job": 17,
    "jobs": [17],
    "last-event-id": "5f0c2a9be1d7.7",
    "message": "no space",
    "outcome": "failed",
    "parent": 17,
    "root": 17,
    "settled_before": NOW_US,
    "state": ["failed"],
    "token": "9f86d081884c",
}
"""Values of path and query parameters, by name; parameters with a default or an example of their own need none."""
TEXTS: Mapping[str, str] = {
    EVENT_STREAM: 'retry: 1000\n\nid: 5f0c2a9be1d7.7\nevent: job:17\ndata: {"id":17,"state":"running"}\n\n',
    "text/plain": "fetching\ndone\n",
}
"""Responses that are not JSON, by media type."""
_WORDS: dict[str, Any] = _COMMON | {
    "active": ["nightly"],
    "allowed": ["cancel", "hold"],
    "answer": "ok",
    "attempts": 1,
    "barred": [],
    "call": "9f86d081",
    "capacity": 3,
    "cause": "slots",
    "children": "settled",
    "command": "spinney nodes",
    "counts": {"completed": 98, "failed": 2},
    "delivery": "9f86d081884c7d65-17",
    "description": "Fetches a file.",
    "disbatch": 0,
    "event": "failed",
    "events": ["failed", "batch"],
    "exception": "TimeoutError",
    "external": [],
    "fence": 41,
    "fingerprint": "9f86d081884c7d65",
    "first": 41,
    "host": "node-1",
    "id": "9f86d081884c",
    "ignored": [],
    "interruptions": 0,
    "kind": "file",
    "lanes": [{"type": "talk", "stage": "listen"}],
    "last": 41,
    "lineage": "17",
    "link": "9f86d081",
    "links": {"self": "/api/v1/jobs/17"},
    "message": "done",
    "motus": 0,
    "name": "nightly",
    "nodes": ["node-1"],
    "order": "default",
    "outcome": "made",
    "params": {"year": 2026},
    "external_worker": "9f86d081",
    "path": "scans/page-1.tif",
    "pid": 4_711,
    "pinned": [],
    "priority": 50,
    "program": [],
    "queues": ["nightly"],
    "refused_jobs": 0,
    "role": "operator",
    "schedule": "nightly",
    "scope": "queue",
    "secret": "spn_9f86d081…",
    "sentence": "waits for a slot: all 8 of queue nightly are taken",
    "seq": 41,
    "share": "alice",
    "size": 2_048,
    "slots": 8,
    "state": "running",
    "states": {"pending": 40, "running": 8},
    "template": "receiver:{serno}",
    "types": ["fetch"],
    "unknown": [],
    "unserved": [],
    "until": "attempt",
    "url": "https://example.org/hooks/spinney",
    "user": "alice",
    "verb": "retry",
    "version": "1",
    "warnings": 0,
    "webhook": "archive",
    "what": "job 17",
    "zone": "Europe/Berlin",
}
"""Values of response fields by name, for schemas that allow them."""
_SHAPES: Mapping[str, dict[str, Any]] = {
    "JobDetails": {
        "fingerprint": None,
        "message": None,
        "progress": 0.25,
        "started_us": NOW_US,
        "superseded_by": None,
    },
    "Attempt": {"message": None},
    "Me": {"name": "alice"},
    "PasswordLink": {"path": "/welcome?link=…"},
    "NodeStatus": {"state": "active"},
    "StageSpec": {"name": "fetch"},
    "TypeSpec": {"name": "fetch"},
    "User": {"name": "alice"},
}
"""Values that differ in one schema."""
_NUMBERS: Mapping[str, Any] = {"integer": 2, "number": 1.5, "boolean": False}
_NULL = {"type": "null"}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def add_to(operation: dict[str, Any], schemas: Mapping[str, Schema]) -> None:
    """Add examples to the parameters, the body and the responses of an operation that have none.
    ``operation`` is changed in place; ``schemas``: those of the document, by name. Raises KeyError for a body
    whose schema is unknown."""
    making = _Making(schemas)
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in PARAMETERS and "examples" not in parameter["schema"]:
            parameter["example"] = PARAMETERS[parameter["name"]]
    sent = operation.get("requestBody", {}).get("content", {})
    if JSON in sent and "example" not in sent[JSON]:
        shape = _shape(sent[JSON]["schema"])
        sent[JSON]["example"] = BODIES[shape] if shape in BODIES else making.of(schemas[shape])
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            for kind, media in answer.get("content", {}).items():
                if kind == NDJSON:
                    line = making.of(media["schema"][LINE_SCHEMA]["oneOf"][0])
                    media.setdefault("example", orjson.dumps(line).decode() + "\n")
                elif kind in TEXTS:
                    media.setdefault("example", TEXTS[kind])
                elif kind == JSON:
                    media.setdefault("example", making.of(media["schema"]))


def _shape(schema: Schema) -> str:
    """Return the name of the schema, also of an optional body's."""
    option = next((option_ for option_ in schema.get("anyOf", ()) if option_ != _NULL), schema)
    return str(option["$ref"]).rpartition("/")[2]


class _Making:
    """Makes a value that fits a schema: a word of ``_WORDS`` for the field's name where it fits, else the
    simplest value."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas

    def of(self, schema: Schema, name: str = "", words: Mapping[str, Any] = _WORDS) -> Any:
        """Return a value for this schema. ``name``: the field that has it; ``words``: values by the names of
        fields."""
        schema = self._whole(schema)
        if "enum" in schema:
            return words.get(name) if words.get(name) in schema["enum"] else schema["enum"][0]
        if name in words and self._fits(words[name], schema):
            return words[name]
        if "anyOf" in schema:
            return None if _NULL in schema["anyOf"] else self.of(schema["anyOf"][0], name, words)
        kind = schema.get("type")
        if "properties" in schema:
            words = _WORDS | _SHAPES.get(schema.get("title", ""), {})
            return {field: self.of(of, field, words) for field, of in schema["properties"].items()}
        if kind == "array":
            return [
                self.of(item, name, words) for item in schema.get("prefixItems", [schema.get("items", {})])
            ]
        if kind == "object":
            return {}
        if kind == "integer" and name.endswith(("_us", "id", "ids", "touched", "reopened")):
            return NOW_US if name.endswith("_us") else _JOB
        return name if kind == "string" else _NUMBERS.get(str(kind))

    def _whole(self, schema: Schema) -> Schema:
        """Return the schema that a reference leads to."""
        while "$ref" in schema:
            schema = self._schemas[schema["$ref"].rpartition("/")[2]]
        return schema

    def _fits(self, value: Any, schema: Schema) -> bool:
        """Return whether the value is of a type that the schema allows; its bounds are not checked."""
        schema = self._whole(schema)
        if "anyOf" in schema:
            return any(self._fits(value, item) for item in schema["anyOf"])
        if "enum" in schema:
            return value in schema["enum"]
        kind = _TYPES.get(schema.get("type", ""))
        if kind is list and isinstance(value, list):
            return all(self._fits(item, schema.get("items", {})) for item in value)
        return kind is None or isinstance(value, kind)
