"""Cores: shares, reservations among jobs, quotas and sets of control groups, OpenMP's threads."""

import contextlib
import os
import subprocess

import control_group
from harness import (LIMIT, Paths, Skipped, case, environment, equal, expect, folder, pids_in,
                     python, run, start, wait_until, write_pid)

MASK = "print(os.environ['PMI_RANK'], *sorted(os.sched_getaffinity(0)))"
CORES = sorted(os.sched_getaffinity(0))


def masks(result):
    equal(result.code, 0, "exit code", result)
    found = {}
    for line in result.out.splitlines():
        rank, *cores = map(int, line.split())
        found[rank] = cores
    return [found[rank] for rank in sorted(found)]


@contextlib.contextmanager
def own_cores(count=1):
    """An environment whose jobs do not see other jobs' reservations of cores."""
    if len(CORES) < count:
        raise Skipped(f"this needs {count} cores")
    with folder() as path:
        yield environment(HEADWAY_CORES_FILE=os.path.join(path, "cores"))


@case
def shares_of_the_cores():
    with own_cores(2) as env:
        found = masks(run("-n", "2", *python(MASK), env=env))
    equal(sorted(found[0] + found[1]), CORES, "all cores, none twice")
    expect(abs(len(found[0]) - len(found[1])) <= 1, f"equal shares: {found}")


@case
def one_rank_is_never_bound():
    equal(masks(run("-n", "1", *python(MASK))), [CORES], "all cores")


@case
def more_ranks_than_cores():
    ranks = len(CORES) + 1
    equal(masks(run("-n", ranks, *python(MASK))), [CORES] * ranks, "no rank is bound")
    result = run("-n", ranks, "--bind-to", "core", *python(MASK))
    equal(masks(result), [CORES] * ranks, "not even if asked")
    expect("not bound:" in result.err, "and it is told", result)


@case
def one_core_a_rank():
    with own_cores(2) as env:
        found = masks(run("-n", "2", "--bind-to", "core", *python(MASK), env=env))
    expect(not set(found[0]) & set(found[1]), f"different cores: {found}")
    equal(masks(run("-n", "2", "--bind-to", "none", *python(MASK))), [CORES] * 2, "none")


@case
def an_inherited_mask_is_kept():
    one = {CORES[-1]}
    for words in ((), ("--bind-to", "core"), ("-n", "2")):
        result = run(*words, *python(MASK), before=lambda: os.sched_setaffinity(0, one))
        for found in masks(result):
            equal(set(found), one, f"mask with {words}", result)


@case
def picture_of_the_binding():
    with own_cores(2) as env:
        result = run("--show-binding", "-n", "2", "true", env=env)
    equal(result.code, 0, "exit code", result)
    expect("rank 0  [#" in result.err and "rank 1  [" in result.err, "two rows", result)
    result = run("--show-binding", "--bind-to", "none", "-n", "2", "true")
    expect("all ranks  [#" in result.err and "as asked" in result.err, "one row", result)


@case
def two_jobs_never_share_a_bound_core():
    with folder() as path, own_cores(2) as env:
        go = os.path.join(path, "go")
        job = start("-n", "2", *python(
            write_pid(path) + f"while not os.path.exists({go!r}): time.sleep(0.01)\n" + MASK),
            env=env)
        pids_in(path, 2)
        second = run("--show-binding", "-n", "2", *python(MASK), env=env)
        forced = run("--bind-to", "core", "-n", "2", *python(MASK), env=env)
        with open(go, "w", encoding="ascii"):
            pass
        out, _ = job.communicate(timeout=LIMIT)
        first = [sorted(map(int, line.split()[1:])) for line in out.splitlines()]
        expect(all(cores != CORES for cores in first), f"the first is bound: {first}")
        equal(masks(second), [CORES] * 2, "the second is not", second)
        expect("another job" in second.err, "and it is told", second)
        equal(masks(forced), [CORES] * 2, "not even if asked", forced)


@case
def nobody_is_bound_where_cores_cannot_be_reserved():
    """Nothing would keep two jobs apart."""
    with folder() as path:
        env = environment(HEADWAY_CORES_FILE=os.path.join(path, "none", "cores"))
        for words in ((), ("--bind-to", "core")):
            result = run("-n", len(CORES), *words, "--show-binding", *python(MASK), env=env)
            equal(masks(result), [CORES] * len(CORES), f"free with {words}", result)
            if len(CORES) > 1 or words:
                expect("cannot be reserved" in result.err and "none/cores" in result.err,
                       "and it is told why", result)


