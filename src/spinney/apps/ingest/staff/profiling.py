"""The profiles there are, those that cannot be read among them."""

from collections.abc import Iterator
from dataclasses import dataclass

from spinney.apps.ingest import profiles
from spinney.apps.ingest.profiles import Profile
from spinney.apps.ingest.settings import Settings
from spinney.model.errors import UsageError


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


def collections(settings: Settings) -> set[str]:
    """Those that batches belong to by their profiles."""
    return {found.profile.collection for found in readable(settings) if found.profile is not None}
