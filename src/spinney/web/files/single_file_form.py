"""A form (RFC 7578) of fields and one file behind them: what the fields say is known before the file comes.

So a route can refuse a file before it is read, and put it where it belongs as it comes. HTML forms send their
parts in the order of their fields, so a page has the file's field last."""

from collections.abc import AsyncIterator

from spinney.model.errors import UsageError
from spinney.web.files import multipart
from spinney.web.files.multipart import Event, PartHeaders

FIELDS_MAX = 1_000
FIELDS_MAX_BYTES = 2 * 2**20


class SingleFileForm:
    """A form whose file comes last. Call ``fields`` first, then ``pieces``; both raise HTTPException (400: the body is
    no such form) and UsageError."""

    def __init__(self, content_type: str, body: AsyncIterator[bytes], *, name: str) -> None:
        """``name``: that of the part that is the file. Raises HTTPException."""
        self._boundary, self._body, self._name = multipart.boundary_of(content_type), body, name
        self._heads = PartHeaders()
        self._events = self._parse()
        self.file_name = ""
        """The name of the file as the form has it, once its fields are known; it may be any text."""

    async def fields(self) -> list[tuple[str, str]]:
        """Return names and values of the fields before the file, in their order."""
        fields: list[tuple[str, bytearray]] = []
        size = 0
        async for kind, data in self._events:
            if kind == "open":
                name, file_name = self._heads.named()
                if file_name is not None or name == self._name:
                    self.file_name = self._chosen(name, file_name)
                    return [(name, _text(name, value)) for name, value in fields]
                fields.append((name, bytearray()))
            elif kind == "data":
                size += len(data)
                fields[-1][1].extend(data)
            if len(fields) > FIELDS_MAX or size > FIELDS_MAX_BYTES:
                raise UsageError("the fields of the form are too long or too many; put more into the file")
        raise UsageError(f"the form has no file; send it in the last part, named {self._name!r}")

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the file piece by piece; memory holds one. Raises UsageError for a part behind it, when the
        file has been yielded: what was written of it must be dropped then."""
        async for kind, data in self._events:
            if kind == "data":
                yield data
            elif kind == "open":
                name, _ = self._heads.named()
                raise UsageError(
                    f"the part {name[:100]!r} comes behind the file; send the fields first, and the file as the last "
                    f"part"
                )

    def _chosen(self, name: str, file_name: str | None) -> str:
        """Return the name of the file. Raises UsageError for a file in another part, and for a part that is no file."""
        if name != self._name:
            raise UsageError(
                f"the part {name[:100]!r} of the form is a file; send the file as {self._name!r}"
            )
        if file_name is None:
            raise UsageError(
                f"the part {name!r} of the form is no file but text; send it as one, with a file name"
            )
        return file_name

    async def _parse(self) -> AsyncIterator[Event]:
        """Yield the events of the parser as the body comes, up to the end of the form."""
        async for events in multipart.events_of(self._boundary, self._body):
            for kind, data in events:
                if kind == "end":
                    return
                self._heads.take(kind, data)
                yield kind, data


def _text(name: str, value: bytearray) -> str:
    """Return the value of a field as text. Raises UsageError when it is no UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise UsageError(f"the field {name[:100]!r} of the form is no UTF-8; send it so") from None
