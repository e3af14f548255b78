"""Replies: a code, and its text in both formats.

The codes that clients know: 100 to 122 belong to commands, of which 101, 103, 105 and 109 refuse arguments or a
command, 113 a format; 501 is an internal error, 502 the reply to ``STOP``, and 503 a missing argument."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spinney.apps.monitor.line_protocol import layout

_MISSING = {"error_code": "missing_argument", "error_info": ""}


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply in both formats, each complete with the empty line at its end."""

    hr: str
    json: str

    def text(self, format_: str) -> str:
        """Return the reply in the format of a connection, with lines that end in LF."""
        return self.json if format_ == "JSON" else self.hr


def reply(code: int, hr: str, json: Mapping[str, Any]) -> Reply:
    """Return a reply with a text for people, and the fields of its JSON behind the code."""
    return Reply(hr, layout.json_text({"code": str(code), **json}))


def box(code: int, text: str, *, status: str | None = None) -> Reply:
    """Return a short reply, in a box for people. ``status``: a field of that name in JSON."""
    fields = {"status": status} if status else {}
    return reply(code, layout.box(f"[{code}] {text}"), {**fields, "message": text})


def refusal(code: int, text: str) -> Reply:
    """Return a refusal of arguments (101, 103, 105, 109, 503). In JSON it always has the ``error_code`` of a
    missing argument, as the old server's refusals have."""
    return reply(code, layout.box(f"[{code}] {text}"), {**_MISSING, "message": text})


def internal_error(text: str) -> Reply:
    """Return the reply to whatever went wrong while a command ran. ``text`` reaches the client, so it must
    not quote SQL."""
    return reply(
        501,
        layout.box(f"[501] Server internal error: {text}"),
        {"message": "Server internal error", "breakdown": [{"argument 1": text}]},
    )


def invalid_line(text: str) -> Reply:
    """Return the reply to what cannot be a command: a bare line, the same in both formats."""
    line = f"101: Invalid command line '{text}'\n"
    return Reply(line, line)


def nothing_found(text: str = "No valid records found") -> Reply:
    """Return the reply to arguments that name nothing."""
    return refusal(109, text)
