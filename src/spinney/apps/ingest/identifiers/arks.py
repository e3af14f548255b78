"""ARKs and their canonical form.

After draft-kunze-ark, sections "ARK Anatomy" and "Normalization and Lexical Equivalence". Equivalent ARKs have
one canonical form: the host before it is removed, the label becomes ``ark:/`` (the older form ``ark:/12345/x``
and the newer ``ark:12345/x`` are equivalent), hyphens are removed, since text formatting inserts them, the
authority's number becomes lower case, hexadecimal digits upper case, and structural characters that follow
another or end the name are removed. The case of the name counts.
"""

import re

from spinney.files.paths import NotAdmitted, shown

LENGTH_MAX = 255
"""The maximum characters of an ARK that is parsed: our own limit, so that names made from it fit a file system."""

_HOST = re.compile(r"https?://[^/\s]+/(?=ark:)", re.IGNORECASE)
_HYPHENS = re.compile("[-\u00ad\u2010-\u2015]")
_NAAN = re.compile(r"[0-9a-z]+", re.ASCII)
_NAME = re.compile(r"[0-9A-Za-z=~*+@_$%][0-9A-Za-z=~*+@_$%./]*", re.ASCII)
_LABEL = re.compile(r"ark:", re.IGNORECASE)
_HEX = re.compile(r"%[0-9A-Fa-f]{2}")
_STRUCTURAL_RUN = re.compile(r"([./])[./]+")


def canonical(text: str) -> str:
    """Return the canonical form of an ARK, ``ark:/12345/fk4abc``, which is the same for all that identify the same
    thing. Raises NotAdmitted when the text is no ARK."""
    stripped = text.strip()
    if len(stripped) > LENGTH_MAX:
        raise _too_long(stripped)
    core = _HOST.sub("", stripped, count=1)
    label = _LABEL.match(core)
    rest = core[label.end() :] if label else ""
    naan, _, name = _HYPHENS.sub("", rest).removeprefix("/").partition("/")
    naan = naan.lower()
    if not (_NAAN.fullmatch(naan) and _NAME.fullmatch(name) and len(_HEX.findall(name)) == name.count("%")):
        raise NotAdmitted(f"'{shown(text)}' is no ARK; give one like ark:/12345/fk4abc")
    whole = _HEX.sub(lambda m: m[0].upper(), name)
    whole = _STRUCTURAL_RUN.sub(r"\1", whole).rstrip("./")
    ark = f"ark:/{naan}/{whole}"
    if len(ark) > LENGTH_MAX:  # by the slash after the label
        raise _too_long(stripped)
    return ark


def _too_long(text: str) -> NotAdmitted:
    return NotAdmitted(f"'{shown(text[:40])}…' is longer than an ARK may be ({LENGTH_MAX}); shorten it")
