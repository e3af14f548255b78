"""The verbs of both clients: each is the request that it makes, and names its parameters as the API does.

A name that Python has for itself bears an underscore behind it (``type_``); filters are written as they are.
"""

from spinney.client.verbs.external import ExternalVerbs
from spinney.client.verbs.files import FileVerbs
from spinney.client.verbs.submissions import SubmissionVerbs


class Verbs(
    SubmissionVerbs,
    FileVerbs,
    ExternalVerbs,
):
    """What a client can ask. Raises what ``spinney.control`` raises for the same, and ServerUnavailable."""
