"""The description of an object: who, what, when, where; as ERC and as Dublin Core.

An ERC (electronic resource citation; J. Kunze and A. Turner, "Kernel Metadata and Electronic Resource
Citations", 2010) is a record in ANVL. Unknown values are written as a code in brackets (its section 9.3).
Nothing is written to disk here: ``erc`` and ``dublin_core`` return content that the caller writes.
"""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from spinney.apps.ingest.identifiers import anvl, arks
from spinney.apps.ingest.manifests import About
from spinney.files import paths
from spinney.files.paths import NotAdmitted, shown

UNAVAILABLE = "(:unav)"
"""The code for an unknown who or when: unavailable, possibly unknown."""
UNASSIGNED = "(:unas)"
"""The code for an unknown what or where: none was assigned."""
MISSING = re.compile(r"\(:(?:unac|unal|unap|unas|unav|unkn|none|null|tba)\).*", re.DOTALL)
"""A value that begins with a code for a missing value, with any explanation after it."""

_CODE = re.compile(r"\(:[a-z]+\)")

OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
DC = "http://purl.org/dc/elements/1.1/"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
_SCHEMA = f"{OAI_DC} http://www.openarchives.org/OAI/2.0/oai_dc.xsd"

ET.register_namespace("oai_dc", OAI_DC)
ET.register_namespace("dc", DC)
ET.register_namespace("xsi", XSI)

# XML 1.0, section 2.2. A carriage return is allowed but would be read as a line feed.
_NOT_XML = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def erc(about: About) -> str:
    """Return the text of ``mrt-erc.txt``, from which ``read_erc`` reads the same values.

    Exceptions are blank space around a value, and a value that is empty or such a code, which are read as None.
    """
    lines = [(name, anvl.line(name, value)) for name, value in _values(about)]
    return "erc:\n" + "".join(line.replace(";", "%3B") if name == "where" else line for name, line in lines)


def dublin_core(about: About) -> bytes:
    """Return the content of ``mrt-dc.xml``: creator, title, date and identifiers in an ``oai_dc`` record.

    Characters that XML 1.0 cannot represent become U+FFFD.
    """
    elements = {"who": "creator", "what": "title", "when": "date", "where": "identifier"}
    top = ET.Element(f"{{{OAI_DC}}}dc", {f"{{{XSI}}}schemaLocation": _SCHEMA})
    for name, value in _values(about):
        ET.SubElement(top, f"{{{DC}}}{elements[name]}").text = _NOT_XML.sub("\ufffd", value)
    ET.indent(top)
    record: bytes = ET.tostring(top, encoding="utf-8", xml_declaration=True)
    return record + b"\n"


def read_erc(path: Path, most_bytes: int) -> About:
    """Read a depositor's ``mrt-erc.txt``, also in the short form ``erc: who | what | when | where``.

    A ``where`` that begins with ``ark:`` is the ARK, any other a local id; a ``;`` separates two of them, and %3B is a
    semicolon within one. Other names are ignored, and of several values for one name the first is used. Raises
    NotAdmitted when the file is no regular one, longer than ``most_bytes``, not UTF-8 or no ANVL, or names two ARKs.
    """
    with paths.opened_beneath(path.parent, path.name) as file:
        content = file.read(most_bytes + 1)
    name = shown(path.name)
    if len(content) > most_bytes:
        raise NotAdmitted(f"'{name}' is longer than {most_bytes} bytes; shorten it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotAdmitted(f"'{name}' is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    try:
        return _about(anvl.parse(text))
    except NotAdmitted as error:
        raise NotAdmitted(f"'{name}': {error}") from None


def _values(about: About) -> list[tuple[str, str]]:
    """Return names and values in the order of an ERC, with codes for missing values; the ARK is the first
    ``where``."""
    where = [about.primary_id or UNASSIGNED, *about.local_ids]
    return [
        ("who", about.creator or UNAVAILABLE),
        ("what", about.title or UNASSIGNED),
        ("when", about.date or UNAVAILABLE),
        *(("where", value) for value in where),
    ]


def _about(elements: list[anvl.Element]) -> About:
    """Return the description of an ERC's elements; codes for missing values count as none."""
    first: dict[str, str] = {}
    ark: str | None = None
    local_ids: list[str] = []
    for name, value in _flattened(elements):
        if not value or MISSING.fullmatch(value):
            continue
        if name != "where":
            first.setdefault(name, value)
        elif not value.lower().startswith("ark:"):
            local_ids.append(value)
        elif ark not in (None, arks.canonical(value)):
            raise NotAdmitted(f"it names two ARKs, {ark} and '{shown(value)}'; leave the one that it has")
        else:
            ark = arks.canonical(value)
    return About(
        primary_id=ark,
        creator=first.get("who"),
        title=first.get("what"),
        date=first.get("when"),
        local_ids=tuple(dict.fromkeys(local_ids)),
    )


def _flattened(elements: list[anvl.Element]) -> list[tuple[str, str]]:
    """Return lower-case names with their values; the short form is expanded, and each place is separate."""
    raw: list[tuple[str, str]] = []
    for element in elements:
        name = element.name.strip().lower()
        if name == "erc" and element.raw:
            parts = [part.strip() for part in element.raw.split("|", 3)]
            raw += zip(("who", "what", "when", "where"), parts, strict=False)
        else:
            raw.append((name, element.raw))
    divided = (
        (name, single) for name, value in raw for single in (_places(value) if name == "where" else [value])
    )
    return [(name, anvl.unescaped(single)) for name, single in divided]


def _places(value: str) -> list[str]:
    """Split the values of a ``where``. A code with an explanation is one value, whatever it contains."""
    first, *others = [part.strip(" \t") for part in value.split(";")]
    return [value] if MISSING.fullmatch(value) and not _CODE.fullmatch(first) else [first, *others]
