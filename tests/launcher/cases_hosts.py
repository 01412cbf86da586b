"""Hosts and batch systems: what belongs here, what goes to an engine, and with which machines (the engines are scripts,
fake_engines.py)."""

import os

from fake_engines import KINDS, engines, expect_words
from harness import Paths, Skipped, case, environment, equal, expect, folder, run

WORDS = ("-n", "6", "/bin/echo", "input file.txt")


@case
def hosts():
    name = os.uname().nodename
    with folder() as path, engines(*KINDS) as machine:
        machines = os.path.join(path, "machines")
        with open(machines, "w", encoding="ascii") as file:
            file.write(f"# all here\n{name} slots=4\nlocalhost:2\n\n127.0.0.1\n")
        for words in (("--host", "localhost"), ("-hosts", f"{name}:4"), ("-H", "127.0.0.1,::1"),
                      ("--hostfile", machines), ("-f", machines)):
            result = run(*words, "-n", "2", "echo", "here")
            equal((result.code, result.out), (0, "here\nhere\n"), f"{words}", result)
        with open(machines, "a", encoding="ascii") as file:
            file.write("node17 slots=8\n")
        for words, wanted in ((("--host", "localhost,node17"), f"{name}:1,node17:1"),
                              (("--host", f"127.0.0.1,{name},node17"), f"{name}:2"),
                              (("-f", machines), f"{name}:2"), (("-H", "192.0.2.7"), "192.0.2.7:2")):
            machine.forget()
            result = run(*words, "-n", "2", "/bin/echo", env=machine.environment())
            equal((result.code, machine.kind), (0, "hydra"), f"{words}", result)
            expect_words(machine.words, ["-hosts", wanted], f"{words}", result)
        result = run("-f", os.path.join(path, "none"), "true")
        equal(result.code, 2, "a host file that is not there", result)
        for bad in ("node1:many", "node[1-3]", "[::1", ":4"):
            result = run("--hosts", bad, "true")
            expect(result.code == 2 and f"host {bad}: " in result.err, f"--hosts {bad}", result)
        for text in ("", "# nobody\n"):
            with open(machines, "w", encoding="ascii") as file:
                file.write(text)
            result = run("-f", machines, "true", env=machine.environment())
            expect(result.code == 2 and "names no machine" in result.err, "a host file without machines", result)
        result = run("--hosts", ",", "true", env=machine.environment())
        expect(result.code == 2 and "--hosts names no machine" in result.err, "no names", result)
        with open(machines, "w", encoding="ascii") as file:
            file.write("node1 slots=2 user=me\n")
        result = run("-f", machines, "true", env=machine.environment())
        expect(result.code == 2 and "user=me (node1), which is not handed over" in result.err, "words that are lost",
               result)


@case
def what_a_rank_spawns_stays_here():
    """Also where that rank is one of a job on several machines: nobody there would tell the new ranks of their parents."""
    with folder() as path, engines(*KINDS) as machine:
        machines = os.path.join(path, "machines")
        with open(machines, "w", encoding="ascii") as file:
            file.write("node1\nnode2\n")
        spawned = dict(HEADWAY_SPAWN_PORT="a port")
        for around in (dict(PBS_NODEFILE=machines), dict(SLURM_JOB_ID="1", SLURM_JOB_NUM_NODES="3"),
                       dict(SLURM_JOB_ID="1", SLURM_JOB_NUM_NODES="3", SLURM_STEP_ID="2", SLURM_STEP_NUM_NODES="2")):
            result = run("-n", "2", "/bin/sh", "-c", "echo $HEADWAY_PARENT_PORT", env=machine.environment(**around, **spawned))
            equal((result.code, result.out, machine.kind), (0, "a port\n" * 2, ""), f"{around}", result)
        result = run("--host", "node17", "/bin/echo", env=machine.environment(**spawned))
        expect(result.code == 2 and "info key host names another one, node17" in result.err, "another machine", result)
        equal(machine.kind, "", "no engine is asked", result)


@case
def machines_of_two_domains():
    if os.geteuid() != 0:
        return  # this machine is given another name
    with engines("hydra") as machine:
        for own, named, kind in (("node1.east.example", "node1.west.example", "hydra"), ("node1.east.example", "node1", ""),
                                 ("node1", "node1.east.example", ""), ("node1.east.example", "node1.east.example", "")):
            machine.forget()
            line = f"/bin/hostname {own} && exec {Paths.mpiexec} --hosts {named} /bin/echo"
            result = run("--uts", "/bin/sh", "-c", line, env=machine.environment(), launcher="/usr/bin/unshare")
            equal((result.code, machine.kind), (0, kind), f"{named} from {own}", result)


