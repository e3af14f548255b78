"""The fields of a submitted form, and what usually follows: run a command, and redirect to a page with its result.

An error of the model becomes a message on the page from which the form came, or beside its field where the form is
shown again; other errors become error pages.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request
from starlette.background import BackgroundTask
from starlette.responses import Response

from spinney.commands.command import Command
from spinney.commands.control import Control
from spinney.model.errors import NoSuch, NoSuchJob, Refused, SpinneyError, UsageError
from spinney.model.values.texts import whole_number
from spinney.model.values.times import parse_time
from spinney.web.media_types import wants_part
from spinney.web.pages.page_responses import page, part, redirect, segment, with_query
from spinney.web.pages.request_coalescer import RequestCoalescer
from spinney.web.pages.text_formats import capital
from spinney.web.request_context import Authenticated, RequestContext, now_us

T = TypeVar("T")

FORM_ERRORS = (UsageError, Refused, NoSuchJob)
"""Errors that the page of the form shows. Others, such as missing rights, have a page of their own."""
_BETWEEN = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFields:
    """The text fields of a form that was sent, in their order; a name may occur more than once."""

    pairs: Sequence[tuple[str, str]]
    """Names and values, as they were sent."""

    def text(self, name: str) -> str:
        """Return the value without surrounding blanks; empty if the field is missing."""
        return next((value.strip() for key, value in self.pairs if key == name), "")

    def maybe(self, name: str) -> str | None:
        """Return the value without surrounding blanks; None if it is empty."""
        return self.text(name) or None

    def all(self, name: str) -> tuple[str, ...]:
        """Return all values of a field that may occur several times, such as boxes."""
        return tuple(value for key, value in self.pairs if key == name)

    def words(self, name: str) -> tuple[str, ...]:
        """Return the names in a field, separated by commas or blanks, each once, in their order."""
        return tuple(dict.fromkeys(word for word in _BETWEEN.split(self.text(name)) if word))

    def lines(self, name: str) -> tuple[str, ...]:
        """Return the lines of a field without surrounding blanks, each once, in their order; empty ones are
        left out."""
        return tuple(dict.fromkeys(line.strip() for line in self.text(name).splitlines() if line.strip()))

    def whole(self, name: str, noun: str) -> int | None:
        """Return a whole number that is not negative; None if the field is empty. Commas between digits are
        ignored (``1,000``). ``noun``: what it is, for the message. Raises UsageError."""
        text = self.text(name).replace(",", "")
        if not text:
            return None
        number = whole_number(text)
        if number is None:
            raise UsageError(f"{self.text(name)[:40]!r} is not a {noun}; enter a whole number, such as 4")
        return number

    def moment(self, name: str) -> int | None:
        """Return a future time in µs since 1970; None if the field is empty. Raises UsageError."""
        text = self.text(name)
        return parse_time(text, now_us(), ahead=True) if text else None

    @property
    def values(self) -> Mapping[str, str]:
        """Return the values by field, to show the form again; if a field occurs several times, its last value. The
        proof of the form is left out."""
        return {name: value for name, value in self.pairs if name != "csrf"}


async def _form_fields(request: Request) -> FormFields:
    """Return the text fields of a request's form; files are left out."""
    form = await request.form()
    return FormFields(pairs=[(name, value) for name, value in form.multi_items() if isinstance(value, str)])


