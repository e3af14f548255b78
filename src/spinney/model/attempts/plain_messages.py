"""The part of a failure's message that is the same for all jobs: its first line without numbers (ids, sizes, times,
addresses) and without paths."""

import re

PLAIN_MAX = 300
"""How many characters of a plain message count."""
_LOOKED_AT = 2_000
"""How many characters of a message are read."""
_ROUNDS = 8
"""The most rounds of replacement: the rest of odd texts may look like a number or a path again; two rounds are
usual."""


def plain(message: str) -> str:
    """Return the first line of ``message`` without what differs from job to job.

    Numbers with their units, ids, dates, times and addresses become ``#``, paths ``…``; of URLs the host stays, but no
    user and password. A list of such items counts as one. ``plain(plain(m)) == plain(m)``."""
    text = _first_line(message[:_LOOKED_AT])
    for _ in range(_ROUNDS):
        before, text = text, _plainer(text)
        if text == before:
            break
    return text


def _plainer(text: str) -> str:
    text = _PLACES.sub(_place, text)
    text = _NUMBERS.sub(_number, text)
    text = _SIGN.sub("#", text)
    text = _RUN.sub("#", text)
    text = _ITEMS.sub(r"\1", text)
    return text if len(text) <= PLAIN_MAX else text[:PLAIN_MAX].rpartition(" ")[0] or text[:PLAIN_MAX]


def _first_line(message: str) -> str:
    """Return the first line: later ones have particulars (parameters of a statement, the wrong value). Where the first
    line ends with a colon, the next one belongs to it."""
    text = ""
    for line in message.splitlines():
        printable = line if line.isprintable() else "".join(c if c.isprintable() else " " for c in line)
        text = f"{text} {' '.join(printable.split())}".strip()
        if text and not text.endswith(":"):
            break
    return text


# --- places: URLs and paths -------------------------------------------------------------------

_QUOTES = "'\"`"
_MEDIA = r"(?:application|audio|font|image|message|model|multipart|text|video)/[\w.+-]+"
"""A media type is no path (its first words are registered, RFC 6838)."""
_FILE = rf"""(?P<{{}}>[{_QUOTES}])(?:(?!(?P={{}})).)*(?P={{}})"""
_CHAR = rf"(?:[^\s{_QUOTES}<>|,;:()\[\]{{}}]|:(?=[\d/\\]))"
"""A character of a path without quotes. A colon only where more of the path follows: ``/var/x.py:17``."""
_PART = r"[\w@%+~-][\w@%+~.-]*"

_PLACES = re.compile(
    rf"""
    (?P<url> (?<![\w#+.-]) [A-Za-z][A-Za-z0-9+.#-]*:// )
        (?P<host> (?: \[[^\]\s]*\] )? [^\s/?{_QUOTES}<>\\,;()\[\]{{}}|]* )
        (?P<tail> (?: [/?][^\s{_QUOTES}<>|]* )? )
    # What an OSError says of its file (or two), however the file is called.
    | (?P<oserror> \[(?:Errno|WinError)\ [-\d#]+\]\ [^:{_QUOTES}]+:\ ) {_FILE.format("a", "a", "a")}
        (?P<second> (?: \ ->\ {_FILE.format("b", "b", "b")} )? )
    # In quotes: anything that begins like a path, or has a slash and no blank.
    | (?<![\w#…]) (?P<q>[{_QUOTES}]) (?!{_MEDIA}(?P=q))
        (?: (?: (?:~[\w.-]*|\.{{1,2}})?/ | [A-Za-z]:[/\\] | \\\\ ) (?: (?!(?P=q)). )*
          | (?: (?!(?P=q))[^\s/\\] )* / (?: (?!(?P=q))\S )* )
        (?P=q) (?![\w#…])
    | (?P<media> (?<![\w#/.]) {_MEDIA} (?![\w.+/-]) )
    # Bare and absolute, or in a drive, on a server, below home or a dot.
    | (?P<bare> (?<![\w#….\\/]) (?: (?:~[\w.-]*|\.{{1,2}})?/+(?=[\w.@%+~-]) | [A-Za-z]:[/\\] | \\\\(?=\w) ) {_CHAR}* )
    # Bare and relative: two slashes, or one and an extension; but no date and no fraction.
    | (?P<relative> (?<![\w#…./\\@%+~-]) (?![\d.]+(?:/[\d.]+)*(?![\w/.@%+~-]))
        (?: {_PART}(?:/{_PART}){{2,}}/? | {_PART}/[\w@%+~-]+(?:\.[\w@%+~-]+)*\.[A-Za-z][A-Za-z0-9]{{0,9}}(?![\w/]) ) )
    """,
    re.VERBOSE,
)