def handed_over(variables, kind, *wanted, words=WORDS):
    """The engine of that kind gets these words; with --host localhost the job starts here."""
    with engines(*KINDS) as machine:
        result = run(*words, env=machine.environment(**variables))
        equal((result.code, machine.kind), (0, kind), f"with {variables}", result)
        for some in wanted:
            expect_words(machine.words, some.split(), f"with {variables}", result)
    here = run("--host", "localhost", "-n", "2", "true", env=environment(**variables))
    equal(here.code, 0, f"staying here with {variables}", here)


def told(variables, *texts):
    """What is said of the machines where there is no engine."""
    with engines() as machine:
        result = run(*WORDS, env=machine.environment(**variables))
        equal((result.code, result.out, len(result.err.splitlines())), (2, "", 1), f"with {variables}", result)
        for text in (*texts, "--host localhost"):
            expect(text in result.err, f"{text!r} in the sentence", result)


def accepted(variables):
    result = run("-n", "2", "true", env=environment(**variables))
    equal(result.code, 0, f"with {variables}", result)


@case
def allocations_of_slurm():
    three = dict(SLURM_JOB_ID="1", SLURM_JOB_NUM_NODES="3", SLURM_JOB_NODELIST="node[1-3]")
    handed_over(three, "srun", "-N 3 -n 6", "--overlap --overcommit")
    told(three, "this Slurm job has 3 machines", "started by srun")
    for slots in (dict(SLURM_NTASKS="6"), dict(SLURM_JOB_CPUS_PER_NODE="2(x2),4")):
        with engines("srun") as machine:
            result = run(*WORDS, env=machine.environment(**three, **slots))
            equal((result.code, "--overcommit" in machine.words), (0, False), f"room for all with {slots}", result)
    handed_over(dict(SLURM_JOB_ID="1", SLURM_NNODES="2"), "srun", "-N 2 -n 6")
    # The shells of salloc and sbatch are steps of one machine, and stand for all of them.
    for step in ("4294967290", "4294967291"):
        handed_over({**three, "SLURM_STEP_ID": step, "SLURM_STEP_NUM_NODES": "1",
                     "SLURMD_NODENAME": "node1"}, "srun", "-N 3")
    # But `srun -N1 mpiexec ...` has been put where it is,
    accepted({**three, "SLURM_STEP_ID": "2", "SLURM_STEP_NUM_NODES": "1"})
    # and `srun -N2 mpiexec ...` would start the job twice.
    result = run(*WORDS, env=environment(**three, SLURM_STEP_ID="2", SLURM_STEP_NUM_NODES="2"))
    equal(result.code, 2, "mpiexec that srun has started on two machines", result)
    expect("srun has started mpiexec on each" in result.err and "leave srun out" in result.err, "why", result)
    name = os.uname().nodename
    one = dict(SLURM_JOB_ID="1", SLURM_JOB_NUM_NODES="1")
    for node in (name, name.split(".")[0], "localhost"):
        accepted({**one, "SLURM_JOB_NODELIST": node})
    # salloc on the login node, for a machine that is another one.
    handed_over({**one, "SLURM_JOB_NODELIST": "node17"}, "srun", "-N 1 -n 6")
    told({**one, "SLURM_JOB_NODELIST": "node17"}, "this Slurm job has the machine node17", name)
    accepted({**one, "SLURM_JOB_NODELIST": "node17", "SLURMD_NODENAME": "node17"})


@case
def allocations_with_a_file_of_machines():
    with folder() as path:
        file_name = os.path.join(path, "machines")

        def machines(*lines):
            with open(file_name, "w", encoding="ascii") as file:
                file.write("".join(line + "\n" for line in lines))
        for variable, system in (("PBS_NODEFILE", "PBS"), ("OAR_NODEFILE", "OAR"), ("COBALT_NODEFILE", "Cobalt")):
            machines("node1", "node1", "node1", "node2", "node2", "node2")
            handed_over({variable: file_name}, "hydra", "-hosts node1:3,node2:3")
            told({variable: file_name}, f"this {system} job has 2 machines", "none is installed here")
            machines("node1", "node2")
            handed_over({variable: file_name}, "hydra", "-hosts node1:3,node2:3")
            machines("node1", "node1")
            accepted({variable: file_name})
            # It belongs to this job: without it the job would start here alone, and nobody would know.
            os.unlink(file_name)
            told({variable: file_name}, f"{variable}={file_name}", f"this {system} job, cannot be read here: No such file")
        machines("node1 4 all.q@node1 UNDEFINED", "node2 2 all.q@node2 UNDEFINED")
        handed_over(dict(PE_HOSTFILE=file_name), "hydra", "-hosts node1:4,node2:2")
        told(dict(PE_HOSTFILE=file_name), "this Grid Engine job has 2 machines")
        machines("node1 4 all.q@node1 UNDEFINED")
        accepted(dict(PE_HOSTFILE=file_name))


