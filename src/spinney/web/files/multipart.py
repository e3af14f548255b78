"""A form with files (RFC 7578), written to disk as it comes: memory holds at most one piece of it.

The parser of python-multipart calls back for each part of a piece. Those calls are only collected in the
event loop, and carried out in a thread when the piece is parsed, since they write files. Limits are checked
as the form comes, so that nothing that is too long is read to its end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack
from typing import Any, BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException

from spinney.model.errors import UsageError
from spinney.web.files.spool import Upload

JOB = "job"
"""The name of the part that is no file."""
JOB_MAX_BYTES = 2 * 2**20
"""The most bytes of all fields of a form together, which are kept in memory."""
FILES_MAX = 1_000
"""The most files of one form."""
FIELDS_MAX = 1_000
"""The most fields of one form."""
MULTIPART = "multipart/form-data"

Event = tuple[str, bytes]
"""What the parser tells: one of ``_KINDS``, and its data."""
_KINDS: Mapping[str, str] = {
    "on_part_begin": "begin",
    "on_header_field": "field",
    "on_header_value": "value",
    "on_header_end": "header",
    "on_headers_finished": "open",
    "on_part_data": "data",
    "on_part_end": "close",
    "on_end": "end",
}
"""The kinds of events, by the names of the parser's callbacks, in the order in which they come."""


async def read(content_type: str, body: AsyncIterator[bytes], upload: Upload) -> bytes:
    """Write the files of the form into ``upload``, and return the content of the part ``job``. The parts may
    come in any order.

    Raises HTTPException (400: the body is no such form), UsageError (a path, too many files, no part
    ``job``), and DiskFull."""
    form = await _parsed(content_type, body, lambda stack: _Form(upload, stack, only=JOB))
    if not form.texts:
        raise UsageError(
            f"the form has no part {JOB!r}; send the job there, as JSON, and files in parts of their own"
        )
    return bytes(form.texts[0][1])


async def read_fields(content_type: str, body: AsyncIterator[bytes], upload: Upload) -> list[tuple[str, str]]:
    """Write the files of a page's form into ``upload``, and return names and values of its other fields, in
    their order. A file field in which nothing was chosen is left out.

    Raises HTTPException (400: the body is no such form), UsageError (a path, too many files or fields), and
    DiskFull."""
    form = await _parsed(content_type, body, lambda stack: _Form(upload, stack, only=None))
    try:
        return [(name, bytes(text).decode()) for name, text in form.texts]
    except UnicodeDecodeError:
        raise HTTPException(400, "a field of the form is no UTF-8; send it so") from None


async def _parsed(
    content_type: str, body: AsyncIterator[bytes], make: "Callable[[ExitStack], _Form]"
) -> "_Form":
    """Read a whole form. The body is parsed in the event loop, and each piece is written to disk in another thread."""
    boundary = boundary_of(content_type)
    with ExitStack() as stack:
        form = make(stack)
        async for events in events_of(boundary, body):
            await asyncio.to_thread(form.take, events)
    return form


def boundary_of(content_type: str) -> bytes:
    """Return the boundary of the form's parts, from its Content-Type. Raises HTTPException (400)."""
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if kind.decode("latin-1") != MULTIPART or not boundary:
        raise HTTPException(400, "the form has no boundary; let your HTTP library set its content type")
    return boundary


async def events_of(boundary: bytes, body: AsyncIterator[bytes]) -> AsyncIterator[list[Event]]:
    """Yield the events of each piece of the body, in a list that is emptied before the next piece. Raises HTTPException
    (400) for a form that is malformed, or ended before its last boundary."""
    events: list[Event] = []

    def callback(kind: str) -> Any:
        # Without arguments it tells of a beginning or an end.
        return lambda data=b"", start=0, end=0: events.append((kind, data[start:end]))

    whole = False
    try:
        parser = MultipartParser(boundary, {name: callback(kind) for name, kind in _KINDS.items()})  # type: ignore[arg-type]
        async for piece in body:
            parser.write(piece)
            whole = whole or events[-1:] == [("end", b"")]
            yield events
            events.clear()
    except FormParserError as error:
        raise HTTPException(400, f"the form cannot be read: {error}; send {MULTIPART}") from None
    if not whole:
        raise HTTPException(400, "the form breaks off; send it whole")


