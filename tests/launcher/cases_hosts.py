"""Hosts and batch systems: what is refused, and the command that is told instead."""

import os

from harness import Paths, Skipped, case, environment, equal, expect, folder, run


@case
def hosts():
    name = os.uname().nodename
    with folder() as path:
        machines = os.path.join(path, "machines")
        with open(machines, "w", encoding="ascii") as file:
            file.write(f"# all here\n{name} slots=4\nlocalhost:2\n\n127.0.0.1\n")
        for words in (("--host", "localhost"), ("-hosts", f"{name}:4"), ("-H", "127.0.0.1,::1"),
                      ("--hostfile", machines), ("-f", machines)):
            result = run(*words, "-n", "2", "echo", "here")
            equal((result.code, result.out), (0, "here\nhere\n"), f"{words}", result)
        with open(machines, "a", encoding="ascii") as file:
            file.write("node17 slots=8\n")
        for words in (("--host", "localhost,node17"), ("-f", machines), ("-H", "192.0.2.7")):
            result = run(*words, "-n", "2", "./solver")
            equal(result.code, 2, f"{words}", result)
            expect("is not this machine" in result.err and "mpiexec.hydra" in result.err
                   and "prterun" in result.err, "the right commands", result)
        result = run("-f", os.path.join(path, "none"), "true")
        equal(result.code, 2, "a host file that is not there", result)


def refused(variables, *told, words=("-n", "6", "./solver", "input file.txt")):
    """mpiexec starts nothing and tells these words; with --host localhost it would start."""
    result = run(*words, env=environment(**variables))
    equal((result.code, result.out), (2, ""), f"with {variables}", result)
    equal(len(result.err.splitlines()), 1, "one sentence", result)
    for text in told:
        expect(text in result.err, f"{text!r} in the sentence", result)
    here = run("--host", "localhost", "-n", "2", "true", env=environment(**variables))
    equal(here.code, 0, f"staying here with {variables}", here)


def accepted(variables):
    result = run("-n", "2", "true", env=environment(**variables))
    equal(result.code, 0, f"with {variables}", result)


@case
def allocations_of_slurm():
    three = dict(SLURM_JOB_ID="1", SLURM_JOB_NUM_NODES="3", SLURM_JOB_NODELIST="node[1-3]")
    refused(three, "Slurm job has 3 machines", "srun --mpi=pmi2 -n 6 ./solver 'input file.txt'",
            "--host localhost")
    refused(dict(SLURM_JOB_ID="1", SLURM_NNODES="2"), "2 machines")
    # The shells of salloc and sbatch are steps of one machine, and stand for all of them.
    for step in ("4294967290", "4294967291"):
        refused({**three, "SLURM_STEP_ID": step, "SLURM_STEP_NUM_NODES": "1",
                 "SLURMD_NODENAME": "node1"}, "3 machines")
    # But `srun -N1 mpiexec ...` has been put where it is.
    accepted({**three, "SLURM_STEP_ID": "2", "SLURM_STEP_NUM_NODES": "1"})
    refused({**three, "SLURM_STEP_ID": "2", "SLURM_STEP_NUM_NODES": "2"}, "2 machines")
    name = os.uname().nodename
    one = dict(SLURM_JOB_ID="1", SLURM_JOB_NUM_NODES="1")
    for node in (name, name.split(".")[0], "localhost"):
        accepted({**one, "SLURM_JOB_NODELIST": node})
    # salloc on the login node, for a machine that is another one.
    refused({**one, "SLURM_JOB_NODELIST": "node17"}, "the machine node17", name, "srun --mpi=pmi2")
    accepted({**one, "SLURM_JOB_NODELIST": "node17", "SLURMD_NODENAME": "node17"})
    refused(three, "srun --mpi=pmi2 -n 3 --multi-prog",
            words=("-n", "1", "./a", ":", "-n", "2", "./b"))
    remote = run("--host", "node1,node2", "-n", "2", "./a", env=environment(**three))
    expect("srun --mpi=pmi2 -w node1,node2 -n 2 ./a" in remote.err, "the user's hosts", remote)


