"""Access makes packages of stored objects on request.

A request is a job of the type ``ingest.access`` in the queue ``access-small`` or ``access-large``, by the size in the
inventory. The caller gets a token at once, with which to look up the state of the request.

**Who writes what, in which order.** ``request`` submits the job under a key of the request, kept for ever: if two
callers request the same at once, one makes the job and the other finds it. The stage writes ``.FENCE.part`` in the
token's folder, then ``package.json`` with the time at which the package expires, then gives the package its name. When
it has expired it counts as gone, whether its file still exists or not; ``cleanup`` removes it.

**What a crash leaves.** An attempt that is killed before the package has its name leaves a part file that nobody reads:
the next attempt removes it and starts over. After an attempt that is killed later, the next finds the package and
returns it. After a full disk, a cancellation or a damaged file the part file is removed at once.

``requests``          requesting a package, and looking up its state
``package_job``       the job type of a request, whose one stage makes the package
``tickets``           the token of a request, and what its caller may see
``forecast``          when a package will be ready
``packages``          packages on disk: complete under their name, or absent
``bags``              a version of an object as a bag (RFC 8493)
``contents``          one stored file, compared with its digests while it is sent, and a version's manifest

Importing ``package_job`` declares the job type; the others do not depend on the application.

Specified by ``tests/apps/ingest/access``.
"""
