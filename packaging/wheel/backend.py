"""Builds the wheel (PEP 517) with nothing but the standard library, CMake and the system's tools.

The wheel puts the installed tree into the environment itself: bin/mpicc, lib/libmpi_abi.so.1,
include/mpi.h. Its programs are linked for machines that we do not know (the target
headway_portable), and libraries beyond libc come along in lib/headway. The platform tag says which
libc is needed: the newest version that a symbol asks for. Invariant: a file that
would need something else of the machine is an error here, not at the user's."""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "headway_mpi"

# What PEP 600 lets a wheel take from any machine.
OF_THE_MACHINE = re.compile(r"(libc|libm|libdl|librt|libpthread|libresolv)\.so\.\d+|ld-linux.*\.so\.\d+")


def run(*words, **more):
    """A command whose output the user sees only when it fails."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, **more)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} failed:\n{done.stdout[-6000:]}")
    return done.stdout


def version():
    found = re.search(r"project\(headway VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    return found[1]


# --------------------------------------------------------------------------------- what ELF says


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path))


def newest_glibc(paths):
    """The newest GLIBC_x.y that a symbol of these files asks for."""
    versions = {(2, 17)}  # older than that there is no manylinux
    for path in paths:
        for text in re.findall(r"Name: GLIBC_(\d+\.\d+)", run("readelf", "-VW", path)):
            versions.add(tuple(map(int, text.split("."))))
    return max(versions)


def where_loaded(path):
    """The files that the loader finds for a program's needs: name -> path."""
    found = re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", path), re.M)
    return dict(found)


# ----------------------------------------------------------------------------------- the tree


def build(folder):
    if not (folder / "CMakeCache.txt").exists():
        run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja" if shutil.which("ninja") else
            "Unix Makefiles", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_INSTALL_LIBDIR=lib",
            "-DHEADWAY_TESTS=OFF")
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 2))
    run("cmake", "--build", folder, "-j", jobs, "--target", "headway_installed", "headway_portable")


def stage(folder, prefix):
    """The installed tree in the form that a wheel can carry."""
    environment = {k: v for k, v in os.environ.items() if k != "DESTDIR"}
    manifest = folder / "install_manifest.txt"
    kept = manifest.read_bytes() if manifest.exists() else None
    run("cmake", "--install", folder, "--prefix", prefix, "--strip", env=environment)
    if kept is not None:  # `make uninstall` removes what `make install` has written, not this
        manifest.write_bytes(kept)
    else:
        manifest.unlink()
    for name, place in (("mpiexec", "bin"), ("cluster-enter", "libexec/headway"),
                        ("cluster-probe", "libexec/headway"), ("headway-record", "libexec/headway"),
                        ("headway-judge", "libexec/headway")):
        shutil.copy2(folder / "portable" / name, prefix / place / name)
        run("strip", prefix / place / name)
    bundle(prefix)
    replace_links(prefix)
    # pip knows the licence by its own folder.
    shutil.rmtree(prefix / "share" / "doc")


def bundle(prefix):
    """Brings the libraries that are not on every machine, and theirs."""
    folder = prefix / "lib" / "headway"
    for program in (prefix / "bin" / "mpiexec", *sorted((prefix / "libexec" / "headway").iterdir())):
        places = where_loaded(program)
        wanted = needed(program)
        while wanted:
            name = wanted.pop()
            if OF_THE_MACHINE.fullmatch(name) or (folder / name).exists():
                continue
            if name not in places:
                raise SystemExit(f"{program.name} needs {name}, which is not found here")
            folder.mkdir(exist_ok=True)
            shutil.copy(os.path.realpath(places[name]), folder / name)
            os.chmod(folder / name, 0o755)
            wanted += needed(folder / name)
    library = prefix / "lib" / "libmpi_abi.so.1"
    foreign = [name for name in needed(library) if not OF_THE_MACHINE.fullmatch(name)]
    if foreign:
        raise SystemExit(f"{library.name} needs {foreign}")


def replace_links(prefix):
    """A wheel has no symbolic links. The library must stay one file: a copy under a second name
    would be a second MPI in one process."""
    for path in [p for p in prefix.rglob("*") if p.is_symlink()]:
        target = os.readlink(path)
        path.unlink()
        if path.suffix == ".so":
            path.write_text(f"/* GNU ld script */ INPUT({target})\n")
        else:
            path.write_text(f'#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/{target}" "$@"\n')
            path.chmod(0o755)


# ---------------------------------------------------------------------------------- the wheel


