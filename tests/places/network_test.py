#!/usr/bin/env python3
"""Jobs on machines with odd networks: no loopback, IPv6 alone, names that nobody resolves, equal
names of different machines."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support import TESTS, Bench, Cases, Skip, namespaces, unshare  # noqa: E402

CASES = Cases()
case = CASES.case

# Two hosts of the same name with a cable between them; their loopback devices stay down.
TWO_HOSTS = """hostname twin
mount -t tmpfs x /run
for host in a b; do ip netns add $host; done
ip link add cable netns a type veth peer name cable netns b
"""


def needs_cables():
    cable = namespaces("-n", "ip link add cable type veth peer name other")
    probe = subprocess.run([*cable, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise Skip(f"no virtual cables here: {probe.stderr.strip()}")


def two_hosts(bench, addresses, program="p2p_modes"):
    """mpiexec with a rank on each, where `addresses` has the commands for host $h and number $n."""
    needs_cables()
    script = TWO_HOSTS + f"n=0\nfor h in a b; do n=$((n + 1))\n{addresses}\ndone"
    return [*namespaces("-n -u -m", script), bench.mpi.mpiexec,
            *bench.ranks(1, program, around=["ip", "netns", "exec", "a", "unshare", "-u"]), ":",
            *bench.ranks(1, program, around=["ip", "netns", "exec", "b", "unshare", "-u"])]


def needs_ipv6():
    if not pathlib.Path("/proc/net/if_inet6").exists():
        raise Skip("this kernel has no IPv6")


@case("no network interface is up: shared memory needs none")
def no_interface(bench):
    bench.run([*namespaces("-n", ""), bench.mpi.mpiexec, *bench.ranks(3, "p2p_modes")])
    bench.ends_well()
    bench.run([*namespaces("-n", ""), bench.mpi.program("abi_c")])  # a singleton
    bench.ends_well()


@case("no network interface is up: TCP says so")
def no_interface_for_tcp(bench):
    bench.run([*namespaces("-n", ""), bench.mpi.mpiexec, *bench.ranks(2, "p2p_modes")], code=None,
              timeout=20, SHM="off")
    bench.says("no network interface is up, not even loopback")


@case("a host that cannot reach itself says which device is down")
def no_loopback_for_tcp(bench):
    needs_cables()
    script = """ip link add cable type veth peer name other
                ip addr add 10.9.0.1/24 dev cable
                ip link set cable up
                ip link set other up"""
    around = namespaces("-n", script)
    bench.run([*around, bench.mpi.mpiexec, *bench.ranks(2, "p2p_modes")])
    bench.run([*around, bench.mpi.mpiexec, *bench.ranks(2, "p2p_modes")], code=None, timeout=30,
              SHM="off", CONNECT_TIMEOUT="1s")
    bench.says("tried 10.9.0.1 port", "the loopback device is down", "ip link set lo up")


@case("loopback has IPv6 alone")
def loopback_v6(bench):
    needs_ipv6()
    script = "ip link set lo up\nip addr del 127.0.0.1/8 dev lo"
    bench.run([*namespaces("-n", script), bench.mpi.mpiexec, *bench.ranks(3, "p2p_modes")],
              SHM="off", VERBOSE="2")
    bench.ends_well()
    bench.says("rank 2 listens on [::1]:")


@case("two hosts with one name, IPv6 alone, loopback down")
def hosts_v6(bench):
    needs_ipv6()
    for program in ("p2p_modes", "coll_data"):
        bench.run(two_hosts(bench, """ip -n $h addr add fd00::$n/64 dev cable nodad
                                      ip -n $h link set cable up""", program), VERBOSE="2")
        bench.ends_well()
        bench.says("on twin", "rank 0 listens on [fd00::1]:", "rank 1 listens on [fd00::2]:",
                   "1 ranks share its memory")


@case("two hosts with link-local addresses alone")
def hosts_link_local(bench):
    needs_ipv6()
    bench.run(two_hosts(bench, """ip -n $h link set cable addrgenmode none
                                  ip -n $h link set cable up
                                  ip -n $h addr add fe80::$n/64 dev cable nodad"""), VERBOSE="2")
    bench.ends_well()
    bench.says("rank 0 listens on [fe80::1]:")


@case("two hosts with one name, IPv4, loopback down")
def hosts_v4(bench):
    bench.run(two_hosts(bench, """ip -n $h addr add 10.9.0.$n/24 dev cable
                                  ip -n $h link set cable up"""), VERBOSE="2")
    bench.ends_well()
    bench.says("rank 1 listens on 10.9.0.2:", "1 ranks share its memory")


@case("one host name, one network, two process namespaces")
def two_process_namespaces(bench):
    around = unshare("-p", "-f", "--mount-proc")
    bench.run([bench.mpi.mpiexec, *bench.ranks(1, "p2p_modes", around=around), ":",
               *bench.ranks(2, "p2p_modes")], VERBOSE="1")
    bench.ends_well()
    bench.says("rank 0 of 3", "1 ranks share its memory", "2 ranks share its memory")


@case("a machine that does not tell who it is")
def no_proc(bench):
    around = namespaces("-m", "mount -t tmpfs x /proc")
    bench.run([bench.mpi.mpiexec, *bench.ranks(2, "p2p_modes", around=around)], VERBOSE="1")
    bench.ends_well()
    bench.says("1 ranks share its memory")


# Whoever looks a name up reads these files first, and would wait for ever.
NO_RESOLVER = """hostname no-such-host.invalid
ip link set lo up
mount -t tmpfs x /mnt
mkfifo /mnt/nobody-writes
for file in /etc/hosts /etc/resolv.conf /etc/host.conf /etc/gai.conf; do
  if [ -e $file ]; then mount --bind /mnt/nobody-writes $file; fi
done
"""


@case("a host name that nobody resolves: no name is ever looked up")
def no_names(bench):
    around = namespaces("-n -u -m", NO_RESOLVER)
    if str(bench.mpi.build).startswith("/mnt"):
        raise Skip("the build lies in /mnt, which this test covers")
    for settings in ({}, {"SHM": "off"}):
        bench.run([*around, bench.mpi.mpiexec, *bench.ranks(2, "p2p_modes")], timeout=30,
                  VERBOSE="1", **settings)
        bench.ends_well()
        bench.says("on no-such-host.invalid")
    bench.run([*around, bench.mpi.mpiexec, "--host", "elsewhere.invalid", "true"], code=2,
              timeout=10)
    bench.run([*around, bench.mpi.program("abi_c")], timeout=10)
    bench.ends_well()


if __name__ == "__main__":
    sys.exit(CASES.main(__doc__, TESTS.parent / "build", Bench))
