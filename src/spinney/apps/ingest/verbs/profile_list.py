"""The profiles, also those that cannot be read, and who may see which."""

from collections.abc import Iterator

from spinney.apps.ingest.config import profiles
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.verbs.service import Service
from spinney.errors import UsageError, did_you_mean, listed


def visible(service: Service) -> Iterator[tuple[str, Profile | str]]:
    """Yield the names of the profiles, each with the profile, or with what is wrong with one that cannot be read: those
    of the collections that the person may see. People with limits see no unreadable profiles."""
    for name in profiles.names_of(service.settings):
        try:
            profile = profiles.load(service.settings, name)
        except UsageError as error:
            if service.collections is None:
                yield name, str(error)
        else:
            if service.sees(profile.collection):
                yield name, profile


def profile(service: Service, name: str) -> Profile:
    """Return the profile of that name, if the person may submit with it.

    Raises UsageError for another name; for a person with limits, profiles of other collections do not exist,
    so that the message lists only those of theirs.
    """
    if service.collections is None:
        return profiles.load(service.settings, name)
    by_name = {name: profile for name, profile in visible(service) if isinstance(profile, Profile)}
    if name not in by_name:
        raise UsageError(
            f"there is no profile {name!r}{did_you_mean(name, by_name)}; there are: {listed(by_name) or '(none)'}"
        )
    return by_name[name]
