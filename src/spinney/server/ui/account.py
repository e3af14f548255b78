"""One's own account: the password, and where one is signed in."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.model.errors import BadLogin, Forbidden, SpinneyError, UsageError
from spinney.server.asking import Asked, Hands, How
from spinney.server.bodies import SmallBody
from spinney.server.problems import of_error
from spinney.server.ui import entrance
from spinney.server.ui.rendering import page, redirect

router = APIRouter(include_in_schema=False)
ACCOUNT = "/account"


@router.get(ACCOUNT)
async def show(request: Request, hands: Asked) -> Response:
    """The page."""
    return await _page(request, hands)


@router.post(f"{ACCOUNT}/password", dependencies=[SmallBody])
async def change_password(request: Request, hands: Asked) -> Response:
    """Another password; every other browser is signed out."""
    _require_session(hands)
    given = await entrance.fields(request)
    try:
        if given.get("password") != given.get("again"):
            raise UsageError("the two new passwords differ; write the same one twice")
        who = await entrance.doorway(request).change_password(
            request, hands, given.get("before", ""), given.get("password", "")
        )
    except SpinneyError as error:
        return await _page(request, hands, error)
    answer = redirect(ACCOUNT, done="The password is changed, and every other browser is signed out.")
    entrance.keep(await entrance.identity(request).cookies(), answer, who)
    return answer


@router.post(f"{ACCOUNT}/alone", dependencies=[SmallBody])
async def stay_alone(request: Request, hands: Asked) -> Response:
    """Sign every other browser out."""
    _require_session(hands)
    who = await entrance.doorway(request).stay_alone(request, hands.asker.name)
    answer = redirect(ACCOUNT, done="Every other browser is signed out.")
    entrance.keep(await entrance.identity(request).cookies(), answer, who)
    return answer


def _require_session(hands: Hands) -> None:
    if hands.asker.how is not How.SESSION:
        raise Forbidden("this is for who has signed in here; sign in with a password first")


async def _page(request: Request, hands: Hands, error: SpinneyError | None = None) -> Response:
    asker = hands.asker
    signed_in = asker.how is How.SESSION
    user, sessions = None, []
    if signed_in:
        user = await hands.run(lambda control: control.accounts.user(asker.name))
        sessions = list(await hands.run(lambda control: control.accounts.sessions(asker.name)))
    sentence = "" if error is None else str(error)[:1].upper() + str(error)[1:] + "."
    where = "before" if isinstance(error, BadLogin) else "password" if isinstance(error, UsageError) else ""
    plain = None if error is None else of_error(error)
    answer = page(
        request,
        asker,
        "account.html",
        status=200 if plain is None else plain.status_code,
        user=user,
        sessions=sessions,
        signed_in=signed_in,
        error="" if where else sentence,
        wrong={where: sentence},
    )
    if plain is not None and "retry-after" in plain.headers:
        answer.headers["Retry-After"] = plain.headers["retry-after"]
    return answer
