#!/usr/bin/env python3
"""The first hour of a new user: a bare Debian, the README's commands from a fresh clone, and the
Python wheel in a fresh environment of an ordinary user. Makes out/trial.md, in which every command
stands with the time that it took and all that a terminal showed.

Needs root (chroot, mount namespaces), debootstrap (scripts/install-deps.sh --trial) and a network.
What is tried is the last commit. Nothing is mounted outside of namespaces that end with each command,
so the folder of a root can be removed at any time."""
import argparse
import contextlib
import datetime
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import trial_page
import trial_root
from trial_root import Root

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "apps" / "tests"))
import test_tutorial  # noqa: E402

CACHE = pathlib.Path(os.environ.get("HEADWAY_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "headway"))
TREE = "/root/headway"
WHEELS = "/srv/wheels"


class Trial:
    """Runs commands in one root, and keeps what they did. `steps` is filled in order."""

    def __init__(self, root, user="root"):
        self.root = root
        self.user = user
        self.home = "/root" if user == "root" else f"/home/{user}"
        self.steps = []

    def section(self, title, about=""):
        self.steps.append(trial_page.Section(title, about))
        print(f"== {title}", flush=True)

    def run(self, line, cwd=None, user=None, before="", good=(0,), first=None, mark="", limit=900):
        """`before` is shell that the user typed earlier and that a new shell needs again; `first` is a
        pattern whose first appearance is timed."""
        user = user or self.user
        step = self.root.run(f"{before}\n{line}" if before else line, cwd or self.home, user,
                             limit, first)
        step.line, step.mark, step.user = line, mark, user
        step.expected = step.code in good
        self.steps.append(step)
        note = "" if step.expected else f" (code {step.code})"
        print(f"{step.seconds:8.1f} s  {line.splitlines()[0]}{note}", flush=True)
        return step

    def write(self, name, text):
        """A file that the user wrote with an editor."""
        path = self.root.inside(f"{self.home}/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if self.user != "root":
            shutil.chown(path, self.root.uid(self.user))
        self.steps.append(trial_page.Written(name))


def tutorial():
    """Files and commands of docs/tutorial.md after its build: (name, text) or (None, command)."""
    page = (ROOT / "docs" / "tutorial.md").read_text()
    for _, mark, value, language, text in test_tutorial.blocks(page):
        if mark == "file":
            yield value, text
        elif language == "sh" and mark != "not run":
            yield None, text.rstrip("\n")


def hello():
    return next(text for name, text in tutorial() if name == "hello.c")


def first_programs(trial):
    trial.section("README: use it")
    trial.write("headway/program.c", hello())
    trial.run("build/bin/mpicc -O2 program.c -o program", TREE)
    trial.run("build/bin/mpiexec -n 4 ./program", TREE, first=r"rank \d of 4", mark="own program")
    for line in ("build/bin/mpiexec -n 4 --timeout 60 ./program",
                 "build/bin/mpiexec -n 4 -l ./program",
                 "build/bin/mpiexec -n 4 --set PROGRESS=off ./program",
                 "build/bin/mpiexec --help",
                 "build/bin/mpiexec --check ./program"):
        trial.run(line, TREE)


def looking_round(trial):
    trial.section("Looking round, and first slips")
    for line in ("build/bin/mpiexec --version", "build/bin/mpiexec --info",
                 "build/bin/mpiexec -n 2 --show-binding ./program", "./program",
                 "build/bin/mpicc -show"):
        trial.run(line, TREE)
    trial.run("build/bin/mpiexec", TREE, good=(2,))
    trial.run("build/bin/mpiexec -n 2 ./progam", TREE, good=(127,))
    trial.run("build/bin/mpiexec -n 2 --tiemout 60 ./program", TREE, good=(2,))
    trial.run("build/bin/mpiexec -n 2 --set PROGRES=off ./program", TREE, good=(2,))
    trial.run("make help", TREE)


def from_source(trial):
    """Leaves the wheel in the root, if everything went well until then."""
    trial.section("What the README asks for", "A Debian that has git and make.")
    trial.run("apt-get update", limit=300)
    trial.run("apt-get install -y git make", limit=300)
    trial.section("README: the first command")
    trial.run("git clone file:///srv/headway.git headway", mark="clone")
    trial.run("make demo", TREE, first=r"PES on Headway", mark="demo")
    trial.run("ls -l out", TREE)
    first_programs(trial)
    looking_round(trial)
    trial.section("The tutorial, without its build")
    for name, text in tutorial():
        if name:
            trial.write(f"headway/{name}", text)
        else:
            trial.run(text, TREE, good=range(128))
    trial.section("Installed for everybody")
    trial.run("make install", TREE, mark="install")
    trial.write("hello.c", hello())
    trial.run("mpicc hello.c -o hello && mpiexec -n 2 ./hello")
    trial.run("make uninstall", TREE)
    trial.run("mpiexec --version", good=(127,))
    trial.section("The wheel is built")
    trial.run("make wheel", TREE, mark="wheel")


def from_wheel(trial, wheel):
    trial.section("A machine with Python, without a compiler",
                  "Another bare Debian. What root prepares is not counted.")
    trial.run("apt-get update", user="root", limit=300)
    trial.run("apt-get install -y python3-venv", user="root", limit=300)
    trial.section("README: a Python wheel", f"As the ordinary user `{trial.user}`.")
    trial.run("python3 -m venv mpi", mark="environment")
    active = ". mpi/bin/activate"
    trial.run(f". mpi/bin/activate\npip install {WHEELS}/{wheel}", mark="pip")
    trial.run("mpiexec --version", before=active)
    trial.write("hello.c", hello())
    trial.run("mpicc hello.c -o hello", before=active, good=(1, 2, 126, 127))
    trial.section("Now with a C compiler")
    trial.run("apt-get install -y gcc libc6-dev", user="root", limit=300)
    trial.run("mpicc hello.c -o hello", before=active, mark="compile")
    trial.run("mpiexec -n 2 ./hello", before=active, first=r"rank \d of 2", mark="wheel program")
    for line in ("mpiexec -n 4 -l ./hello", "mpiexec --info", "mpiexec --check ./hello",
                 "./hello", "mpicc -show", "pip show -f headway-mpi"):
        trial.run(line, before=active)
    trial.run("pip uninstall -y headway-mpi", before=active)
    trial.run("mpiexec --version", before=active, good=(127,))


def about(notes):
    """What the record says of the place."""
    head = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%h"], check=True,
                          capture_output=True, text=True).stdout.strip()
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return trial_page.Place(
        date=datetime.datetime.now(datetime.timezone.utc).strftime("%d %B %Y").lstrip("0"),
        commit=head, cores=os.cpu_count() or 1, model=model[1] if model else platform.machine(),
        kernel=".".join(platform.release().split(".")[:2]), notes=notes)


def repository(root):
    """The last commit, where the user clones it from."""
    subprocess.run(["git", "clone", "--quiet", "--bare", "--no-hardlinks", f"file://{ROOT}",
                    root.inside("/srv/headway.git")], check=True)


@contextlib.contextmanager
def bare_root(options):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="headway-trial-", dir=options.scratch))
    try:
        yield Root(folder, trial_root.bare_system(CACHE / "trial", options.suite, options.mirror))
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            trial_root.remove(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="bookworm", help="release of Debian")
    parser.add_argument("--mirror", default=trial_root.mirror(), help="where its packages are")
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/tmp"),
                        help="folder for the roots (2 GB)")
    parser.add_argument("--wheel", type=pathlib.Path,
                        help="try this wheel only, and print the page instead of writing it")
    parser.add_argument("--note", action="append", default=[],
                        help="a sentence for the record, such as what else the machine did")
    parser.add_argument("--keep", action="store_true", help="leave the roots where they are")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "out" / "trial.md")
    options = parser.parse_args()
    problem = trial_root.unfit()
    if problem:
        sys.exit(f"trial: {problem}")

    place = about(options.note)  # now: what is tried is this commit, whatever is committed meanwhile
    source, second, wheel = None, None, options.wheel

    def record():
        if not source and not second:
            return  # nothing was tried: the old record stays
        page = trial_page.page(place, options.suite, source and source.steps, second and second.steps)
        if options.wheel:
            print(page)
        else:
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(page)
            print(f"the record: {options.output}")

    with contextlib.ExitStack() as stack:
        try:
            if not wheel:
                root = stack.enter_context(bare_root(options))
                repository(root)
                source = Trial(root)
                from_source(source)
                wheel = next(root.inside(f"{TREE}/dist").glob("*.whl"), None)
            if wheel:
                root = stack.enter_context(bare_root(options))
                root.add_user("ada")
                root.inside(WHEELS).mkdir()
                shutil.copy(wheel, root.inside(WHEELS))
                second = Trial(root, "ada")
                from_wheel(second, wheel.name)
        finally:  # also a trial that was interrupted; before the roots are removed, which takes long
            record()
    bad = [step for trial in (source, second) if trial for step in trial.steps
           if not getattr(step, "expected", True)]
    for step in bad:
        print(f"not as expected: {step.line!r} ended with {step.code}", file=sys.stderr)
    return 1 if bad or not wheel else 0


if __name__ == "__main__":
    sys.exit(main())