def project():
    """The table [project] of pyproject.toml, of which few lines matter here. (tomllib came with
    Python 3.11; pip brings its own and does not lend it.)"""
    text = (ROOT / "pyproject.toml").read_text()
    section = text[text.index("[project]"):]
    plain = dict(re.findall(r'^([\w-]+) = "(.*)"$', section, re.M))
    plain["classifiers"] = re.findall(r'^  "(.*)",$', section, re.M)
    return plain


def study_packages():
    """What `headway study` needs: those of the project's own environment."""
    lines = (ROOT / "scripts" / "python-requirements.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def metadata(licences, for_index=False):
    """`licences`: the names of the licence files. The licence stands there twice: pip before 25 shows
    the old field `License` alone, and readers of the new ones pass it over. An index may refuse a
    wheel that has both (PEP 639), so one that is to be uploaded (`for_index`) leaves the old one out."""
    facts = project()
    old = [] if for_index else [f"License: {facts['license']}"]
    lines = ["Metadata-Version: 2.4", f"Name: {facts['name']}", f"Version: {version()}",
             f"Summary: {facts['description']}", *old, f"License-Expression: {facts['license']}",
             *(f"License-File: {name}" for name in licences),
             f"Requires-Python: {facts['requires-python']}",
             *(f"Classifier: {text}" for text in facts["classifiers"]),
             "Provides-Extra: study",
             *(f'Requires-Dist: {line}; extra == "study"' for line in study_packages()),
             "Description-Content-Type: text/markdown", "", (ROOT / "README.md").read_text()]
    return "\n".join(lines)


def tag(prefix):
    files = [path for path in prefix.rglob("*") if path.is_file() and is_elf(path)]
    major, minor = newest_glibc(files)
    return f"py3-none-manylinux_{major}_{minor}_{os.uname().machine}"


def licences_of_bundled(prefix):
    """Debian's account of each library that comes along: name -> text."""
    found = {}
    folder = prefix / "lib" / "headway"
    for path in sorted(folder.iterdir()) if folder.exists() else []:
        owner = subprocess.run(["dpkg-query", "-S", f"*/{path.name}*"], capture_output=True,
                               text=True, check=False).stdout.split(":")[0]
        account = pathlib.Path("/usr/share/doc") / owner / "copyright"
        if owner and account.exists():
            found[f"{path.name}.txt"] = account.read_text()
    return found


class Archive:
    """A wheel being written: files in order, the same bytes for the same content."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)  # closed by finish()
        self.rows = []

    def add(self, name, data, executable=False):
        if isinstance(data, str):
            data = data.encode()
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{len(data)}")

    def finish(self, record):
        self.rows.append(f"{record},,")
        self.zip.writestr(zipfile.ZipInfo(record, (1980, 1, 1, 0, 0, 0)), "\n".join(self.rows) + "\n")
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517. --config-settings build-dir=FOLDER uses another build folder than build/, and
    for-index=yes builds what may be uploaded to a package index."""
    del metadata_directory
    settings = config_settings or {}
    folder = pathlib.Path(settings.get("build-dir", ROOT / "build")).resolve()
    build(folder)
    with tempfile.TemporaryDirectory() as scratch:
        prefix = pathlib.Path(scratch) / "tree"
        stage(folder, prefix)
        label = tag(prefix)
        wheel = f"{NAME}-{version()}-{label}.whl"
        info = f"{NAME}-{version()}.dist-info"
        archive = Archive(pathlib.Path(wheel_directory) / wheel)
        for path in sorted(p for p in prefix.rglob("*") if p.is_file()):
            archive.add(f"{NAME}-{version()}.data/data/{path.relative_to(prefix)}", path.read_bytes(),
                        os.access(path, os.X_OK))
        licences = {"LICENSE": (ROOT / "LICENSE").read_text(), **licences_of_bundled(prefix)}
        for name, text in licences.items():
            archive.add(f"{info}/licenses/{name}", text)
        archive.add(f"{info}/METADATA", metadata(licences, "for-index" in settings))
        archive.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: headway {version()}\n"
                                     f"Root-Is-Purelib: false\nTag: {label}\n")
        archive.finish(f"{info}/RECORD")
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517: the files that git knows."""
    del config_settings
    name = f"{NAME}-{version()}"
    path = pathlib.Path(sdist_directory) / f"{name}.tar.gz"
    run("git", "-C", ROOT, "archive", "--format=tar.gz", f"--prefix={name}/", "-o", path, "HEAD")
    return path.name


if __name__ == "__main__":
    # Without pip: backend.py FOLDER [BUILD]
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    print(out / build_wheel(out, {"build-dir": sys.argv[2]} if len(sys.argv) > 2 else None))
