"""The errors of the Merritt queue library; two have the names that Merritt's own libraries give them."""


class MerrittError(Exception):
    """The base of all errors that this library raises."""


class MerrittStateError(MerrittError):
    """The state machine does not allow what was asked for."""


class MerrittZKNodeInvalid(MerrittError):
    """A node is missing, or its content cannot be read."""


class MerrittNodeTooLarge(MerrittError):
    """A value is larger than a node may be."""


class MerrittLocked(MerrittError):
    """Another client holds the lock, or the caller has lost it."""


class MerrittConflict(MerrittError):
    """Somebody else changed the item since the caller read it, or made it first."""


class MerrittCommitUncertain(MerrittError):
    """The connection was lost before ZooKeeper answered, so the change may or may not have been made."""
