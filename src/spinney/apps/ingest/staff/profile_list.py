"""The profiles there are, those that cannot be read among them."""

from collections.abc import Iterator
from dataclasses import dataclass

from spinney.apps.ingest.config import profiles
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.staff.service import Service
from spinney.errors import UsageError, did_you_mean, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """A profile, or why there is none by its name."""

    name: str
    profile: Profile | None
    problem: str | None = None


def readable(settings: Settings) -> Iterator[Readable]:
    """All, by name."""
    for name in profiles.names_of(settings):
        try:
            yield Readable(name=name, profile=profiles.load(settings, name))
        except UsageError as error:
            yield Readable(name=name, profile=None, problem=str(error))


def visible(service: Service) -> Iterator[Readable]:
    """Those of the collections that the person may see; who is limited learns of no file that cannot be read."""
    for found in readable(service.settings):
        if service.collections is None or (
            found.profile is not None and service.sees(found.profile.collection)
        ):
            yield found


def profile(service: Service, name: str) -> Profile:
    """The profile of that name, if the person may hand in by it. Raises UsageError."""
    if service.collections is None:
        return profiles.load(service.settings, name)
    known = {found.name: found.profile for found in visible(service) if found.profile is not None}
    if name not in known:
        raise UsageError(
            f"there is no profile {name!r}{did_you_mean(name, known)}; there are: {listed(known) or '(none)'}"
        )
    return known[name]


def collections(settings: Settings) -> set[str]:
    """Those that batches belong to by their profiles."""
    return {found.profile.collection for found in readable(settings) if found.profile is not None}
