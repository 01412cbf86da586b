"""Launch: starts an MPI program on the hosts of a cluster, with one of three launchers.

Ours runs on one machine and starts ranks that enter their hosts by rank number. The peers' are
started on h0, as by a user who has logged in there, and reach the other hosts through an agent in
the place of ssh. Nothing of the environment is changed beyond what names the network card.
"""

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import time

import namespaces
from plan import Refused

MPIS = ("headway", "mpich", "openmpi")
HOST_TIMEOUT = 8  # seconds: the library's default


def cache():
    default = os.path.join(os.environ.get("HOME", "/root"), ".cache")
    base = os.environ.get("XDG_CACHE_HOME", default)
    return os.environ.get("HEADWAY_CACHE", os.path.join(base, "headway"))


def helper(name):
    """A program that was built: beside the wrapper that started us, or in the build tree."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for folder in filter(None, (os.environ.get("CLUSTER_BIN"), f"{source}/build/bin")):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    raise Refused(f"{name} is not built: run make, or say where in CLUSTER_BIN", 1)


def launcher_path(mpi, given):
    if given:
        return given
    if mpi == "headway":
        return os.environ.get("CLUSTER_MPIEXEC") or helper("mpiexec")
    name = {"mpich": "mpiexec.hydra", "openmpi": "mpirun"}[mpi]
    path = shutil.which(name, path=f"{cache()}/{mpi}/bin") or shutil.which(name)
    if not path:
        raise Refused(f"no {name} in {cache()}/{mpi}/bin or on the path (scripts/peers.sh)", 1)
    return path


def write_agent(folder):
    """What a launcher calls in the place of ssh: AGENT [OPTIONS] HOST COMMAND."""
    text = (f"#!/bin/sh\nexec {helper('cluster-enter')} --name {folder.name} --agent \"$@\"\n")
    draft = f"{folder.agent}.{os.getpid()}"
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(draft, 0o755)
    os.replace(draft, folder.agent)
    return folder.agent


def placement(plan, ranks, ranks_per_host):
    """Ranks on each host used, in order."""
    if ranks < 1:
        raise Refused(f"-n {ranks}: at least one rank")
    per_host = ranks_per_host or -(-ranks // plan.hosts)
    if per_host < 1 or per_host * plan.hosts < ranks:
        raise Refused(f"{ranks} ranks do not fit: {plan.hosts} hosts with {per_host} ranks each")
    full, rest = divmod(ranks, per_host)
    return per_host, [per_host] * full + ([rest] if rest else [])


def command(plan, folder, mpi, ranks, ranks_per_host, launcher, extra, program):
    """The words to execute and the environment they need."""
    enter = [helper("cluster-enter"), "--name", folder.name]
    per_host, counts = placement(plan, ranks, ranks_per_host)
    path = launcher_path(mpi, launcher)
    hosts = ",".join(f"{plan.host_name(h)}:{n}" for h, n in enumerate(counts))
    environment = dict(os.environ)
    environment["CLUSTER_DILATION"] = f"{plan.dilation:g}"
    # A full queue is no vanished host.
    queues = math.ceil(plan.longest_wait)
    if queues > HOST_TIMEOUT:
        environment.setdefault("HEADWAY_HOST_TIMEOUT", f"{queues}s")
    if mpi == "headway":
        by_rank = enter + ["--by-rank", "--ranks-per-host", str(per_host)]
        return [path, "-n", str(ranks)] + extra + by_rank + program, environment
    on_first = enter + ["--host", plan.host_name(0), path, "-n", str(ranks)]
    agent = write_agent(folder)
    if mpi == "mpich":
        # Either of its network layers: libfabric or UCX. UCX would find out that the hosts share a
        # kernel and pass messages through memory (measured: 1 MB in 1 ms at 100 Mbit/s); ranks on
        # one host use MPICH's own shared memory all the same.
        environment.setdefault("FI_PROVIDER", "tcp")
        environment.setdefault("FI_TCP_IFACE", "eth0")
        environment.setdefault("UCX_NET_DEVICES", "eth0")
        environment.setdefault("UCX_TLS", "tcp,self")
        words = ["-hosts", hosts, "-launcher", "ssh", "-launcher-exec", agent, "-iface", "eth0"]
    else:
        # UCX as above, should the user choose it; the default is ob1 over the tcp module.
        environment.setdefault("OMPI_MCA_btl_tcp_if_include", "eth0")
        environment.setdefault("UCX_NET_DEVICES", "eth0")
        environment.setdefault("UCX_TLS", "tcp,self")
        words = ["--host", hosts, "--allow-run-as-root", "--bind-to", "none",
                 "--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", agent,
                 "--prtemca", "prte_if_include", "eth0"]
    return on_first + words + extra + program, environment


def of_run(folder, plan, mark):
    """Processes of one run on the hosts: others may be at work there too."""
    found = []
    for process in namespaces.processes_inside(
        [folder.net(plan.host_name(h)) for h in range(plan.hosts)]
    ):
        with contextlib.suppress(OSError):
            with open(f"/proc/{process}/environ", "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    found.append(process)
    return found


def end_run(folder, plan, mark, launcher):
    for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
        with contextlib.suppress(ProcessLookupError):
            launcher.send_signal(number)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            left = of_run(folder, plan, mark)
            if launcher.poll() is not None and not left:
                return
            if number == signal.SIGKILL:
                for process in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, number)
            time.sleep(0.05)


def run(words, environment, folder, plan, timeout):
    """Runs to the end; returns the launcher's exit code, 124 after a time-out."""
    mark = f"CLUSTER_RUN={os.getpid()}.{time.monotonic_ns()}"
    environment = dict(environment)
    environment["CLUSTER_RUN"] = mark.partition("=")[2]
    try:
        launcher = subprocess.Popen(words, env=environment)
    except OSError as error:
        raise Refused(f"cannot start {words[0]}: {error.strerror}", 1)

    def forward(number, _frame):
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
    try:
        code = launcher.wait(timeout)
        return code if code >= 0 else 128 - code
    except subprocess.TimeoutExpired:
        print(f"cluster: the program is not done after {timeout:g} s, ended", file=sys.stderr)
        return 124
    finally:
        if launcher.poll() is None or of_run(folder, plan, mark):
            end_run(folder, plan, mark, launcher)