def _place(match: re.Match[str]) -> str:
    if match["url"] is not None:
        host, tail = match["host"], match["tail"]
        rest = _end_of_sentence(tail or host)
        host = host if tail else host[: len(host) - len(rest)]
        # A password in a URL must not get into a hold's reason, and from there into the audit for ever.
        return f"{match['url']}{host.rpartition('@')[2]}/…{rest}"
    if match["oserror"] is not None:
        return match["oserror"] + ("'…' -> '…'" if match["second"] else "'…'")
    if match["media"] is not None:
        return match["media"]
    bare = match["bare"] or match["relative"]
    return "'…'" if bare is None else f"…{_end_of_sentence(bare)}"


def _end_of_sentence(text: str) -> str:
    """Return the punctuation at the end, which belongs to the sentence around."""
    return text[len(text.rstrip(".,;:!?)]}")) :]


# --- numbers ----------------------------------------------------------------------------------

_PLAIN_NUMBER = r"\d+(?:[.,_]\d+)*(?:[eE][-+]?\d+)?"
_UNIT = (
    r"(?:[nuµμm]?s|secs?|seconds?|min|mins|minutes?|m|h|hrs?|hours?|d|days?|weeks?"
    r"|milliseconds?|microseconds?|B|bytes?|[kKMGTP]i?B)"
)
"""Units of times and sizes, which are printed in another unit when they grow."""
_MEASURE = rf"{_PLAIN_NUMBER}\s?{_UNIT}"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_ZONE = r"(?:\s?(?:Z|UTC|GMT|[AaPp]\.?[Mm]\.?|[+-]\d\d:?\d\d))?(?![0-9A-Za-z])"

_NUMBERS = re.compile(
    rf"""
    (?<![0-9A-Za-z])
    (?: \d{{4}}-\d\d-\d\d (?: [T\s_]\d\d:?\d\d(?::?\d\d(?:[.,]\d+)?)? )? {_ZONE}
      | (?:{_DAY},?\s)? (?: \d{{1,2}}[\s-]{_MONTH}(?:[\s-]\d{{2,4}})? | {_MONTH}\s{{1,2}}\d{{1,2}} ) (?![0-9A-Za-z])
        (?: ,?\s\d[\d:.]* )* {_ZONE}
      | \d{{1,2}}:\d\d(?::\d\d(?:[.,]\d+)?)? {_ZONE}
      | P(?=T?\d)(?:\d+[YMWD])*(?:T(?:\d+(?:\.\d+)?[HMS])+)?(?![0-9A-Za-z])
      | [0-9a-fA-F]{{8}}-(?:[0-9a-fA-F]{{4}}-){{3}}[0-9a-fA-F]{{12}}(?![0-9A-Za-z])
      | (?:[0-9a-fA-F]{{2}}[:-]){{5}}[0-9a-fA-F]{{2}}(?![0-9A-Za-z:-])
      | 0[xX][0-9a-fA-F]+(?![0-9A-Za-z])
    )
    | (?<![0-9A-Za-z:]) (?=(?:[0-9a-fA-F]*:){{2}}) (?=[0-9a-fA-F:]*\d)
        [0-9a-fA-F:]*(?:[0-9a-fA-F]|::) (?:\.\d+){{0,3}} (?:%\w+)? (?![0-9A-Za-z])
    | (?<![0-9A-Za-z_]) {_MEASURE} (?: [\s,]{{0,2}}{_MEASURE} )* (?![0-9A-Za-z_]|:[0-9A-Fa-f:])
    | (?<![0-9A-Za-z]) {_PLAIN_NUMBER} (?![0-9A-Za-z])
    | (?<![0-9A-Za-z#]) [A-Fa-f]{{9,}} (?![0-9A-Za-z#])
    | (?P<token> (?<![0-9A-Za-z]) [A-Za-z]*[0-9][0-9A-Za-z]* )
    """,
    re.VERBOSE | re.ASCII,
)
_SIGN = re.compile(r"(?<![\w#…+-])[-+]+#")
_RUN = re.compile(r"#+(?:(?:[.,:;_/+-]|,?\s)#+)*")
"""Parts of one number, and lists of numbers."""
_ITEMS = re.compile(rf"(([{_QUOTES}]?)[#…]\2)(?:(?:,\s?|\s)\1)+")

_HEX = re.compile(r"[0-9A-Fa-f]{4,}|[0-9]+(?:st|nd|rd|th)")
_GROUPS = re.compile(r"[0-9]+")
_LONG, _SHORT = (16, 3), (8, 2)
"""A word of this length with numbers in so many places is an id in another alphabet (ULID, base 62, serial numbers). A
short one may also be the name of an algorithm, which ``_WORD`` tells: ``secp256k1``."""
_WORD = re.compile(r"[a-z]{4}")


def _number(match: re.Match[str]) -> str:
    token = match["token"]
    if token is None or _HEX.fullmatch(token):
        return "#"
    chars, groups = _SHORT if _WORD.search(token) is None else _LONG
    if len(token) >= chars and len(_GROUPS.findall(token)) >= groups:
        return "#"
    return _GROUPS.sub("#", token)
