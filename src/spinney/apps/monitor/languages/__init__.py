"""Mails and public pages get their sentences here, in the language of an entity: one file for each language.

A translation into another language is a file beside these, named by the language's tag, with the same sentences and
placeholders as ``en.toml``.

Specified by ``tests/apps/monitor/test_languages.py``, which compares the sentences and placeholders of all files.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_ENGLISH = "en"


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A language, with its sentences and its words for states, as its file has them."""

    tag: str
    codes: tuple[str, ...]
    """Its codes of ISO 639-2, which catalogues use."""
    sentences: Mapping[str, str]
    states: Mapping[str, str]

    def counted(self, counts: Mapping[str, int]) -> str:
        """Return how many services are in which state, as a part of a sentence; states without services are
        left out."""
        return ", ".join(f"{number} {self.states[state]}" for state, number in counts.items() if number)


def language(tag: str) -> Language:
    """Return the language of a tag (RFC 5646), of which the first part counts, as a code of ISO 639-1 or
    639-2; English where there is no file for it."""
    primary = tag.partition("-")[0].lower()
    spoken = languages()
    return next((language for language in spoken if primary in (language.tag, *language.codes)), spoken[0])


@lru_cache
def languages() -> list[Language]:
    """Return the languages of mails and pages, English first, the others by their tags."""
    files = sorted(Path(__file__).parent.glob("*.toml"), key=lambda file: (file.stem != _ENGLISH, file.stem))
    return [Language(tag=file.stem, **tomllib.loads(file.read_text("utf-8"))) for file in files]
