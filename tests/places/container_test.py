#!/usr/bin/env python3
"""Jobs in a container: namespaces of its own, 64 MB of /dev/shm which is full, a network without
loopback, an ordinary user, forbidden system calls, a quota of time; and nothing left after kill -9."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support import NOBODY, TESTS, Bench, Cases, Skip, expect, namespaces, unshare  # noqa: E402

sys.path.append(str(TESTS / "launcher"))
import control_group  # noqa: E402

CASES = Cases()
case = CASES.case

# The build moves to /mnt, since /tmp, where it may lie, is empty in a container.
BOX = """hostname box
mount --bind {build} /mnt
mount -t tmpfs -o size=64m,mode=1777 x /dev/shm
mount -t tmpfs -o size=64m,mode=1777 x /tmp
mount -t tmpfs -o size=1m,mode=1777 x /var/tmp
cd /tmp
"""
FULL = "head -c 64m /dev/zero > /dev/shm/full 2>/dev/null || true"
USER = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]


def box(bench, more="", user=True):
    if user and os.geteuid() != 0:
        raise Skip("becoming another user needs root")
    words = namespaces("-m -p -f -u -i -n --mount-proc",
                       BOX.format(build=bench.mpi.build) + more)
    return [*words, *(USER if user else []), "env", "LD_LIBRARY_PATH="]


def program(name):
    return f"/mnt/tests/programs/{name}"


for who in ("an ordinary user", "root"):
    @case(f"programs in a container, {who}", who)
    def programs(bench, who):
        around = box(bench, FULL, who != "root")
        for name in ("p2p_modes", "p2p_random", "coll_data", "early_release"):
            bench.run([*around, "/mnt/bin/mpiexec", "-n", "4", program("without"), "container", "--",
                       program(name)], VERBOSE="1")
            bench.ends_well()
            bench.says("on box, 4 ranks share its memory")


@case("a container without userfaultfd: what it gives is said, and trap suits whoever asks")
def no_userfaultfd(bench):
    without = [program("without"), "container", "--"]
    around = box(bench, "ip link set lo up\n")
    bench.run([*around, *without, "/mnt/bin/mpiexec", "--info"])
    bench.says("missing          no", "trap             user mode, for those who ask",
               "chosen           none", "auto takes nothing but missing: receives wait")
    for name in ("release_memory", "early_release"):
        bench.run([*around, "/mnt/bin/mpiexec", "-n", "2", *without, program(name)],
                  EARLY_RELEASE="always", RELEASE_THRESHOLD="0", GUARD="trap", SHM="off", VERBOSE="1")
        bench.ends_well()
        expect("no receive is released early" not in bench.output, "nothing was released")


@case("a container whose files cannot be written")
def read_only(bench):
    around = box(bench, "for f in /tmp /var/tmp /dev/shm; do mount -o remount,ro $f; done")
    for ranks in ("1", "2", "4"):
        bench.run([*around, "/mnt/bin/mpiexec", "-n", ranks, program("abi_c")])
        bench.ends_well()


@case("mpiexec as the first process of a container")
def first_process(bench):
    around = unshare("-p", "-f", "--mount-proc")
    bench.run([*around, bench.mpi.mpiexec, *bench.ranks(3, "p2p_modes")])
    bench.ends_well()
    bench.run([*around, bench.mpi.mpiexec, *bench.ranks(3, "die", "kill", "-", "p2p")], code=137)
    bench.says("rank 1", "SIGKILL")


# Starts a job that goes on for ever, kills what it is told to by its number, and looks around.
KILL = r"""
files() { find /dev/shm /tmp /var/tmp /run -mindepth 1 ! -name log ! -name headway-mpiexec-cores \
            2>/dev/null | sort; }
count() { grep -lx "$1" /proc/[0-9]*/comm 2>/dev/null | wc -l; }
before=$(files)
/mnt/bin/mpiexec -n 4 /mnt/tests/places/ticks > /tmp/log 2>&1 &
job=$!
tries=0
while [ "$(grep -c ready /tmp/log)" != 4 ]; do
  tries=$((tries + 1)); [ $tries -lt 600 ] || { cat /tmp/log; echo not started; exit 1; }
  sleep 0.05
done
echo "ranks $(count ticks)"
echo "memfd $(grep -l /memfd:headway /proc/[0-9]*/maps 2>/dev/null | wc -l)"
echo "in /dev/shm $(grep -l ' /dev/shm' /proc/[0-9]*/maps 2>/dev/null | wc -l)"
ranks=$(grep -lx ticks /proc/[0-9]*/comm | cut -d/ -f3)
kill -9 VICTIMS
wait $job || true
tries=0
while [ "$(count ticks)" != 0 ] || [ "$(count mpiexec-watch)" != 0 ]; do
  tries=$((tries + 1)); [ $tries -lt 400 ] || { echo "alive $(count ticks)"; exit 1; }
  sleep 0.05
done
[ "$(files)" = "$before" ] || { echo "left behind: $(files)"; exit 1; }
echo nothing is left
"""

for victims in ("$job", "$(echo $ranks | cut -d' ' -f2)", "$job $ranks"):
    @case(f"nothing is left after kill -9 {victims}", victims)
    def killed(bench, victims):
        bench.run([*box(bench), "sh", "-c", KILL.replace("VICTIMS", victims)])
        bench.says("ranks 4", "memfd 4", "in /dev/shm 0", "nothing is left")


@case("a quota counts as cores: ranks that share too little time do not spin")
def quota(bench):
    try:
        with control_group.time_of(1) as group:
            enter = ["sh", "-c", f'echo $$ > {group.procs}; exec "$@"', "sh"]
            bench.run([*enter, bench.mpi.mpiexec, *bench.ranks(2, "p2p_modes")], VERBOSE="1")
            bench.ends_well()
            bench.says("time for 1.0 of them, waiting yields at once")
    except control_group.Missing as reason:
        raise Skip(str(reason)) from None
    bench.run([bench.mpi.mpiexec, *bench.ranks(1, "abi_c")], VERBOSE="1")
    expect("of them" not in bench.output, "there is no quota outside")


if __name__ == "__main__":
    sys.exit(CASES.main(__doc__, TESTS.parent / "build", Bench))
