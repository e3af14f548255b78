"""What is installed from a wheel has all that it needs: code, migrations, templates and files that are served."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from long_tests import long_alone

ROOT = Path(__file__).parents[1]
SETTINGS = """
home = "home"
[storage.main]
url = "archive"
[minters.main]
naan = "99999"
shoulder = "fk4"
"""


@long_alone
def test_a_wheel_has_every_file_and_what_it_installs_makes_its_stores(tmp_path: Path) -> None:
    # Given the repository as others clone it, without what earlier builds have left
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    left = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", clone / "src", ignore=left)
    files = {str(file.relative_to(clone / "src")) for file in (clone / "src").rglob("*") if file.is_file()}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]

    # When a wheel of it is made, and installed apart from the packages that it needs
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, clone], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", tmp_path / "installed", wheel], check=True)

    # Then it has all files,
    assert files - set(zipfile.ZipFile(wheel).namelist()) == set()

    # and makes a store and an inventory by what it has brought.
    (tmp_path / "ingest.toml").write_text(SETTINGS)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(tmp_path / "installed"),
        "SPINNEY_STORE": f"sqlite:///{tmp_path}/spinney.db",
        "SPINNEY_INGEST": str(tmp_path / "ingest.toml"),
    }

    def ran(*words: str) -> str:
        return subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    assert ran("-c", "import spinney; print(spinney.__file__)").startswith(str(tmp_path / "installed"))
    for words in (["init"], ["ingest", "init"], ["ingest", "batches"]):
        ran("-m", "spinney", *words)
    (tmp_path / "home" / "profiles" / "maps.toml").write_text('collection = "maps"\n')
    assert "bid-" in ran(
        "-m", "spinney", "ingest", "submit", "ingest.toml", "--kind", "file", "--profile", "maps"
    )
