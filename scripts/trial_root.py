"""A bare Debian in a folder, and commands in it as in a terminal of its own: for scripts/trial.py.

Each command has its own mount and process namespace. All mounts and all processes of a command end
with it, so that nothing is ever mounted in the folder when it is looked at from outside. Standard
library only."""
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

import trial_page

SIZE = (40, 100)  # rows and columns of the terminal
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PLACE = "/srv/place"  # the network settings of this machine, inside a root

# $1 root, $2 user, $3 folder, $4 command, then the environment. The shell stays process 1, as an
# init would.
ENTER = """
set -e
root=$1 user=$2 folder=$3 line=$4
shift 4
mount --bind "$root" "$root"  # a root is a mount, as in a container
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
set +e
chroot "$root" env -i "$@" setsid --ctty --wait \\
  setpriv --reuid "$user" --regid "$user" --init-groups bash -c 'cd "$1" && eval "$2"' bash \\
  "$folder" "$line"
exit $?
"""


def unfit():
    """Why a trial cannot be made here; empty if it can."""
    if os.geteuid() != 0:
        return "it needs root, for chroot and mount namespaces"
    if not shutil.which("debootstrap"):
        return "there is no debootstrap: scripts/install-deps.sh --trial installs it"
    made = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True,
                          text=True, check=False)
    return "" if made.returncode == 0 else f"no namespaces here: {made.stderr.strip()}"


def mirror():
    """Where this machine has its Debian packages from."""
    for file in sorted(pathlib.Path("/etc/apt").glob("sources.list.d/*.sources")):
        found = re.search(r"^URIs: *(\S+/debian)/?$", file.read_text(), re.M)
        if found:
            return found[1]
    file = pathlib.Path("/etc/apt/sources.list")
    found = re.search(r"^deb +(?:\[.*\] +)?(\S+/debian)/? ", file.read_text() if file.exists() else "", re.M)
    return found[1] if found else "http://deb.debian.org/debian"


def mounted_below(folder):
    """Mounts below the folder that this process sees."""
    below = f"{folder.resolve()}/"
    places = [row.split()[4] for row in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    return [place for place in places if place.startswith(below)]


def remove(folder):
    if mounted_below(folder):
        raise SystemExit(f"trial: {folder} is left, since something is mounted there")
    shutil.rmtree(folder)


def bare_system(cache, suite, source):
    """The archive of a minimal Debian; made once."""
    archive = cache / f"{suite}.tar"
    if archive.exists():
        return archive
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{suite}.new"
    if folder.exists():
        remove(folder)
    print(f"== a bare {suite} from {source}, kept in {archive}", flush=True)
    subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "debootstrap",
                    "--variant=minbase", suite, folder, source], check=True,
                   stdout=subprocess.DEVNULL, timeout=900)
    # Downloaded packages are no part of a system that somebody has installed.
    for package in (folder / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()
    half = archive.with_suffix(".part")
    subprocess.run(["tar", "--one-file-system", "--numeric-owner", "-C", folder, "-cf", half, "."],
                   check=True)
    half.rename(archive)
    remove(folder)
    return archive


class Root:
    """One root folder. Owner: who made the folder, and removes it."""

    def __init__(self, folder, archive):
        self.folder = folder
        folder.chmod(0o755)
        subprocess.run(["tar", "--numeric-owner", "-C", folder, "-xf", archive], check=True)
        self.take_network_settings()

    def inside(self, path):
        return self.folder / str(path).lstrip("/")

    def take_network_settings(self):
        """How this machine reaches its mirrors: no part of what is tried."""
        for name in ("resolv.conf", "hosts"):
            shutil.copyfile(f"/etc/{name}", self.inside(f"/etc/{name}"))
        for file in pathlib.Path("/etc/apt/apt.conf.d").glob("*"):
            if re.search(r"^Acquire::(http|Check)", file.read_text(), re.M):
                shutil.copy(file, self.inside("/etc/apt/apt.conf.d"))
        self.inside(PLACE).mkdir(parents=True)
        self.variables = {name: value for name, value in os.environ.items()
                          if name.lower().endswith("_proxy") or name in ("PIP_INDEX_URL",)}
        if "PIP_CERT" in os.environ and os.path.exists(CERTIFICATES):
            shutil.copy(CERTIFICATES, self.inside(f"{PLACE}/certificates"))
            self.variables["PIP_CERT"] = f"{PLACE}/certificates"

    def add_user(self, name):
        subprocess.run(["chroot", self.folder, "useradd", "--create-home", "--shell", "/bin/bash",
                        name], check=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})

    def uid(self, name):
        row = re.search(rf"^{name}:[^:]*:(\d+):", self.inside("/etc/passwd").read_text(), re.M)
        return int(row[1])

    def run(self, line, folder, user, limit, first=None):
        """One command line of a user; the result is a trial_page.Step without its line."""
        home = "/root" if user == "root" else f"/home/{user}"
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                     "HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/bash",
                     "TERM": "xterm-256color", "LANG": "C.UTF-8", **self.variables}
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
                 "sh", "-c", ENTER, "sh", str(self.folder), user, folder, line,
                 *(f"{name}={value}" for name, value in variables.items())]
        return in_terminal(words, limit, first)


def in_terminal(words, limit, first=None):
    """Runs the words with a terminal as stdin, stdout and stderr; `first`: see Trial.run."""
    screen, reached, seen = trial_page.Screen(), None, ""
    began = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
            os.execvp(words[0], words)
        finally:
            os._exit(127)
    try:
        while True:
            left = limit - (time.monotonic() - began)
            ready, _, _ = select.select([terminal], [], [], max(left, 0))
            if not ready:
                os.kill(child, signal.SIGKILL)
                screen.show(f"\ntrial: not done after {limit} s\n", limit)
                break
            try:
                data = os.read(terminal, 65536)
            except OSError:  # EIO: the last one that held the terminal has gone
                data = b""
            if not data:
                break
            now = time.monotonic() - began
            screen.take(data, now)
            if first and reached is None:
                seen = (seen + data.decode(errors="replace"))[-4000:]
                reached = now if re.search(first, seen) else None
    finally:
        os.close(terminal)
        _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return trial_page.Step(seconds=time.monotonic() - began, code=code, reached=reached,
                           rows=screen.rows())
