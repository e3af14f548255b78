"""The machine that this runs on."""

from pathlib import Path


def boot_id() -> str:
    """The kernel's boot: processes of another boot of this machine cannot be alive."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