class PartHeaders:
    """The headers of one part, collected as their pieces come."""

    def __init__(self) -> None:
        self._field, self._value = bytearray(), bytearray()
        self._headers: dict[str, str] = {}

    def take(self, kind: str, data: bytes) -> None:
        """Take an event of the parser that belongs to a header; ``begin`` forgets the headers of the part
        before."""
        if kind == "begin":
            self._headers = {}
        elif kind == "field":
            self._field += data
        elif kind == "value":
            self._value += data
        elif kind == "header":
            name = self._field.decode("latin-1").lower()
            self._headers[name] = self._value.decode("utf-8", "surrogateescape")
            self._field.clear()
            self._value.clear()

    def named(self) -> tuple[str, str | None]:
        """Return the name of the part, and that of its file (None: the part is a field). Raises HTTPException (400)."""
        return _named(self._headers.get("content-disposition", ""))


class _Form:
    """Carries out what the parser tells of a piece, in another thread: disks are slow."""

    def __init__(self, upload: Upload, stack: ExitStack, *, only: str | None) -> None:
        self._upload, self._stack = upload, stack
        self._only = only  # the one part that may be no file; None: any may
        self._heads = PartHeaders()
        self._part: ExitStack | None = None
        self._file: BinaryIO | None = None
        self._text: bytearray | None = None
        self._text_bytes = 0
        self.texts: list[tuple[str, bytearray]] = []

    def take(self, events: list[Event]) -> None:
        """Carry out what the parser has told. Raises what opening and writing a file raise."""
        for kind, data in events:
            if kind == "data":
                self._data(data)
            elif kind == "open":
                self._open()
            elif kind == "close":
                self._close()
            else:
                self._heads.take(kind, data)

    def _open(self) -> None:
        """Begin a part: a field in memory, or a file on the disk."""
        name, filename = self._heads.named()
        if filename is None:
            self._text = self._field_of(name)
            return
        if not filename and self._only is None:
            return  # a browser sends this where no file was chosen
        if len(self._upload.files) >= FILES_MAX:
            raise UsageError(
                f"more than {FILES_MAX:,} files are in the form; pack them, or upload them one by one"
            )
        self._part = self._stack.enter_context(ExitStack())
        self._file = self._part.enter_context(self._upload.writing(filename))

    def _field_of(self, name: str) -> bytearray:
        """Return the buffer of a field. Raises UsageError for a part that is not expected, and for too many."""
        if self._only is not None and (name != self._only or self.texts):
            raise UsageError(
                f"the part {name[:100]!r} of the form is neither {self._only!r} nor a file; leave it out"
            )
        if len(self.texts) >= FIELDS_MAX:
            raise UsageError(f"more than {FIELDS_MAX:,} fields are in the form; send fewer")
        text = bytearray()
        self.texts.append((name, text))
        return text

    def _data(self, data: bytes) -> None:
        """Add to the current part. Raises UsageError when the fields together are too long."""
        if self._file is not None:
            self._file.write(data)
        elif self._text is not None:
            self._text += data
            self._text_bytes += len(data)
            if self._text_bytes > JOB_MAX_BYTES:
                noun = "what is written into the form" if self._only is None else f"the part {self._only!r}"
                raise UsageError(f"{noun} is longer than {JOB_MAX_BYTES:,} bytes; put more into files")

    def _close(self) -> None:
        """End a part; a file of it is durable then."""
        if self._part is not None:
            self._part.close()
        self._part = self._file = self._text = None


def _named(disposition: str) -> tuple[str, str | None]:
    """Return the name of a part, and that of its file (None: it is a field), from its Content-Disposition."""
    kind, options = parse_options_header(disposition.encode("utf-8", "surrogateescape").decode("latin-1"))
    if kind != b"form-data" or b"name" not in options:
        raise HTTPException(400, "a part of the form has no name; send multipart/form-data")
    try:
        name, filename = options[b"name"].decode(), options.get(b"filename", b"").decode()
    except UnicodeDecodeError:
        raise HTTPException(400, "a name in the form is no UTF-8; send it so") from None
    return name, filename if b"filename" in options else None
