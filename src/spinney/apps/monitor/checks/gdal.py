"""GDAL: ``gdalinfo`` or ``ogrinfo`` opens the service, where they are installed.

GDAL fetches by itself, so the URI is fetched first by the rules of the settings: a host that checks may not reach is
not given to GDAL. (The check is not applicable on hosts without GDAL, so the task may stay in the folder there.)"""

import shutil
import time
from pathlib import Path

from spinney.apps.monitor.checks.capabilities import TEXT_MAX, capabilities_uri
from spinney.apps.monitor.checks.fetch import Unreachable, fetch
from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.tasks import programs
from spinney.apps.monitor.tasks.findings import NOT_APPLICABLE, Finding, error
from spinney.apps.monitor.tasks.modules import Context

NAME = "gdal_info"
DESCRIPTION = "GDAL opens the service"
_PROGRAMS = {
    "WMS": ("gdalinfo",),
    "WCS": ("gdalinfo",),
    "WMTS": ("gdalinfo",),
    "WFS": ("ogrinfo", "-so", "-ro"),
}


def check(service: Service, context: Context) -> Finding:
    """Start the program for the type of the service. It is an error when the program fails, is too slow, or
    prints a line that begins with ``ERROR``, since GDAL may do that and still exit with 0."""
    name, *options = _PROGRAMS.get(service.type, ("",))
    program = shutil.which(name) if name else None
    if program is None:
        return NOT_APPLICABLE
    uri = capabilities_uri(service)
    # GDAL has to end before the task's time is over, else it would run on beside the next check.
    until_s = time.monotonic() + context.timeout_s - 0.5
    try:
        fetch(uri, context, body_max=1)
        left_s = round(max(0.1, until_s - time.monotonic()), 1)
        output = programs.output_of((program, *options, f"{service.type}:{uri}"), Path.cwd(), left_s)
    except Unreachable as unreachable:
        return unreachable.finding
    except programs.ProgramFailed as failure:
        return error("gdal_error", f"{service.type} GDAL error: {failure}")
    if problem := next((line for line in output.splitlines() if line.startswith("ERROR")), None):
        return error("gdal_error", f"{service.type} GDAL error: {problem[:TEXT_MAX]}")
    return Finding(info=f"Valid {service.type} GDAL info response (version {service.version})")