@case
def jobs_of_two_users():
    """The file that one user's first job has made serves the next user's jobs as well."""
    if os.geteuid() != 0:
        raise Skipped("becoming another user needs root")
    if len(CORES) < 2:
        raise Skipped("this needs two cores")

    def become():
        os.umask(0o077)
        os.setgid(54321)
        os.setuid(54321)
    with folder() as path:
        os.chmod(path, 0o1777)  # as /tmp
        copy, go = os.path.join(path, "mpiexec"), os.path.join(path, "go")
        subprocess.run(["cp", Paths.mpiexec, copy], check=True)
        env = environment(HEADWAY_CORES_FILE=os.path.join(path, "cores"))
        wait = f"echo > {path}/pid.$PMI_RANK; while [ ! -e {go} ]; do sleep 0.02; done"
        with subprocess.Popen([copy, "-n", "2", "sh", "-c", wait], env=env, preexec_fn=become,
                              stdin=subprocess.DEVNULL) as job:
            wait_until(lambda: len([n for n in os.listdir(path) if n.startswith("pid.")]) == 2,
                       "two ranks at work")
            second = run("--show-binding", "-n", "2", *python(MASK), env=env)
            with open(go, "w", encoding="ascii"):
                pass
            equal(job.wait(LIMIT), 0, "exit code of the first")
        equal(masks(second), [CORES] * 2, "the second is not bound", second)
        expect("another job" in second.err, "and it is told", second)
        third = run("--show-binding", "-n", "2", *python(MASK), env=env)
        expect(all(cores != CORES for cores in masks(third)), "the third is", third)


# Each job has a /tmp of its own, and both have one network, which no other job of this machine has.
APART = """mount --bind "$1" /mnt
box() { unshare -m sh -c 'mount -t tmpfs x /tmp; exec "$@"' sh /mnt/mpiexec "$@"; }
box -n 2 sh -c 'echo > /mnt/pid.$PMI_RANK; while [ ! -e /mnt/go ]; do sleep 0.02; done' &
tries=0
while [ ! -e /mnt/pid.0 ] || [ ! -e /mnt/pid.1 ]; do
  tries=$((tries + 1)); [ $tries -lt 500 ] || exit 1; sleep 0.02
done
box --show-binding -n 2 true
echo forced >&2
box --show-binding --bind-to core -n 2 true
touch /mnt/go
wait
echo after >&2
box --show-binding -n 2 true
"""


@case
def jobs_with_a_tmp_of_their_own():
    if len(CORES) < 2:
        raise Skipped("this needs two cores")
    outer = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "-n"]
    with folder() as path:
        if subprocess.run([*outer, "mount", "-t", "tmpfs", "x", "/mnt"], capture_output=True,
                          check=False).returncode != 0:
            raise Skipped("namespaces are not allowed here")
        subprocess.run(["cp", Paths.mpiexec, f"{path}/mpiexec"], check=True)
        done = subprocess.run([*outer, "sh", "-ec", APART, "sh", path], env=environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LIMIT, check=False)
        equal(done.returncode, 0, "exit code", done)
        during, after = done.stderr.split("after\n")
        automatic, forced = during.split("forced\n")
        expect("another job" in automatic, "the second is not bound", done)
        expect(f"left 0 of {len(CORES)} cores" in forced, "not even if asked", done)
        expect("not bound" not in after and "rank 1 " in after, "the third is bound", done)


@case
def many_jobs_at_once():
    """As under ctest -j: of the jobs that run at the same time, no two are bound to one core."""
    show = ("print(time.monotonic(), end=' ')\ntime.sleep(0.15)\ncores = os.sched_getaffinity(0)\n"
            "print(time.monotonic(), *cores)")
    with own_cores(2) as env:
        jobs = [start("--bind-to", "core", "-n", "1", *python(show), env=env) for _ in range(8)]
        spans = []
        for job in jobs:
            out, err = job.communicate(timeout=LIMIT)
            equal(job.returncode, 0, f"exit code, after {err}")
            begin, end, *cores = out.split()
            if len(cores) < len(CORES):
                spans.append((float(begin), float(end), set(cores)))
    expect(spans, "no job was bound at all")
    for i, (begin, end, cores) in enumerate(spans):
        for other_begin, other_end, other_cores in spans[:i]:
            if begin < other_end and other_begin < end:
                expect(not cores & other_cores, f"two jobs on one core: {spans}")


@contextlib.contextmanager
def skipped_without_groups():
    try:
        yield
    except control_group.Missing as reason:
        raise Skipped(str(reason)) from None


