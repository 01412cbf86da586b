"""Python environments for codes that are built on mpi4py."""

import subprocess
import sys

from place import ROOT, Failed

MPI4PY = "4.1.2"  # as scripts/mpi4py.sh builds it


def site_of(folder):
    return next(folder.glob("lib/python*/site-packages"))


def with_mpi4py(place):
    """The folder of packages that has mpi4py, built for this MPI, and numpy."""
    if place.mpi.name == "headway":
        made = subprocess.run([ROOT / "scripts" / "mpi4py.sh", place.mpi.bin.parent], stdout=subprocess.PIPE, text=True,
                              env=place.mpi.environment(), timeout=3000, check=False)
        if made.returncode != 0:
            raise Failed("mpi4py cannot be built with our mpicc: scripts/mpi4py.sh")
        return site_of(place.root.__class__(made.stdout.strip()) / "venv")
    folder = place.root / "mpi4py" / place.mpi.key()
    if not (folder / ".ready").exists():
        place.step("mpi4py-environment", [sys.executable, "-m", "venv", "--clear", folder], place.folder)
        pip(place, "mpi4py", folder, "numpy>=2,<3", "--no-binary", "mpi4py", f"mpi4py=={MPI4PY}",
            MPI4PY_BUILD_MPICC=str(place.mpi.bin / "mpicc"), CFLAGS="-O0 -g0")
        (folder / ".ready").touch()
    return site_of(folder)


def environment(place, *packages):
    """A new environment place.folder/venv with these packages, mpi4py and numpy; its interpreter."""
    folder = place.folder / "venv"
    place.step("environment", [sys.executable, "-m", "venv", "--clear", folder], place.folder)
    (site_of(folder) / "mpi4py.pth").write_text(f"{with_mpi4py(place)}\n")
    pip(place, "packages", folder, *packages)
    return folder / "bin" / "python"


def pip(place, name, folder, *words, **variables):
    place.step(f"pip-{name}", [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q",
                               *words], place.folder, environment=variables)