Form = Annotated[FormFields, Depends(_form_fields)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedForm:
    """A form that was refused: its page shows it again, with what was entered and why it was refused."""

    form: FormFields
    """What was entered."""
    error: SpinneyError
    """Why it was refused; its sentence is shown."""


def form_variables(refused: RefusedForm | None, values: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the arguments of ``page`` for a page with a form: its status, and the variables ``values`` and ``error``.
    ``values``: what the form shows unless it was refused."""
    if refused is None:
        return {"status": 200, "values": values or {}, "error": ""}
    return {"status": 422, "values": refused.form.values, "error": sentence(refused.error)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSecret:
    """A secret, on the page that shows it for the only time."""

    title: str
    """The heading of the page."""
    about: str
    """A sentence about what the secret is good for."""
    secret: str = field(repr=False)
    """The secret itself, which no log shows."""
    back: str
    """The path of the page that the link leads to."""
    label: str
    """The text of that link."""
    example: str = field(default="", repr=False)
    """How the secret is used."""


def secret_page(request: Request, context: RequestContext, secret: NewSecret) -> Response:
    """Return the page that shows a new secret."""
    return page(request, context.principal, "secret.html", secret=secret)


def base_url(request: Request) -> str:
    """Return the server's public URL, as configured or as the request names it."""
    url = request.app.state.settings.url or f"{request.url.scheme}://{request.url.netloc}"
    return str(url).rstrip("/")


def page_or_part(
    request: Request,
    context: RequestContext,
    name: str,
    *,
    topics: Sequence[str] = (),
    status: int = 200,
    **variables: object,
) -> Response:
    """Return the page ``NAME.html``; for a request of the page's script only its live part, ``NAME_now.html``. A page
    that refuses what was entered (``status``) watches no topics: its live part would replace the message and the form.
    """
    if wants_part(request):
        return part(request, context.principal, f"{name}_now.html", **variables)
    watched = topics if status == 200 else ()
    return page(request, context.principal, f"{name}.html", topics=watched, status=status, **variables)


async def run_and_redirect(
    context: RequestContext,
    back: str,
    call: Callable[[Control], T],
    done: Callable[[T], str] | str,
    *,
    done_at: str | None = None,
    long: bool = False,
    disk: bool = False,
    then: Callable[[Control], object] | None = None,
) -> Response:
    """Run ``call`` and redirect to ``back``, where ``done`` or the refusal is shown. ``done``: the sentence, or what
    makes it of the result. ``done_at``: the page that shows ``done`` instead, such as the list after a deletion; it
    also shows the refusal when the object no longer exists and so has no page. ``long``: the call may take more than
    some 100 ms. ``disk``: it also uses the folder root. ``then`` runs after the response, unless the call was refused.

    Raises what ``call`` raises, except ``FORM_ERRORS``."""
    try:
        result = await context.run(call, long=long, disk=disk)
    except FORM_ERRORS as error:
        page_path = done_at if done_at and isinstance(error, NoSuch) else back
        return redirect(page_path, refused=sentence(error))
    answer = redirect(done_at or back, done=done if isinstance(done, str) else done(result))
    if then is not None:
        answer.background = BackgroundTask(context.run, then, long=True)
    return answer


def add_action(
    router: APIRouter,
    listed_at: str,
    verb: str,
    command: type[Command],
    done: Callable[[str, Any], str] | str,
    *,
    read: Callable[[FormFields], Mapping[str, Any]] = lambda form: {},
    at_list: bool = False,
    removes: bool = False,
    **values: Any,
) -> None:
    """Add the route of a button: it performs a command on the object that the path names, ``LIST/NAME/VERB``, and leads
    back to the object's page, which says what happened.

    ``listed_at``: the path of the list of such objects. ``done``: the sentence that is shown, or a function that makes
    it from the name and the command's result. ``read`` returns the fields of the command that come from the form,
    beside the reason; ``values`` are fields with fixed values. ``at_list``: lead back to the list instead, as does a
    form whose field ``back`` is ``list``, and there to the page behind the name in its field ``after``. ``removes``:
    the command deletes the object, so its page is gone.
    """
    (named,) = command.route.in_path

    async def action(context: Authenticated, name: str, form: Form) -> Response:
        def call(control: Control) -> Any:
            reason = {"reason": form.maybe("reason")} if "reason" in command.model_fields else {}
            return control.do(command(**{named: name}, **values, **reason, **read(form)))

        is_listed = at_list or form.text("back") == "list"
        own_page = f"{listed_at}/{segment(name)}"
        return await run_and_redirect(
            context,
            with_query(listed_at, after=form.text("after")) if is_listed else own_page,
            call,
            (lambda result: done(name, result)) if callable(done) else done.replace("{name}", name),
            done_at=listed_at if removes else None,
            long=command.route.long,
        )

    router.add_api_route(f"{listed_at}/{{name}}/{verb}", action, methods=["POST"])


async def read_coalesced(
    request: Request, context: RequestContext, key: Hashable, read: Callable[[Control], T]
) -> T:
    """Return the result of ``read``, which runs once for all requests that wait for it at the same time. ``key`` must
    say what is read, and who may see it."""
    coalesced: RequestCoalescer = request.app.state.coalesced
    return await coalesced.get(key, lambda: context.run(read))


def sentence(error: Exception) -> str:
    """Return the message of an error as a page shows it, with a capital letter."""
    return capital(str(error))