@case
def a_quota_counts_as_cores():
    """Half a core less than there are: too little for a rank on each."""
    ranks = len(CORES)
    if ranks < 2:
        raise Skipped("this needs two cores")
    show = "print(os.environ.get('OMP_NUM_THREADS'), *sorted(os.sched_getaffinity(0)))"
    with skipped_without_groups(), own_cores(2) as env, \
            control_group.time_of(ranks - 0.5) as enter:
        for words in (("-n", ranks), ("-n", ranks, "--bind-to", "core")):
            result = run("--show-binding", *words, *python(show), env=env, before=enter)
            equal(result.out.split("\n")[:-1], [" ".join(map(str, [1, *CORES]))] * ranks,
                  "threads and cores", result)
            expect(f"not bound: {ranks} ranks, {ranks - 0.5:g} cores" in result.err, "told", result)
        result = run("--show-binding", "-n", "1", *python(show), env=env, before=enter)
        equal(result.out.split(), list(map(str, [ranks - 1, *CORES])), "one rank", result)
        expect(f"the time of {ranks - 0.5:g} cores, on any of {ranks}" in result.err, "told", result)
        one = run("-n", "1", "--bind-to", "core", *python(MASK), env=env, before=enter)
        expect(len(masks(one)[0]) < ranks, "who asks for a core gets one", one)


@case
def a_small_quota():
    with skipped_without_groups(), control_group.time_of(0.5) as enter:
        result = run("--show-binding", "-n", "1", "sh", "-c", "echo $OMP_NUM_THREADS", before=enter)
        equal((result.code, result.out), (0, "1\n"), "at least one thread", result)
        expect("not bound: 1 rank, 0.5 cores" in result.err, "and it is told", result)


@case
def cores_have_one_number_in_all_groups():
    """A job that sees a part of the machine counts other cores, but reserves the same ones."""
    if len(CORES) < 2:
        raise Skipped("this needs two cores")
    last = str(CORES[-1])
    with skipped_without_groups(), own_cores(2) as env, folder() as path, \
            control_group.of_cores(last) as enter:
        go = os.path.join(path, "go")
        job = start("--bind-to", "core", "-n", "1", *python(
            write_pid(path) + f"while not os.path.exists({go!r}): time.sleep(0.01)\n" + MASK),
            env=env, preexec_fn=enter)
        pids_in(path, 1)
        others = run("--bind-to", "core", "-n", len(CORES) - 1, *python(MASK), env=env)
        one_more = run("--bind-to", "core", "-n", len(CORES), *python(MASK), env=env)
        with open(go, "w", encoding="ascii"):
            pass
        out, _ = job.communicate(timeout=LIMIT)
        equal(out.split(), ["0", last], "the job in the group has its core")
        for cores in masks(others):
            expect(CORES[-1] not in cores, "the others are kept off it", others)
        equal(masks(one_more), [CORES] * len(CORES), "and not bound where none is left", one_more)


def openmp(*words, **variables):
    """OMP_NUM_THREADS of the ranks, in order."""
    show = "print(os.environ['PMI_RANK'], os.environ.get('OMP_NUM_THREADS'))"
    result = run(*words, *python(show), env=environment(**variables))
    equal(result.code, 0, "exit code", result)
    return [line.split()[1] for line in sorted(result.out.splitlines())]


@case
def threads_of_ranks_that_are_not_bound():
    ranks = len(CORES) + 1
    equal(openmp("-n", ranks), ["1"] * ranks, "more ranks than cores")
    equal(openmp("-n", "1"), ["None"], "one rank has all cores")
    equal(openmp("-n", "2", "--bind-to", "none"), [str(max(1, len(CORES) // 2))] * 2, "free ranks")
    equal(openmp("-n", ranks, OMP_NUM_THREADS="3"), ["3"] * ranks, "the user's own number")
    equal(openmp("-n", ranks, "-x", "OMP_NUM_THREADS=4"), ["4"] * ranks, "given to the job")
    equal(openmp("-n", ranks, "--unset", "OMP_NUM_THREADS"), ["None"] * ranks, "or taken away")


OPENMP = r"""
#include <omp.h>
#include <stdio.h>
int main(void) {
  int threads = 0;
#pragma omp parallel reduction(+ : threads)
  threads += 1;
  printf("%d %d\n", omp_get_max_threads(), threads);
  return 0;
}
"""


@case
def openmp_programs_get_equal_shares():
    with folder() as path, own_cores(2) as env:
        source, program = os.path.join(path, "a.c"), os.path.join(path, "a")
        with open(source, "w", encoding="ascii") as file:
            file.write(OPENMP)
        build = subprocess.run(["cc", "-fopenmp", source, "-o", program], capture_output=True,
                               text=True, check=False)
        if build.returncode != 0:
            raise Skipped(f"no OpenMP here: {build.stderr.splitlines()[-1:]}")
        for ranks in (1, 2, len(CORES), len(CORES) + 1):
            result = run("-n", ranks, program, env=env)
            share = max(1, len(CORES) // ranks)
            equal((result.code, result.out), (0, f"{share} {share}\n" * ranks), f"{ranks} ranks",
                  result)
