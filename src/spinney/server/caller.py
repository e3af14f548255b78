"""The API route that shows the caller: name, how they signed in, and rights."""

from dataclasses import dataclass

from spinney.model.access import Rights
from spinney.web.api.json_routes import routes
from spinney.web.request_context import Authenticated, AuthMethod

me = routes("accounts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The name, the sign-in method and the rights of the caller."""

    name: str
    how: AuthMethod
    rights: Rights


@me.get("/me", summary="Show the caller")
async def show_me(context: Authenticated) -> Me:
    """Your name, how you signed in, and your rights."""
    return Me(name=context.principal.name, how=context.principal.how, rights=context.principal.rights)
