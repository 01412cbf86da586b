"""Machine: what a cluster leaves on the machine, and how it is put back.

All state lies under BASE, one folder a cluster, plus the settings that the machine had before the
first cluster came up. Invariant: what `up` is about to change is on disk before it changes, so
`down` works after a crash at any point. One lock is held by whoever changes anything; children
inherit it, so it is free only once a killed `up` has stopped working altogether.
"""

import contextlib
import fcntl
import glob
import json
import os
import shutil
import struct
import time

import namespaces
from plan import Plan, Refused

BASE = "/run/headway-cluster"
LOCK_PATIENCE = 120.0
NEIGHBOURS = "net/ipv4/neigh/default"
# Beyond these the kernel drops packets where nothing counts them for us (measured: 12,000 drops in
# one all-to-all of 16 hosts; connections never up from 32 hosts on).
SETTINGS = {
    "net/core/netdev_max_backlog": "100000",
    f"{NEIGHBOURS}/gc_thresh3": "131072",
    f"{NEIGHBOURS}/gc_thresh2": "65536",
    f"{NEIGHBOURS}/gc_thresh1": "65536",
    "net/bridge/bridge-nf-call-iptables": "0",
}
# `put` lowers thresholds in the opposite order, so that 1 <= 2 <= 3 holds at every moment.


FAST_LINK = 200_000_000  # bit/s; from there on `awake` does something


def boot_id():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def read_setting(name):
    try:
        with open(f"/proc/sys/{name}", encoding="ascii") as file:
            return " ".join(file.read().split())
    except OSError:
        return None


def write_setting(name, value):
    with open(f"/proc/sys/{name}", "w", encoding="ascii") as file:
        file.write(value)


@contextlib.contextmanager
def awake(plan, inherited=False):
    """Where links are fast, no idle processor halts meanwhile: one that does serves the shapers'
    timers late, and what a bucket cannot hold is lost. (A sender of 64 messages of 16 KB that slept
    until they were out got 99 to 119 MB/s of 1 Gbit/s in a virtual machine, with this 117 to 120;
    one that polled always 119. On slow links a late timer is nothing, and processors that poll took
    3 % from an all-to-all of 16 hosts.) The kernel forgets the wish with the descriptor: nothing is
    to be put back. True if it was heard."""
    if plan.link_rate <= FAST_LINK:
        yield False
        return
    try:
        fd = os.open("/dev/cpu_dma_latency", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        heard = os.write(fd, struct.pack("i", 0)) == 4  # microseconds that a processor may take
        os.set_inheritable(fd, inherited)
        yield heard
    finally:
        os.close(fd)


def sync_folder(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def save(path, value):
    """Replaces a file by this value, whole or not at all."""
    draft = path + ".new"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    sync_folder(os.path.dirname(path))


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


@contextlib.contextmanager
def lock():
    """One `up` or `down` at a time on this machine."""
    try:
        os.makedirs(BASE, mode=0o755, exist_ok=True)
        # Inheritable on purpose: see the top.
        fd = os.open(f"{BASE}/lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise Refused(f"cannot write {BASE}: {error.strerror}; clusters are made by root", 77)
    try:
        deadline = time.monotonic() + LOCK_PATIENCE
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Refused(f"another cluster up or down holds {BASE}/lock", 1)
                time.sleep(0.05)
        os.set_inheritable(fd, True)
        yield fd
    finally:
        os.close(fd)


class Folder:
    """The files of one cluster. Owns nothing in memory: any process may make one."""

    def __init__(self, name):
        self.name = name
        self.path = f"{BASE}/{name}"
        self.state_file = f"{self.path}/state.json"
        self.fabric = f"{self.path}/fabric.net"
        self.hosts_file = f"{self.path}/hosts"
        self.agent = f"{self.path}/agent"
        self.memory = f"{self.path}/shm"

    def net(self, host):
        return f"{self.path}/{host}.net"

    def uts(self, host):
        return f"{self.path}/{host}.uts"

    def shm(self, host):
        """What the host's processes see as /dev/shm: hosts share no memory."""
        return f"{self.memory}/{host}"

    def state(self):
        return load(self.state_file)

    def plan(self):
        """The plan of a cluster that is up."""
        state = self.state()
        if not state or state.get("phase") != "up" or state.get("boot") != boot_id():
            raise Refused(f"no cluster '{self.name}' is up (cluster up --name {self.name} ...)", 1)
        return Plan(**state["plan"])

    def network_files(self):
        return sorted(glob.glob(f"{glob.escape(self.path)}/*.net"))

    def remove(self):
        """Ends every process on the hosts and removes all that `up` made, however far it got.
        Deleting a namespace deletes the links, switches and shapers in it."""
        ended = namespaces.end_processes(self.network_files())
        for path in glob.glob(f"{glob.escape(self.path)}/*.net") + glob.glob(
            f"{glob.escape(self.path)}/*.uts"
        ):
            namespaces.drop(path)
        namespaces.unmount(self.memory)
        shutil.rmtree(self.memory, ignore_errors=True)
        # The state file goes last but one: until then `down` can be repeated.
        for path in sorted(glob.glob(f"{glob.escape(self.path)}/*")):
            if path != self.state_file:
                os.unlink(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.state_file)
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(self.path)
        return ended


def folders():
    """All clusters of this machine, dead ones included."""
    return [Folder(os.path.basename(p)) for p in sorted(glob.glob(f"{BASE}/*")) if os.path.isdir(p)]


def sweep():
    """Removes clusters whose `up` died, or that a reboot ended. The caller holds the lock, so
    nobody is at work on them. Returns their names."""
    swept = []
    for folder in folders():
        state = folder.state()
        if not state or state.get("phase") != "up" or state.get("boot") != boot_id():
            folder.remove()
            swept.append(folder.name)
    if swept:
        put_back_if_last()
    return swept


def saved_file():
    return f"{BASE}/settings.json"


def change_settings():
    """Saves the machine's settings, then sets ours. Returns those that do not exist here."""
    saved = load(saved_file())
    if not saved or saved.get("boot") != boot_id():
        before = {name: read_setting(name) for name in SETTINGS}
        saved = {"boot": boot_id(), "before": before}
        save(saved_file(), saved)
    missing = []
    for name, value in SETTINGS.items():
        if saved["before"].get(name) is None:
            missing.append(name)
        elif read_setting(name) != value:
            write_setting(name, value)
    return missing


def put_back_if_last():
    """With no cluster left: the settings as they were. One that somebody else has changed since is
    left alone. Returns sentences about such settings."""
    if folders():
        return []
    saved = load(saved_file())
    stories = []
    if saved and saved.get("boot") == boot_id():
        for name, value in reversed(list(saved["before"].items())):
            now = read_setting(name)
            if value is None or now == value:
                continue
            if now != SETTINGS.get(name):
                stories.append(f"{name} is {now}, set by somebody else since; before: {value}")
                continue
            write_setting(name, value)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(saved_file())
    with contextlib.suppress(FileNotFoundError):
        os.unlink(saved_file() + ".new")
    return stories
