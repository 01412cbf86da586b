"""Namespaces: make, enter and end the network and UTS namespaces of hosts.

Called by the main thread alone: entering moves the calling thread. A namespace is kept alive by a
bind mount on a file, so that it outlives every process, can be found again after a crash, and
vanishes with its file.
"""

import contextlib
import ctypes
import os
import signal
import socket
import time

from plan import Refused

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWNET = 0x00020000, 0x04000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
MNT_DETACH, UMOUNT_NOFOLLOW = 2, 8
libc = ctypes.CDLL(None, use_errno=True)


def checked(result, what):
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def setns(path):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        checked(libc.setns(fd, 0), f"setns {path}")
    finally:
        os.close(fd)


def in_child(action):
    """Runs `action` in a forked child; returns its error sentence or ''."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            action()
            status = 0
        except BaseException as error:  # the child must never return into the caller's code
            os.write(writer, str(error).encode()[:4000])
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        story = stream.read().decode()
    _, status = os.waitpid(child, 0)
    return story or ("" if status == 0 else f"child ended with status {status}")


def make(net_file, uts_file, host_name):
    """A new network namespace (and UTS namespace with that host name), bound to the files."""
    for path in filter(None, (net_file, uts_file)):
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o444))

    # The bind mounts must be made in the parent's mount namespace; a child that unshared only the
    # other two still is in it.
    def work():
        checked(libc.unshare(CLONE_NEWNET | (CLONE_NEWUTS if uts_file else 0)), "unshare")
        if uts_file:
            socket.sethostname(host_name)
            bind("/proc/self/ns/uts", uts_file)
        bind("/proc/self/ns/net", net_file)

    story = in_child(work)
    if story:
        raise Refused(f"cannot make host '{host_name}': {story}", 1)


def bind(source, target):
    checked(libc.mount(source.encode(), target.encode(), None, MS_BIND, None), f"mount {target}")


def memory_file_system(path):
    os.mkdir(path)
    checked(libc.mount(b"headway-cluster", path.encode(), b"tmpfs", MS_NOSUID | MS_NODEV,
                       b"mode=755"), f"mount {path}")


def unmount(path):
    while libc.umount2(path.encode(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0:
        pass  # a crash between two mounts can leave more than one


def drop(path):
    """Unmounts and removes a namespace file; the namespace ends with its last process."""
    unmount(path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


@contextlib.contextmanager
def inside(net_file):
    """The calling thread is in that network namespace for a while; so are children it starts."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        setns(net_file)
        try:
            yield
        finally:
            checked(libc.setns(home, 0), "setns back")
    finally:
        os.close(home)


def what_is_missing():
    """Why this process cannot make namespaces, as a sentence, or ''."""
    if not os.path.exists("/proc/self/ns/net"):
        return "this kernel has no network namespaces (no /proc/self/ns/net)"

    def trial():
        checked(libc.unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS), "unshare")
        checked(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount")

    story = in_child(trial)
    if story:
        who = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
        return (f"network namespaces are not allowed here for {who} ({story}); it takes root with"
                " CAP_SYS_ADMIN and CAP_NET_ADMIN")
    return ""


def inodes(paths):
    """Numbers of the namespaces bound to these files. A file that a crash left without its mount
    is no namespace, and the machine's own one is never ours to end."""
    own = os.stat("/proc/self/ns/net")
    found = set()
    for path in paths:
        with contextlib.suppress(OSError):
            status = os.stat(path)
            if status.st_dev == own.st_dev and status.st_ino != own.st_ino:
                found.add(status.st_ino)
    return found


def processes_inside(paths):
    """Numbers of the processes whose network namespace is one of these."""
    names = {f"net:[{inode}]" for inode in inodes(paths)}
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{entry}/ns/net") in names:
                    found.append(int(entry))
    return found


def end_processes(paths, patience=2.0):
    """Ends every process on these hosts: first politely, then for good. Returns how many."""
    ended = set()
    for number, wait in ((signal.SIGTERM, patience), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + wait
        signalled = set()
        while (left := processes_inside(paths)) and time.monotonic() < deadline:
            for process in left:
                if process not in signalled or number == signal.SIGKILL:
                    signalled.add(process)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, number)
            ended.update(left)
            time.sleep(0.02)
        if not left:
            break
    return len(ended)