@case
def allocations_with_a_file_of_machines():
    with folder() as path:
        file_name = os.path.join(path, "machines")

        def machines(*lines):
            with open(file_name, "w", encoding="ascii") as file:
                file.write("".join(line + "\n" for line in lines))
        for variable, system, command in (
                ("PBS_NODEFILE", "PBS", f"mpiexec.hydra -f {file_name} -n 6 ./solver"),
                ("OAR_NODEFILE", "OAR", f"mpiexec.hydra -f {file_name} -n 6 ./solver"),
                ("COBALT_NODEFILE", "Cobalt", f"mpiexec.hydra -f {file_name} -n 6 ./solver"),
                ("PE_HOSTFILE", "Grid Engine", "mpiexec.hydra -n 6 ./solver")):
            machines("node1", "node1", "node2", "node2")
            refused({variable: file_name}, f"{system} job has 2 machines", command)
            machines("node1", "node1")
            accepted({variable: file_name})
            os.unlink(file_name)
            accepted({variable: file_name})


@case
def host_files_of_operators():
    """A launcher pod names its workers so, and is none of them itself."""
    name = os.uname().nodename
    with folder() as path:
        file_name = os.path.join(path, "hosts")

        def machines(*lines):
            with open(file_name, "w", encoding="ascii") as file:
                file.write("".join(line + "\n" for line in lines))
        for variable, command in (
                ("HYDRA_HOST_FILE", f"mpiexec.hydra -f {file_name} -n 6 ./solver"),
                ("OMPI_MCA_orte_default_hostfile", f"prterun --hostfile {file_name} -n 6 ./solver"),
                ("PRTE_MCA_prte_default_hostfile", f"prterun --hostfile {file_name} -n 6 ./solver"),
                ("OMPI_MCA_prte_default_hostfile", f"prterun --hostfile {file_name} -n 6 ./solver")):
            for lines in (("job-worker-0.job:4", "job-worker-1.job:4"),
                          ("job-worker-0.job slots=4", "job-worker-1.job slots=4")):
                machines("# made by the operator", *lines)
                refused({variable: file_name}, f"{file_name}, which {variable} names, has 2 machines",
                        command, "--host localhost")
            machines("job-worker-0.job:4")
            refused({variable: file_name}, "has the machine job-worker-0.job", name, command)
            machines(f"{name} slots=4")
            accepted({variable: file_name})
            machines()
            accepted({variable: file_name})
            os.unlink(file_name)
            accepted({variable: file_name})
            accepted({variable: ""})


@case
def allocations_of_lsf_and_flux():
    refused(dict(LSB_JOBID="7", LSB_MCPU_HOSTS="node1 4 node2 4 node3 2"), "LSF job has 3 machines",
            "mpiexec.hydra -n 6 ./solver 'input file.txt'", "asks the batch system")
    refused(dict(LSB_JOBID="7", LSB_HOSTS="node1 node1 node2"), "LSF job has 2 machines")
    accepted(dict(LSB_JOBID="7", LSB_MCPU_HOSTS="node1 4"))
    accepted(dict(LSB_JOBID="7"))
    refused(dict(FLUX_JOB_ID="f7", FLUX_JOB_NNODES="2"), "Flux job has 2 machines",
            "flux run -o pmi=simple -n 6 ./solver")
    accepted(dict(FLUX_JOB_ID="f7", FLUX_JOB_NNODES="1"))


@case
def addresses_are_no_names():
    """10.0.0.7 is not this machine because its own name begins with 10."""
    if run("-u", "true", launcher="/usr/bin/unshare").code != 0:
        raise Skipped("no namespace of host names here")
    script = f"hostname 192.0.2.1; exec {Paths.mpiexec} \"$@\""
    result = run("-u", "sh", "-c", script, "sh", "--host", "192.0.2.7", "true",
                 launcher="/usr/bin/unshare")
    expect(result.code == 2 and "is not this machine" in result.err, "refused", result)
