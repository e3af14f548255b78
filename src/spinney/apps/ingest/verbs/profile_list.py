"""The profiles, also those that cannot be read, and who may see which."""

from collections.abc import Iterator
from dataclasses import dataclass

from spinney.apps.ingest.config import profiles
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.verbs.service import Service
from spinney.errors import UsageError, did_you_mean, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProfile:
    """A profile, or the reason why it cannot be read."""

    name: str
    profile: Profile | None
    problem: str | None = None


def readable(settings: Settings) -> Iterator[ListedProfile]:
    """Yield all profiles by name; for one that cannot be read, what is wrong with it."""
    for name in profiles.names_of(settings):
        try:
            yield ListedProfile(name=name, profile=profiles.load(settings, name))
        except UsageError as error:
            yield ListedProfile(name=name, profile=None, problem=str(error))


def visible(service: Service) -> Iterator[ListedProfile]:
    """Yield the profiles of the collections that the person may see; limited people see no unreadable profiles."""
    for item in readable(service.settings):
        if service.collections is None or (
            item.profile is not None and service.sees(item.profile.collection)
        ):
            yield item


def profile(service: Service, name: str) -> Profile:
    """Return the profile of that name, if the person may submit with it.

    Raises UsageError for another name; for a person with limits, profiles of other collections do not exist,
    so that the message lists only those of theirs.
    """
    if service.collections is None:
        return profiles.load(service.settings, name)
    by_name = {item.name: item.profile for item in visible(service) if item.profile is not None}
    if name not in by_name:
        raise UsageError(
            f"there is no profile {name!r}{did_you_mean(name, by_name)}; there are: {listed(by_name) or '(none)'}"
        )
    return by_name[name]
