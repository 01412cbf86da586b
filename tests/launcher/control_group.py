"""Control groups for tests, in version 1 and 2: with a quota of time, or a part of the cores."""

import contextlib
import os
import time


class Missing(Exception):
    """No such group can be made here; the text says why."""


def hierarchy(controller):
    """The folder of our own group in the hierarchy that has the controller, and its version."""
    groups, mounts = {}, []
    with open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file:
            _, names, path = line.rstrip("\n").split(":", 2)
            groups[names] = path
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            kind, _, options = right.split()[:3]
            mounts.append((kind, left.split()[4], options.split(",")))
    for kind, point, options in mounts:
        if kind == "cgroup" and controller in options:
            names = next(n for n in groups if controller in n.split(","))
            return point + groups[names].rstrip("/"), 1
    for kind, point, _ in mounts:
        if kind != "cgroup2":
            continue
        path = point + groups.get("", "/").rstrip("/")
        with contextlib.suppress(OSError):
            with open(path + "/cgroup.subtree_control", encoding="ascii") as file:
                if controller in file.read().split():
                    return path, 2
    raise Missing(f"no control groups with {controller} here")


class Group:
    """A process enters it by calling it, or by writing its number into `procs`."""

    def __init__(self, path):
        self.procs = f"{path}/cgroup.procs"

    def __call__(self):
        with open(self.procs, "w", encoding="ascii") as file:
            file.write("0")


@contextlib.contextmanager
def control_group(controller, settings):
    """A group of our own for a while. `settings`: its files by the version of the hierarchy."""
    above, version = hierarchy(controller)
    path = f"{above}/headway-test-{os.getpid()}"
    try:
        os.mkdir(path)
    except OSError as refused:
        raise Missing(f"no control group can be made: {refused}") from None

    def write(name, text):
        with open(f"{path}/{name}", "w", encoding="ascii") as file:
            file.write(text)
    try:
        try:
            for name, text in settings[version].items():
                write(name, text)
        except OSError as refused:
            raise Missing(f"a control group cannot be limited: {refused}") from None
        yield Group(path)
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                os.rmdir(path)
                break
            time.sleep(0.02)


def time_of(cores):
    quota = str(int(cores * 100000))
    return control_group("cpu", {1: {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": quota},
                                 2: {"cpu.max": f"{quota} 100000"}})


def of_cores(cores):
    return control_group("cpuset", {version: {"cpuset.cpus": cores, "cpuset.mems": "0"}
                                    for version in (1, 2)})
