"""Cores, limits, other launchers around us, MPICH's programs and launcher."""

import contextlib
import os
import resource
import subprocess

from harness import (LIMIT, Paths, Skipped, cache, case, environment, equal, expect, folder,
                     pids_in, python, run, start, write_pid)

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
def descriptor_limit_is_raised():
    ranks = 40
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    show = "import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    result = run("-n", ranks, *python(show),
                 before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)))
    equal((result.code, result.out), (0, "64\n" * ranks), "the ranks keep their own", result)


@case
def too_few_descriptors():
    result = run("-n", "200", "true",
                 before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    equal((result.code, len(result.err.splitlines())), (1, 1), "one sentence", result)
    expect("200 ranks need" in result.err and "ulimit -Hn" in result.err, "the sentence", result)


@case
def too_few_processes():
    if os.geteuid() != 0:
        raise Skipped("becoming another user needs root")

    def limit():
        resource.setrlimit(resource.RLIMIT_NPROC, (4, 4))
        os.setgid(54321)
        os.setuid(54321)
    with folder() as path:
        copy = os.path.join(path, "mpiexec")
        subprocess.run(["cp", Paths.mpiexec, copy], check=True)
        os.chmod(path, 0o755)
        result = run("-n", "10", "sleep", "100", launcher=copy, before=limit)
    equal(result.code, 126, "exit code", result)
    expect("ulimit -u" in result.err, "the sentence", result)
    expect(result.seconds < 5, "the end", result)


@case
def mpiexec_inside_a_rank():
    result = run("-n", "2", "sh", "-c", f"{Paths.mpiexec} -n 2 {Paths.probe}")
    equal((result.code, result.out.count("of 2 app 0")), (0, 4), "two jobs of two", result)


@case
def programs_one_after_the_other():
    result = run("-n", "3", "sh", "-c", f"{Paths.probe} && {Paths.probe} again && {Paths.probe}")
    equal((result.code, result.out.count("of 3 app 0")), (0, 9), "three rounds", result)


@case
def leaving_and_coming_back():
    for what in ("again", "leave", "child"):
        result = run("-n", "3", Paths.probe, what)
        lines = result.out.splitlines()
        equal((result.code, len([x for x in lines if "of 3 app" in x])), (0, 3), what, result)
        equal(len([x for x in lines if "rank 0 of 1 " in x]), int(what == "child"), what, result)


@case
def alone_without_a_launcher():
    result = run(launcher=Paths.probe)
    equal(result.code, 0, "exit code", result)
    expect(result.out.startswith("rank 0 of 1 app 0 universe 1 node 0 job single-"), "alone", result)
    in_a_batch_shell = environment(SLURM_JOB_ID="7", SLURM_NTASKS="8", SLURM_PROCID="0")
    equal(run(launcher=Paths.probe, env=in_a_batch_shell).code, 0, "in a batch allocation's shell")
    one_task = environment(SLURM_STEP_ID="0", SLURM_STEP_NUM_TASKS="1", SLURM_PROCID="0")
    equal(run(launcher=Paths.probe, env=one_task).code, 0, "srun with one task")


@case
def launchers_that_we_cannot_join():
    for variables, words in (
        (dict(SLURM_STEP_ID="0", SLURM_STEP_NUM_TASKS="4"), ("srun", "--mpi=pmi2")),
        (dict(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2"), ("Open MPI", "mpiexec")),
        (dict(PMI_FD="77", PMI_RANK="0", PMI_SIZE="2"), ("wrapper", "close_fds=False")),
        (dict(PMI_FD="x", PMI_RANK="0", PMI_SIZE="2"), ("makes no sense",)),
        (dict(PMI_FD="0", PMI_RANK="0", PMI_SIZE="2"), ("does not answer PMI-1",)),
        (dict(PMI_PORT="127.0.0.1:1", PMI_ID="0"), ("does not answer PMI-1", "127.0.0.1:1")),
    ):
        result = run(launcher=Paths.probe, env=environment(**variables))
        equal(result.code, 3, f"exit code with {variables}", result)
        equal(len(result.err.splitlines()), 1, "one sentence", result)
        for word in words:
            expect(word in result.err, f"{word!r} in the sentence", result)


PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d of %d, sum %d\n", rank, size, sum);
  if (argc > 1 && rank == 1) MPI_Abort(MPI_COMM_WORLD, atoi(argv[1]));
  if (argc > 1) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""


@case
def programs_of_mpich():
    """MPICH's library, with both of its ABIs, starts under our mpiexec."""
    mpich = cache("mpich")
    with folder() as path:
        source = os.path.join(path, "a.c")
        with open(source, "w", encoding="ascii") as file:
            file.write(PROGRAM)
        for compiler in ("mpicc", "mpicc_abi"):
            program = os.path.join(path, compiler)
            build = run("-o", program, source, launcher=f"{mpich}/bin/{compiler}")
            equal(build.code, 0, compiler, build)
            result = run("--library", "program", "-n", "4", program, limit=60)
            equal((result.code, sorted(result.out.splitlines())),
                  (0, [f"{r} of 4, sum 6" for r in range(4)]), compiler, result)
            result = run("--library", "program", "-n", "3", program, "9", limit=60)
            equal((result.code, len(result.own_lines)), (9, 1), "MPI_Abort", result)


@case
def under_the_launcher_of_mpich():
    """Our client, started by mpiexec.hydra, by descriptor and by port."""
    hydra = f"{cache('mpich')}/bin/mpiexec.hydra"
    for words in ((), ("-pmi-port",)):
        result = run(*words, "-n", "3", Paths.probe, "again", launcher=hydra, limit=60)
        equal((result.code, result.out.count("of 3 app 0")), (0, 3), f"hydra {words}", result)
        result = run(*words, "-n", "3", Paths.probe, "abort", "6", launcher=hydra, limit=60)
        equal(result.code, 6, f"abort under hydra {words}", result)
    result = run("-n", "1", Paths.probe, ":", "-n", "2", Paths.probe, launcher=hydra, limit=60)
    equal((result.code, result.out.count(" app 1 ")), (0, 2), "two programs", result)


@case
def under_the_launcher_of_open_mpi():
    """Our client over PMIx, with the launcher's own libpmix, which lies on no search path."""
    mpirun = f"{cache('openmpi')}/bin/mpirun"
    common = ("--allow-run-as-root", "--oversubscribe")
    for words in (("-n", "3", Paths.probe, "again"),
                  ("-n", "3", "env", "LD_LIBRARY_PATH=", Paths.probe, "again")):
        result = run(*common, *words, launcher=mpirun, limit=60)
        equal((result.code, result.out.count("of 3 app 0")), (0, 3), f"mpirun {words}", result)
    result = run(*common, "-n", "3", Paths.probe, "abort", "6", launcher=mpirun, limit=60)
    equal(result.code, 6, "abort under mpirun", result)
    result = run(*common, "-n", "2", Paths.probe, "child", launcher=mpirun, limit=60)
    equal((result.code, result.out.count("rank 0 of 1 ")), (0, 1), "a rank's child", result)
    result = run(*common, "-n", "1", Paths.probe, ":", "-n", "2", Paths.probe, launcher=mpirun,
                 limit=60)
    equal((result.code, result.out.count(" app 1 ")), (0, 2), "two programs", result)
    hidden = ("sh", "-c", f"env -u PMIX_PREFIX -u OPAL_PREFIX LD_LIBRARY_PATH= {Paths.probe}; "
              "exit $?")
    result = run(*common, "-n", "2", *hidden, launcher=mpirun, limit=60)
    expect(result.code != 0 and "started by Open MPI's mpirun" in result.err
           and "libpmix.so.2" in result.err, "without libpmix: one sentence", result)
