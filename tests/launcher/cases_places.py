"""Limits, other launchers around us, MPICH's programs and launcher."""

import os
import resource
import socket
import subprocess
import threading

from harness import Paths, Skipped, cache, case, environment, equal, expect, folder, python, run

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
    """Also in the shells of batch allocations, which have the variables of their jobs."""
    for variables in (
        {},
        dict(SLURM_JOB_ID="7", SLURM_NTASKS="8", SLURM_PROCID="0", SLURM_JOB_NUM_NODES="2"),
        dict(SLURM_STEP_ID="0", SLURM_STEP_NUM_TASKS="1", SLURM_PROCID="0"),
        # The shell of salloc, a step of its own.
        dict(SLURM_JOB_ID="7", SLURM_STEP_ID="4294967290", SLURM_STEP_NUM_TASKS="1",
             SLURM_NTASKS="8", SLURM_JOB_NUM_NODES="2"),
        dict(PBS_ENVIRONMENT="PBS_BATCH", PBS_JOBID="7", PBS_NODEFILE="/var/spool/7", PBS_NP="8"),
        dict(LSB_JOBID="7", LSB_MCPU_HOSTS="a 4 b 4", LSB_DJOB_NUMPROC="8"),
        dict(FLUX_URI="local:///run/flux", FLUX_JOB_ID="f7"),
        dict(JOB_ID="7", NSLOTS="8", PE_HOSTFILE="/var/spool/7"),
        # A launcher of one task that is through with it.
        dict(PMI_FD="0", PMI_RANK="0", PMI_SIZE="1"),
    ):
        result = run(launcher=Paths.probe, env=environment(**variables))
        equal(result.code, 0, f"exit code with {variables}", result)
        expect(result.out.startswith("rank 0 of 1 app 0 universe 1 node 0 job single-"), "alone",
               result)


@case
def programs_that_a_rank_starts():
    """They are alone, even with a copy of the variables that the rank was started with; but a
    wrapper that closes the descriptor is told of it."""
    for what in ("child", "copy"):
        result = run("-n", "2", Paths.probe, what)
        equal((result.code, result.out.count("rank 0 of 1 ")), (0, 1 if what == "child" else 2),
              what, result)
    wrapper = f"import subprocess\nsys.exit(subprocess.run([{Paths.probe!r}]).returncode)"
    result = run("-n", "2", *python(wrapper))
    equal(result.code, 3, "a wrapper that closes the descriptor", result)
    expect("close_fds=False" in result.err, "the sentence", result)


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


PORT_ANSWERS = {
    "initack": "cmd=initack\ncmd=set size=1\ncmd=set rank=0\ncmd=set debug=0\n",
    "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
    "get_maxes": "cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=1024\n",
    "get_my_kvsname": "cmd=my_kvsname kvsname=job\n",
    "get_appnum": "cmd=appnum appnum=0\n",
    "get_universe_size": "cmd=universe_size size=1\n",
    "put": "cmd=put_result rc=0\n",
    "barrier_in": "cmd=barrier_out\n",
    "finalize": "cmd=finalize_ack\n",
}


def serve_one_rank(server):
    """A launcher that listens at a port, as mpiexec.hydra -pmi-port does, for a job of one rank."""
    texts = {}
    connection, _ = server.accept()
    with connection, connection.makefile("rw", encoding="ascii", newline="\n") as stream:
        for line in stream:
            words = dict(word.split("=", 1) for word in line.split())
            if words["cmd"] == "put":
                texts[words["key"]] = words["value"]
            found = texts.get(words.get("key"))
            stream.write(PORT_ANSWERS.get(words["cmd"]) or (
                f"cmd=get_result rc=0 value={found}\n" if found else "cmd=get_result rc=-1\n"))
            stream.flush()


@case
def a_launcher_at_a_port():
    """By number, of both families, and by the name of this machine, which nobody resolves."""
    unknown = ("unshare", "-u", "-m", "sh", "-ec", "hostname nobody-knows.invalid\n"
               "mount --bind /dev/null /etc/resolv.conf\nexec \"$@\"", "sh")
    tries = [("127.0.0.1", "127.0.0.1", ())]
    if os.path.exists("/proc/net/if_inet6"):
        tries.append(("::1", "[::1]", ()))
    if run("-u", "-m", "true", launcher="unshare").code == 0:
        tries.append(("127.0.0.1", "nobody-knows.invalid", unknown))
    for address, name, around in tries:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.create_server((address, 0), family=family) as server:
            threading.Thread(target=serve_one_rank, args=(server,), daemon=True).start()
            env = environment(PMI_PORT=f"{name}:{server.getsockname()[1]}", PMI_ID="0")
            command = [*around, Paths.probe]
            result = run(*command[1:], launcher=command[0], env=env)
        equal(result.code, 0, f"exit code at {name}", result)
        expect("rank 0 of 1" in result.out and "job job" in result.out, "its rank", result)


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
        for what in ("leave", "back"):
            result = run(*words, "-n", "3", Paths.probe, what, launcher=hydra, limit=60)
            equal((result.code, result.out.count("of 3 app 0")), (0, 3), f"{words} {what}", result)
        result = run(*words, "-n", "3", Paths.probe, "abort", "6", launcher=hydra, limit=60)
        equal(result.code, 6, f"abort under hydra {words}", result)
    result = run("-n", "2", Paths.probe, "copy", launcher=hydra, limit=60)
    equal((result.code, result.out.count("rank 0 of 1 ")), (0, 2), "a rank's programs", result)
    result = run("-n", "1", Paths.probe, ":", "-n", "2", Paths.probe, launcher=hydra, limit=60)
    equal((result.code, result.out.count(" app 1 ")), (0, 2), "two programs", result)


@case
def under_the_launcher_of_open_mpi():
    """Our client over PMIx, with the launcher's own libpmix, which lies on no search path."""
    mpirun = f"{cache('openmpi')}/bin/mpirun"
    common = ("--allow-run-as-root", "--oversubscribe")
    for words in (("-n", "3", Paths.probe, "leave"), ("-n", "3", Paths.probe, "back"),
                  ("-n", "3", "env", "LD_LIBRARY_PATH=", Paths.probe, "back")):
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
    equal((result.code, result.out.count("of 2 app 0")), (0, 2), "libpmix seen past a shell", result)
    if os.geteuid() != 0:
        return
    # Where the launcher itself cannot be seen, either.
    alone = ("unshare", "--pid", "--fork", "--mount-proc")
    result = run(*common, "-n", "2", *alone, *hidden, launcher=mpirun, limit=60)
    expect(result.code != 0 and "started by Open MPI's mpirun" in result.err
           and "libpmix.so.2" in result.err, "without libpmix: one sentence", result)