@case
def host_files_of_operators():
    """A launcher pod names its workers so, and is none of them itself."""
    name = os.uname().nodename
    with folder() as path:
        file_name = os.path.join(path, "hosts")

        def machines(*lines):
            with open(file_name, "w", encoding="ascii") as file:
                file.write("".join(line + "\n" for line in lines))
        hydra, prterun = ("hydra", "-hosts"), ("prterun", "--host")
        for variable, (kind, option) in (("HYDRA_HOST_FILE", hydra), ("OMPI_MCA_orte_default_hostfile", prterun),
                                         ("PRTE_MCA_prte_default_hostfile", prterun),
                                         ("OMPI_MCA_prte_default_hostfile", prterun)):
            for lines in (("job-worker-0.job:4", "job-worker-1.job:4"),
                          ("job-worker-0.job slots=4", "job-worker-1.job slots=4")):
                machines("# made by the operator", *lines)
                handed_over({variable: file_name}, kind, f"{option} job-worker-0.job:4,job-worker-1.job:4")
                told({variable: file_name}, f"{file_name}, which {variable} names, has 2 machines")
            machines("job-worker-0.job:4")
            handed_over({variable: file_name}, kind, f"{option} job-worker-0.job:6")
            told({variable: file_name}, "has the machine job-worker-0.job", name)
            machines(f"{name} slots=4")
            accepted({variable: file_name})
            machines()
            accepted({variable: file_name})
            os.unlink(file_name)
            accepted({variable: file_name})
            accepted({variable: ""})
        # The engine that the operator meant may not be there, and the other one serves as well.
        machines("job-worker-0.job slots=4", "job-worker-1.job slots=4")
        with engines("hydra") as machine:
            result = run(*WORDS, env=machine.environment(PRTE_MCA_prte_default_hostfile=file_name))
            equal((result.code, machine.kind), (0, "hydra"), "the other engine", result)
        machines("job-worker-0.job slots=some")
        result = run(*WORDS, env=environment(HYDRA_HOST_FILE=file_name))
        expect(result.code == 2 and "slots=some" in result.err, "a file that makes no sense is told", result)


@case
def allocations_of_lsf_and_flux():
    handed_over(dict(LSB_JOBID="7", LSB_MCPU_HOSTS="node1 4 node2 4 node3 2"), "hydra", "-hosts node1:4,node2:4")
    told(dict(LSB_JOBID="7", LSB_MCPU_HOSTS="node1 4 node2 4 node3 2"), "this LSF job has 3 machines")
    handed_over(dict(LSB_JOBID="7", LSB_HOSTS="node1 node1 node2"), "hydra", "-hosts node1:4,node2:2")
    accepted(dict(LSB_JOBID="7", LSB_MCPU_HOSTS="node1 4"))
    accepted(dict(LSB_JOBID="7"))
    # The script of a Flux job has FLUX_URI, and asks for the rest.
    inside = dict(FLUX_URI="local:///run/flux/local", FAKE_FLUX_SIZE="2")
    handed_over(inside, "flux", "run -o pmi=simple -o exit-on-error -N 2 -n 6")
    accepted(dict(FLUX_URI="local:///run/flux/local"))
    with engines("flux") as machine:
        result = run("-n", "2", "/bin/true", env=machine.environment(**{**inside, "FAKE_FLUX_SIZE": "1"}))
        equal((result.code, machine.kind), (0, ""), "a Flux job of one machine", result)
    # A task of a Flux job is one of many if there are many.
    accepted(dict(**inside, FLUX_JOB_ID="f7", FLUX_JOB_NNODES="1"))
    result = run(*WORDS, env=environment(**inside, FLUX_JOB_ID="f7", FLUX_JOB_NNODES="2"))
    expect(result.code == 2 and "flux run has started mpiexec on each" in result.err, "started often", result)


@case
def addresses_are_no_names():
    """10.0.0.7 is not this machine because its own name begins with 10."""
    if run("-u", "true", launcher="/usr/bin/unshare").code != 0:
        raise Skipped("no namespace of host names here")
    script = f"hostname 192.0.2.1; PATH=/nowhere; exec {Paths.mpiexec} \"$@\""
    result = run("-u", "sh", "-c", script, "sh", "--host", "192.0.2.7", "true",
                 launcher="/usr/bin/unshare")
    expect(result.code == 2 and "192.0.2.7: ranks on other machines" in result.err, "not here", result)
