"""Manifests are lists of files or objects to deposit, in Checkm 0.7 and in JSON.

A manifest lists the files of one object (`PayloadKind.OBJECT_MANIFEST`), or many objects: a file each,
a container each, or an object manifest each. It is read as a stream: apart from the names of one object's
files, which must differ, and the identifiers of a batch's objects, memory does not grow with it. Only `write`
and `write_json` write anything, so that a crash leaves nothing.

    kind_of(Path("deposit.checkm"))                  # PayloadKind.OBJECT_MANIFEST
    for row in read(Path("deposit.checkm")): ...     # Row(url=…, name=…, digest=…, …)

    judge(Path("deposit.checkm"))                    # its problems, line by line, without depositing

Checkm, in the dialect of the Merritt repository
------------------------------------------------

::

    #%checkm_0.7
    #%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest
    #%prefix | mrt: | http://merritt.cdlib.org/terms#
    #%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#
    #%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileName
    https://example.org/p1.tif | sha256 | 9f86d081… | 4711 | scans/p1.tif
    #%eof

The format and its field names come from the Checkm specification and from Merritt's public guide and
sample manifests. Where these leave something open, or manifests in use differ, this is the rule:

- Bytes: UTF-8, with or without a byte order mark; lines end in LF or CRLF. Refused: what is not UTF-8,
  a NUL, a line longer than 64 KiB (its end counted).
- Deviations of Merritt's clients are read with a warning, where they are unambiguous: no first line;
  fields without a prefix or with blanks in them; no ``|`` after a word of the header; a profile or prefix in
  capitals, a prefix without its colon, or with the URL of early manifests.
- First line: ``#%checkm_0.7``. Then profile, prefixes and fields, in any order but above the rows;
  profile and fields once. An unknown ``#%word`` is refused anywhere.
- Profiles: mrt-ingest-manifest (an object), mrt-single-file-batch-manifest,
  mrt-container-batch-manifest, mrt-batch-manifest; with the URL above.
- Prefixes: ``mrt:`` and ``nfo:``, each with the URL above; those of the fields that are named must be
  declared.
- Fields: in any order and in any case; ``nfo:fileUrl`` must be among them, each once. The fields that
  describe an object (primary and local identifiers, creator, title, date) only in batches.
- Rows: fields separated by ``|``, blanks and tabs around them are dropped. Fields missing at the end are
  empty; superfluous empty ones are dropped; a superfluous one with content is refused.
- Blank lines, and comments (``#`` without ``%``), are skipped everywhere but on the first line.
- ``#%eof``, in any case, must come: without it the manifest was cut off. Below it only blank lines and
  comments. A manifest without a row is refused.
- URL: http, https or file; no user name or password, no fragment, no unencoded blank.
- Name: a relative path downward, in which %20, %09, %7C and %25 are a blank, a tab, a bar and a percent
  sign (Checkm, section 3), and no other ``%`` means anything; without one, the last part of the URL,
  decoded. In an object two names that are equal are refused with both lines, and so is a file that is
  another's folder; two that are equal but for case or for the encoding of accents are kept, with a
  warning, since some file systems take them for one. In a batch each row is an object, and names may repeat.
- Digest: algorithm and value, or neither (see `spinney.files.digests`). Size: decimal digits.
- Local identifiers: several in one field, separated by ``;``.
- The date of the last change is kept as it was given, also in the inventory, and not checked: too many
  formats are in use.

JSON
----

The same content with other names: `PayloadKind` values as profiles, JSON Lines with a header and an end (the
counterpart of ``#%eof``; its number is the number of entries)::

    {"profile": "object-manifest"}
    {"url": "https://example.org/p1.tif", "name": "scans/p1.tif", "size": 4711,
     "digest": {"algorithm": "sha256", "value": "9f86d081…"}, "mime_type": "image/tiff"}    (in one line)
    {"end": 1}

or, up to 4 MiB, one document: ``{"profile": "object-manifest", "files": […]}``, and for a batch
``{"profile": "batch-manifest", "objects": […]}``. All keys of an entry but ``url`` may be left out or null:
``name``, ``digest``, ``size`` (bytes), ``modified``, ``mime_type``; in batches also ``primary_id``, ``local_ids``
(a list), ``creator``, ``title``, ``date``. In a batch-manifest an object may have ``files``, a list as in an
object manifest, in place of its ``url``. A line has up to 4 MiB; an object of more files is named by URL.
An unknown key, or one that occurs twice, is refused by name. Names may contain any character here.

Modules
-------

``model``       the data types: kinds of payloads, rows, problems
``reader``      reading and judging a manifest of either form
``writer``      writing a manifest that is read back the same
``checkm``      the form Checkm
``json_form``   the form JSON
``fields``      the rules for the fields of a row, in both forms
``file_names``  the rows of both forms, and the rules for the names of one object's files
``lines``       lines of untrusted text, bounded and numbered

Specified by ``tests/apps/ingest/manifests``.
"""

from spinney.apps.ingest.manifests.model import NOTHING as NOTHING
from spinney.apps.ingest.manifests.model import About as About
from spinney.apps.ingest.manifests.model import Judgement as Judgement
from spinney.apps.ingest.manifests.model import ManifestRefused as ManifestRefused
from spinney.apps.ingest.manifests.model import PayloadKind as PayloadKind
from spinney.apps.ingest.manifests.model import Problem as Problem
from spinney.apps.ingest.manifests.model import Row as Row
from spinney.apps.ingest.manifests.model import Warnings as Warnings
from spinney.apps.ingest.manifests.reader import judge as judge
from spinney.apps.ingest.manifests.reader import kind_of as kind_of
from spinney.apps.ingest.manifests.reader import read as read
from spinney.apps.ingest.manifests.writer import write as write
from spinney.apps.ingest.manifests.writer import write_json as write_json
