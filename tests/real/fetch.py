"""Fetches the sources of real codes: Debian's source packages and PyPI's, into a cache outside the tree.

Nothing of the system is changed, and no root is needed: apt-get gets lists and a cache of its own, with the
system's sources and, beside each, its source packages."""

import os
import pathlib
import re
import subprocess
import sys


class Missing(Exception):
    """A source that cannot be had here: its test is skipped, and says this."""


def run(command, **more):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", check=False, **more)


class Debian:
    """Debian's archive, as this machine's own apt-get is set up for it."""

    def __init__(self, folder):
        self.folder = folder / "apt"
        self.options = [f"-oDir::Etc::sourcelist={self.folder}/all.list", "-oDir::Etc::sourceparts=/dev/null",
                        f"-oDir::State::lists={self.folder}/lists", f"-oDir::Cache={self.folder}/cache",
                        "-oAPT::Sandbox::User=root", "-oDebug::NoLocking=1"]

    def get(self, *words, folder):
        if not (self.folder / "ready").exists():
            self.prepare()
        try:
            return run(["apt-get", *self.options, "-qq", *words], cwd=folder, timeout=600)
        except subprocess.TimeoutExpired:
            raise Missing("the archive of Debian did not answer in ten minutes") from None

    def prepare(self):
        """Lists of packages and of source packages."""
        lines = one_line_sources(pathlib.Path("/etc/apt"))
        if not lines:
            raise Missing("this is no Debian: there are no sources in /etc/apt")
        for part in ("lists/partial", "cache/archives/partial"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        (self.folder / "all.list").write_text("\n".join(lines) + "\n")
        try:
            done = run(["apt-get", *self.options, "-qq", "update"], timeout=600)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Missing(f"apt-get update: {error}") from None
        if not list((self.folder / "lists").glob("*Sources*")):
            raise Missing(f"apt-get update brings no source packages: {done.stderr[-300:]}")
        (self.folder / "ready").touch()

    def source(self, names, folder):
        """The tar file of the first of the names that there is."""
        for name in names:
            there = sorted(folder.glob(f"{name}_*.orig.tar.*"))
            if there:
                return there[0]
        said = ""
        for name in names:
            got = self.get("source", "--download-only", "--tar-only", name, folder=folder)
            there = sorted(path for path in folder.glob(f"{name}_*.orig.tar.*") if path.suffix != ".asc")
            if got.returncode == 0 and there:
                return there[0]
            said += got.stderr[-200:]
        raise Missing(f"Debian's source package {names[0]}: {said.strip()}")

    def unpacked(self, names, folder):
        """Binary packages, unpacked into the folder rather than installed."""
        if (folder / ".ready").exists():
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        got = self.get("download", *names, folder=folder)
        if got.returncode != 0:
            raise Missing(f"Debian's packages {' '.join(names)}: {got.stderr[-300:]}")
        for package in sorted(folder.glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, folder], check=True)
        (folder / ".ready").touch()
        return folder


def one_line_sources(etc):
    """The sources of an /etc/apt in apt's one-line form: of each its packages and its source packages."""
    lines = []
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]:
        for line in path.read_text().splitlines() if path.exists() else []:
            if line.startswith("deb "):
                lines += [line, "deb-src" + line[3:]]
    for path in sorted((etc / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.+?)[ \t]*$", stanza, re.MULTILINE))
            if not {"URIs", "Suites"} <= fields.keys() or fields.get("Enabled") == "no":
                continue
            signed = f"[signed-by={fields['Signed-By']}] " if fields.get("Signed-By", "").startswith("/") else ""
            for address in fields["URIs"].split():
                for suite in fields["Suites"].split():
                    rest = f" {signed}{address} {suite} {fields.get('Components', '')}".rstrip()
                    lines += ["deb" + rest, "deb-src" + rest]
    return lines


def pypi_source(name, version, folder, **environment):
    """The tar file of a source package of PyPI. pip asks its build for the package's name first, and that
    may look for a library: `environment` tells it where."""
    pattern = f"{name.replace('-', '[-_]')}-{version}.tar.gz"
    there = list(folder.glob(pattern))
    if not there:
        got = run([sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps",
                   "--no-binary", name, "-d", folder, f"{name}=={version}"], env=os.environ | environment, timeout=600)
        there = list(folder.glob(pattern))
        if not there:
            raise Missing(f"{name} {version} of PyPI: {got.stderr[-300:]}")
    return there[0]


def unpack(tar, folder, parts=()):
    """Unpacks a tar file, or some of its folders, without the folder that it all lies in."""
    folder.mkdir(parents=True, exist_ok=True)
    done = run(["tar", "-xf", tar, "-C", folder, "--strip-components=1", *parts], timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{tar} cannot be unpacked: {done.stderr[-300:]}")
