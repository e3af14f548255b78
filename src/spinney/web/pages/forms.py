"""What somebody wrote into a form, and the usual way on: do it, and lead back to a page that tells of it."""

import re
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from starlette.background import BackgroundTask
from starlette.responses import Response

from spinney.control import Control
from spinney.model.errors import NoSuchJob, Refused, SpinneyError, UsageError
from spinney.web.pages.coalescing import RequestCoalescer
from spinney.web.pages.filters import moment
from spinney.web.pages.rendering import page, part, redirect, wants_part
from spinney.web.request_context import RequestContext, now_us

T = TypeVar("T")

FORM_ERRORS = (UsageError, Refused, NoSuchJob)
"""What is told on the page where somebody asked for it. What he may not do at all is a page of its own."""
_DIGITS = 18
_BETWEEN = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFields:
    """The fields of a form."""

    pairs: Sequence[tuple[str, str]]

    def text(self, name: str) -> str:
        """Without blanks around it; empty where there is none."""
        return next((value.strip() for key, value in self.pairs if key == name), "")

    def maybe(self, name: str) -> str | None:
        """The same; None where there is none."""
        return self.text(name) or None

    def all(self, name: str) -> tuple[str, ...]:
        """Of boxes and fields that can be there several times."""
        return tuple(value for key, value in self.pairs if key == name)

    def words(self, name: str) -> tuple[str, ...]:
        """Names between which there are commas or blanks, each once."""
        return tuple(dict.fromkeys(word for word in _BETWEEN.split(self.text(name)) if word))

    def lines(self, name: str) -> tuple[str, ...]:
        """What stands on lines of its own, each once."""
        return tuple(dict.fromkeys(line.strip() for line in self.text(name).splitlines() if line.strip()))

    def whole(self, name: str, what: str) -> int | None:
        """A whole number; None where there is none. Raises UsageError."""
        text = self.text(name).replace(",", "")
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
            raise UsageError(f"{self.text(name)[:40]!r} is not a {what}; enter a whole number, such as 4")
        return int(text)

    def moment(self, name: str) -> int | None:
        """A time to come, in µs since 1970; None where there is none. Raises UsageError."""
        text = self.text(name)
        return moment(text, now_us(), ahead=True) if text else None

    @property
    def said(self) -> Mapping[str, str]:
        """To fill the form once more."""
        return {name: value for name, value in self.pairs if name != "csrf"}


async def _given(request: Request) -> FormFields:
    form = await request.form()
    return FormFields(pairs=[(name, value) for name, value in form.multi_items() if isinstance(value, str)])


Form = Annotated[FormFields, Depends(_given)]


def page_or_part(
    request: Request,
    context: RequestContext,
    name: str,
    *,
    topics: Sequence[str] = (),
    status: int = 200,
    **variables: object,
) -> Response:
    """The page of this name, or its live part alone where the page's script asks at the same address."""
    if wants_part(request):
        return part(request, context.principal, f"{name}_now.html", **variables)
    return page(request, context.principal, f"{name}.html", topics=topics, status=status, **variables)


async def run_and_redirect(
    context: RequestContext,
    back: str,
    call: Callable[[Control], T],
    said: Callable[[T], str] | str,
    *,
    long: bool = False,
    then: Callable[[Control], object] | None = None,
) -> Response:
    """Do it, and lead back. ``then`` is done behind the answer."""
    try:
        found = await context.run(call, long=long)
    except FORM_ERRORS as error:
        return redirect(back, refused=sentence(error))
    answer = redirect(back, done=said if isinstance(said, str) else said(found))
    if then is not None:
        answer.background = BackgroundTask(context.run, then, long=True)
    return answer


async def read_coalesced(request: Request, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
    """What ``read`` answers, read once for all who ask at the same time and see the same, as the key says."""
    coalesced: RequestCoalescer = request.app.state.coalesced
    return await coalesced.get(key, read)


def sentence(error: SpinneyError) -> str:
    """As it stands on a page."""
    text = str(error)
    return text[:1].upper() + text[1:]


def listed_in_words(names: Iterable[str], most: int = 4) -> str:
    """``a, b and 3 more``."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
