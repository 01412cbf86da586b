"""Jobs of several machines, handed over to engines: each row of the table on each of them, which is taken, what is
refused by name, and how it ends. The engines are scripts (fake_engines); real ones are in tests/engines."""

import os
import re
import shlex
import signal
import subprocess
import time

from fake_engines import AROUND, KINDS, SLURM, engines, expect_words, stands_in
from harness import Paths, alive, case, equal, expect, folder, run, send_with_echo, start, until_near, wait_until

PROGRAM = ("/bin/echo", "x y")
REFUSED = None

# Row of the table: options, and the words that each engine gets. "-n 4" and "--hosts node1,node2" stand before them, but
# where they say it themselves. {lib} is our library's folder.
ROWS = {
    "-n N": ((), {
        "srun": "-w node1,node1,node2,node2 -m arbitrary -N 2 -n 4", "flux": "--requires=host:node1,node2 -N 2 -n 4",
        "hydra": "-n 4 /bin/echo 'x y'", "prterun": "-n 4"}),
    "--ppn K": (("--ppn", "2"), {
        "srun": "-w node1,node1,node2,node2 -m arbitrary -N 2 -n 4", "flux": "-N 2 --tasks-per-node=2", "hydra": "-ppn 2",
        "prterun": "--map-by ppr:2:node"}),
    "--hosts a:2,b:2": (("--hosts", "a:2,b:2"), {
        "srun": "-w a,a,b,b -m arbitrary -N 2 -n 4",
        "flux": "--requires=host:a,b -N 2 --tasks-per-node=2", "hydra": "-hosts a:2,b:2",
        "prterun": "--host a:2,b:2"}),
    "more ranks than were asked for": (("-n", "64"), {
        "srun": "-n 64 --overlap --overcommit", "flux": "-n 64", "hydra": "-n 64",
        "prterun": "--map-by :oversubscribe"}),
    "--bind-to core": (("--bind-to", "core"), {
        "srun": "--cpu-bind=cores", "flux": "-o cpu-affinity=per-task", "hydra": "-bind-to core",
        "prterun": "--bind-to core"}),
    "--bind-to none": (("--bind-to", "none"), {
        "srun": "--cpu-bind=none", "flux": "-o cpu-affinity=off", "hydra": "-bind-to none",
        "prterun": "--bind-to none"}),
    "--bind-to WORD": (("--bind-to", "socket"), {
        "srun": REFUSED, "flux": REFUSED, "hydra": REFUSED, "prterun": REFUSED}),
    "--show-binding": (("--show-binding",), {
        "srun": "--cpu-bind=verbose", "flux": "-o cpu-affinity=verbose,on", "hydra": REFUSED,
        "prterun": "--display bind"}),
    "--env, -x": (("--env", "T_A=1, 2"), {
        "srun": {"T_A": "1, 2"}, "flux": {"T_A": "1, 2"}, "hydra": "-genv T_A '1, 2'",
        "prterun": "-x 'T_A=1, 2'"}),
    "-x NAME": (("-x", "T_A"), {
        "srun": {"T_A": "1"}, "flux": {"T_A": "1"}, "hydra": {"T_A": "1"}, "prterun": "-x T_A"}),
    "--set, --genv": (("--set", "PROGRESS=off"), {
        "srun": {"HEADWAY_PROGRESS": "off"}, "flux": {"HEADWAY_PROGRESS": "off"},
        "hydra": "-genv HEADWAY_PROGRESS off", "prterun": "-x HEADWAY_PROGRESS=off"}),
    "--unset NAME": (("--unset", "T_GONE"), {
        kind: "/usr/bin/env -u T_GONE /bin/echo 'x y'" for kind in KINDS}),
    "--envlist, --envnone": (("--envlist", "T_A,T_B"), {
        "srun": "--export=LD_LIBRARY_PATH,T_A,T_B",
        "flux": "--env-remove=* --env=LD_LIBRARY_PATH --env=T_A --env=T_B", "hydra": "-envlist T_A,T_B",
        "prterun": REFUSED}),
    "--wdir DIR": (("--wdir", "/tmp"), {
        "srun": "-D /tmp", "flux": "--cwd=/tmp", "hydra": "-wdir /tmp", "prterun": "--wdir /tmp"}),
    "--path DIR": (("--path", "/bin", "echo", "found"), {kind: "/bin/echo found" for kind in KINDS}),
    "--library program": (("--library", "program"), {
        kind: {"LD_LIBRARY_PATH": "/mine"} for kind in KINDS}),
    "-l": (("-l",), {
        "srun": "-l", "flux": "--label-io", "hydra": "-prepend-rank", "prterun": "--output tag"}),
    "--prepend-pattern TEXT": (("--prepend-pattern", "%r of %h "), {
        "srun": REFUSED, "flux": REFUSED, "hydra": "-prepend-pattern '%r of %h '", "prterun": REFUSED}),
    "--timestamp-output": (("--timestamp-output",), {
        "srun": REFUSED, "flux": REFUSED, "hydra": REFUSED, "prterun": "--output timestamp"}),
    "--merge-stderr": (("--merge-stderr",), {
        "srun": "", "flux": "", "hydra": "", "prterun": "--output merge"}),
    "--merge-stderr into files": (("--merge-stderr", "--output-dir", "{dir}"), {
        "srun": "-o {dir}/rank.%t.out", "flux": REFUSED, "hydra": REFUSED,
        "prterun": "--output merge,file={dir}/rank:nocopy"}),
    "--output-dir DIR": (("--output-dir", "{dir}"), {
        "srun": "-o {dir}/rank.%t.out -e {dir}/rank.%t.err", "flux": REFUSED,
        "hydra": "-outfile-pattern {dir}/rank.%r.out -errfile-pattern {dir}/rank.%r.err",
        "prterun": "--output file={dir}/rank:nocopy"}),
    "--outfile-pattern FILE": (("--outfile-pattern", "{dir}/%r.%h"), {
        "srun": "-o {dir}/%t.%N -e all", "flux": REFUSED, "hydra": "-outfile-pattern {dir}/%r.%h",
        "prterun": REFUSED}),
    "--errfile-pattern FILE": (("--errfile-pattern", "{dir}/%r"), {
        "srun": "-e {dir}/%t", "flux": REFUSED, "hydra": "-errfile-pattern {dir}/%r",
        "prterun": REFUSED}),
    "--stdin R": (("--stdin", "3"), {
        "srun": "-i 3", "flux": "--input=3", "hydra": REFUSED, "prterun": "--stdin 3"}),
    "--stdin none": (("--stdin", "none"), {
        "srun": "-i 0", "flux": "--input=0", "hydra": "", "prterun": "--stdin none"}),
    "--timeout S": (("--timeout", "50"), {
        "srun": "", "flux": "--time-limit=50.000s", "hydra": "", "prterun": ""}),
    "PROGRAM : PROGRAM": (("/bin/echo", "a b", ":", "-n", "2", "/bin/echo", "c"), {
        "srun": "--multi-prog", "flux": REFUSED, "hydra": "/bin/echo 'a b' : -n 2 /bin/echo c",
        "prterun": ": -n 2"}),
    "always": ((), {
        "srun": "--mpi=pmi2 --kill-on-bad-exit=1 -X --export=ALL",
        "flux": "run -o pmi=simple -o exit-on-error", "hydra": "",
        "prterun": "--allow-run-as-root" if os.geteuid() == 0 else ""}),
}


OWN_PROGRAM = ("--path DIR", "PROGRAM : PROGRAM")


def line_for(name, options):
    """The whole of a command with these options."""
    words = [] if "-n" in options[:1] else ["-n", "4"]
    if "--hosts" not in options:
        words += ["--hosts", "node1,node2"]
    return [*words, *options, *(() if name in OWN_PROGRAM else PROGRAM)]


def check_row(name, kind, machine):
    options, forms = ROWS[name]
    wanted = forms[kind]
    with folder() as path:
        options = [word.replace("{dir}", f"{path}/out") for word in options]
        env = machine.environment(HEADWAY_ENGINE=kind, LD_LIBRARY_PATH="/mine", T_A="1", T_B="2", **AROUND[kind])
        machine.forget()
        result = run(*line_for(name, options), env=env)
        if wanted is REFUSED:
            equal((result.code, machine.kind), (2, ""), f"{name} on {kind} is refused", result)
            option = options[0] if options[0].startswith("-") else name
            expect(f"{option} is not handed over to" in result.err, f"{option} by its name", result)
            equal(len(result.err.splitlines()), 1, "one sentence", result)
            return
        equal((result.code, machine.kind), (0, kind), f"{name} on {kind}", result)
        if isinstance(wanted, dict):
            found = {**machine.variables, **dict(word.split("=", 1) for word in machine.words if "=" in word)}
            equal({key: found.get(key) for key in wanted}, wanted, f"{name} on {kind}", result)
        else:
            expect_words(machine.words, shlex.split(wanted.replace("{dir}", f"{path}/out")), f"{name} on {kind}", result)


for engine in KINDS:
    def rows(kind=engine):
        with engines(*KINDS) as machine:
            for name in ROWS:
                check_row(name, kind, machine)
    rows.__name__ = f"rows_of_the_table_on_{engine}"
    rows.__doc__ = "Each option is told in this engine's words, done otherwise, or refused by its name."
    case(rows)


@case
def every_row_of_the_table_has_a_test():
    listed = [line.split("\t")[1] for line in run("--help-rows").out.splitlines() if line.startswith("engine\t")]
    expect(len(listed) > 20, f"rows of the table: {listed}")
    equal(listed, list(ROWS), "rows, and those that are tested")
    for line in run("--help-rows").out.splitlines():
        if not line.startswith("engine\t"):
            continue
        _, name, *cells = line.split("\t")
        equal([cell == "refused" for cell in cells], [ROWS[name][1][kind] is REFUSED for kind in KINDS],
              f"what is refused of {name}")


@case
def what_is_printed_is_what_is_executed():
    """A shell that is given the line of --dry-run calls the engine as mpiexec does."""
    options = ("--set", "PROGRESS=off", "--env", "T_A=it's; $HOME", "--unset", "T_GONE", "--wdir", "/tmp",
               "--merge-stderr", "/bin/echo", "a  b", "$HOME", "100%", "")
    for kind in KINDS:
        with engines(*KINDS) as machine:
            env = machine.environment(HEADWAY_ENGINE=kind, **AROUND[kind])
            words = ("-n", "4", "--hosts", "node1,node2", *options)
            result = run(*words, env=env)
            equal((result.code, machine.kind), (0, kind), "executed", result)
            executed, variables = machine.words, machine.variables
            machine.forget()
            told = run("--dry-run", *words, env=env)
            equal((told.code, told.err, machine.kind), (0, "", ""), "nothing is started by --dry-run", told)
            equal(told.out.count("\n"), 1, "one line", told)
            again = run("-c", told.out, env=env, launcher="/bin/sh")
            equal((again.code, machine.words), (0, executed), f"the words for {kind}", again)
            for name in ("T_A", "HEADWAY_PROGRESS", "LD_LIBRARY_PATH"):
                equal(machine.variables.get(name), variables.get(name), f"{name} for {kind}")


@case
def dry_runs_of_jobs_that_stay_here():
    result = run("--dry-run", "-n", "2", "echo", "a b", ":", "-n", "1", "false")
    equal((result.code, result.out), (0, "mpiexec -n 2 echo 'a b' : -n 1 false\n"), "the line", result)
    result = run("--do-not-launch", "--hosts", "localhost:4", "false")
    equal((result.code, result.out), (0, "mpiexec -n 1 false\n"), "as Open MPI calls it", result)


@case
def several_programs_under_srun():
    with engines("srun") as machine:
        words = ("-n", "1", "--wdir", "/tmp", "/bin/echo", "it's", ":", "-n", "3", "--env", "T_B=2", "/bin/echo", "100%")
        result = run(*words, env=machine.environment(**SLURM))
        equal((result.code, machine.kind), (0, "srun"), "executed", result)
        equal(machine.ranks_file, "0 /usr/bin/env --chdir=/tmp MPIEXEC_APPNUM=0 /bin/echo 'it'\\''s'\n1-3 /usr/bin/env MPIEXEC_APPNUM=1 T_B=2 /bin/echo '100%'\n",
              "its file", result)
        told = run("--dry-run", *words, env=machine.environment(**SLURM))
        expect("--multi-prog FILE\n# FILE holds:\n# 0 /usr/bin/env --chdir=/tmp" in told.out, "the file is shown", told)


# ---- which engine ----------------------------------------------------------------------------------

@case
def which_engine():
    hosts = ("--hosts", "node1,node2", "-n", "2", *PROGRAM)
    alone = ("-n", "2", *PROGRAM)
    flux = AROUND["flux"]
    for there, variables, words, wanted in (
            (KINDS, {}, hosts, "hydra"), (("prterun", "srun", "flux"), {}, hosts, "prterun"),
            (KINDS, SLURM, alone, "srun"), (KINDS, SLURM, hosts, "srun"), (KINDS, flux, alone, "flux"),
            (KINDS, flux, hosts, "flux"), (KINDS, dict(HEADWAY_ENGINE="prterun"), hosts, "prterun"),
            (KINDS, dict(SLURM, HEADWAY_ENGINE="hydra"), hosts, "hydra"),
            (KINDS, dict(SLURM, HEADWAY_ENGINE="prterun"), alone, "prterun"),
            # Placed by srun on one machine: others that are named are no part of that step.
            (KINDS, dict(SLURM, SLURM_STEP_ID="2", SLURM_STEP_NUM_NODES="1"), hosts, "hydra")):
        with engines(*there) as machine:
            result = run(*words, env=machine.environment(**variables))
            equal((result.code, machine.kind), (0, wanted), f"with {variables}", result)


@case
def what_info_tells():
    for there, variables, text in ((KINDS, {}, "other machines Hydra, "), (KINDS, SLURM, "other machines srun, "),
                                   ((), {}, "other machines nothing here starts ranks there")):
        with engines(*there) as machine:
            result = run("--info", env=machine.environment(**variables))
            equal(result.code, 0, "--info", result)
            expect(text in result.out, f"{text!r}", result)


@case
def a_launcher_that_is_no_hydra_is_not_taken_for_one():
    with engines("prterun") as machine:
        for name in ("mpiexec.hydra", "mpiexec.mpich"):
            with open(f"{machine.path}/bin/{name}", "w", encoding="ascii") as file:
                file.write("#!/bin/sh\necho another launcher\n")
            os.chmod(f"{machine.path}/bin/{name}", 0o755)
        result = run("--hosts", "node1", *PROGRAM, env=machine.environment())
        equal((result.code, machine.kind), (0, "prterun"), "the one that is known", result)


@case
def no_engine():
    with engines() as machine:
        name = os.uname().nodename
        result = run("--hosts", "node7:2", "-n", "2", *PROGRAM, env=machine.environment())
        equal((result.code, len(result.err.splitlines())), (2, 1), "one sentence", result)
        for text in ("node7: ranks on other machines are started by an engine, and none is installed here",
                     "apt install mpich", f"on {name} and on each of them", "prterun"):
            expect(text in result.err, f"{text!r} in the sentence", result)
        expect("--host localhost" not in result.err, "the user named machines", result)
        result = run("-n", "2", *PROGRAM, env=machine.environment(**SLURM))
        equal(result.code, 2, "a Slurm job without srun", result)
        for text in ("this Slurm job has 4 machines", "srun", "HEADWAY_ENGINE=hydra", "--host localhost"):
            expect(text in result.err, f"{text!r} in the sentence", result)
        for wished, text in (("hydra", "not on the search path"), ("ssh", "srun, flux, hydra and prterun are possible")):
            result = run("--hosts", "node7", *PROGRAM, env=machine.environment(HEADWAY_ENGINE=wished))
            equal(result.code, 2, f"HEADWAY_ENGINE={wished}", result)
            expect(f"HEADWAY_ENGINE={wished}: " in result.err and text in result.err, text, result)
        here = run("--host", "localhost", "-n", "2", "/bin/true", env=machine.environment(**SLURM))
        equal(here.code, 0, "here it starts all the same", here)


@case
def options_of_other_launchers():
    hosts = ("--hosts", "node1,node2", "-n", "2")
    for options, kind, wanted in (
            (("--mca", "btl", "tcp"), "prterun", "--mca btl tcp"), (("--mca", "btl", "tcp"), "hydra", REFUSED),
            (("--mca", "btl", "tcp"), "srun", REFUSED), (("-iface", "eth0"), "hydra", "-iface eth0"),
            (("--iface=eth0",), "hydra", "-iface eth0"), (("-iface", "eth0"), "prterun", REFUSED),
            (("--map-by", "core"), "prterun", "--map-by core"), (("-map-by", "core"), "hydra", "-map-by core"),
            (("--map-by", "core"), "flux", REFUSED), (("-cleanup",), "hydra", REFUSED),
            (("--oversubscribe", "--allow-run-as-root"), "hydra", ""), (("-perhost", "1"), "hydra", "-ppn 1"),
            (("-rr",), "hydra", "-ppn 1"), (("-N", "1"), "prterun", "--map-by ppr:1:node")):
        with engines(*KINDS) as machine:
            result = run(*hosts, *options, *PROGRAM, env=machine.environment(HEADWAY_ENGINE=kind, **AROUND[kind]))
            if wanted is REFUSED:
                equal((result.code, machine.kind), (2, ""), f"{options} on {kind}", result)
                expect(f"-{options[0].lstrip('-')} is not handed over to" in result.err, "by its name", result)
            else:
                equal((result.code, machine.kind), (0, kind), f"{options} on {kind}", result)
                expect_words(machine.words, wanted.split(), f"{options} on {kind}", result)
                equal(machine.words.count("--map-by"), "--map-by" in wanted or kind == "prterun", "said once", result)
    for option in ("--mca", "-launcher"):
        words = ("btl", "tcp") if option == "--mca" else ("ssh",)
        here = run(option, *words, "-n", "1", "/bin/true")
        equal(here.code, 0, f"{option} means nothing here", here)


@case
def options_of_other_launchers_from_a_file():
    with engines("hydra") as machine:
        with open(f"{machine.path}/job", "w", encoding="ascii") as file:
            file.write("-n 1 /bin/echo a\n-n 1 /bin/echo b\n")
        result = run("--hosts", "node1", "-iface", "eth0", "-configfile", f"{machine.path}/job",
                     env=machine.environment())
        equal((result.code, machine.kind), (0, "hydra"), "executed", result)
        expect_words(machine.words, ["-hosts", "node1:2", "-iface", "eth0"], "from before the file", result)


@case
def machines_of_one_program():
    """Those of all may stand with each, or with one; others for each cannot be told."""
    with engines("hydra") as machine:
        env = machine.environment()
        hosts = ("--hosts", "node1,node2")
        for words in ((*hosts, "/bin/echo", ":", *hosts, "/bin/echo"), (*hosts, "/bin/echo", ":", "/bin/echo"),
                      ("/bin/echo", ":", *hosts, "/bin/echo")):
            machine.forget()
            result = run(*words, env=env)
            equal((result.code, machine.kind), (0, "hydra"), f"{words}", result)
            expect_words(machine.words, ["-hosts", "node1:1,node2:1"], f"{words}", result)
        machine.forget()
        result = run("--host", "node1", "/bin/echo", ":", "--host", "node2", "/bin/echo", env=env)
        equal((result.code, machine.kind), (2, ""), "each its own", result)
        expect("name the machines once, for all programs" in result.err, "what to do", result)


# ---- what is passed on, and how it ends ------------------------------------------------------------

@case
def a_value_that_the_user_did_not_write_stands_on_no_line():
    """All users of the machine can read it there: -x NAME passes on by name."""
    secret = "secret-4711"
    for kind in KINDS:
        for words in (("-x", "T_SECRET"), ("-x", "T_SEC*"), ("-envlist", "T_A", "-x", "T_SECRET")):
            if kind == "prterun" and "-envlist" in words:
                continue
            with engines(*KINDS) as machine:
                env = machine.environment(HEADWAY_ENGINE=kind, T_SECRET=secret, T_A="1", **AROUND[kind])
                result = run("--hosts", "node1", *words, *PROGRAM, env=env)
                equal((result.code, machine.kind), (0, kind), f"{words} on {kind}", result)
                expect(not any(secret in word for word in machine.words), f"{words} on {kind}: {machine.words}", result)
                equal(machine.variables["T_SECRET"], secret, "the engine has it", result)
                if kind == "prterun" or (kind == "hydra" and "-envlist" in words):
                    expect(any("T_SECRET" in word for word in machine.words), f"by its name: {machine.words}", result)


@case
def files_of_an_earlier_job_under_hydra():
    """It writes over them, and would leave the rest of what is longer."""
    with engines("hydra") as machine:
        out = f"{machine.path}/50%out"
        os.makedirs(f"{out}/kept")
        names = ("rank.0.out", "rank.1.err", "x.0.node1", "x.1.node2")
        for name in (*names, "rank.2.out", "y.0.node1"):
            with open(f"{out}/{name}", "w", encoding="ascii") as file:
                file.write("old")
        result = run("--hosts", "node1,node2", "-n", "2", "--output-dir", out, "--outfile-pattern",
                     f"{machine.path}/50%%out/x.%r.%h", *PROGRAM, env=machine.environment())
        equal((result.code, machine.kind), (0, "hydra"), "executed", result)
        equal(sorted(os.listdir(out)), ["kept", "rank.2.out", "y.0.node1"], "the job's own are gone", result)


@case
def a_time_limit_of_the_environment_is_kept_by_mpiexec():
    with engines("hydra") as machine:
        env = machine.environment(MPIEXEC_TIMEOUT="1", FAKE_SCRIPT="exec /bin/sleep 30")
        result = run("--hosts", "node1", *PROGRAM, env=env)
        equal((result.code, "MPIEXEC_TIMEOUT" in machine.variables), (124, False), "ours alone", result)


@case
def the_variables_of_an_outer_job_are_left_behind():
    outer = dict(PMI_RANK="3", PMI_SIZE="8", PMI_FD="9", PMIX_RANK="3", HEADWAY_INSIDE="1", MPI_LOCALRANKID="1",
                 PMIX_SERVER_URI41="x", OMPI_COMM_WORLD_RANK="3", HYDI_CONTROL_FD="7", MPIEXEC_TIMEOUT="60")
    for kind in KINDS:
        with engines(*KINDS) as machine:
            env = machine.environment(HEADWAY_ENGINE=kind, T_KEPT="1", PRTE_MCA_plm_ssh_agent="kubexec",
                                      **outer, **AROUND[kind])
            result = run("--hosts", "node1", *PROGRAM, env=env)
            equal((result.code, machine.kind), (0, kind), "executed", result)
            equal(sorted(set(outer) & set(machine.variables)), [], "left of the outer job", result)
            equal((machine.variables["T_KEPT"], machine.variables["PRTE_MCA_plm_ssh_agent"]), ("1", "kubexec"),
                  "what is the user's", result)


@case
def streams_of_engines():
    script = "/bin/cat; echo error >&2"
    for kind in KINDS:
        with engines(*KINDS) as machine:
            env = machine.environment(HEADWAY_ENGINE=kind, FAKE_SCRIPT=script, **AROUND[kind])
            words = ("--hosts", "node1", *PROGRAM)
            result = run(*words, env=env, stdin="typed\n")
            equal((result.code, result.out, result.err), (0, "typed\n", "error\n"), f"streams of {kind}", result)
            result = run("--stdin", "none", *words, env=env, stdin="typed\n")
            equal((result.out, result.err), ("", "error\n"), f"no stdin of {kind}", result)
            if kind != "prterun":  # which merges them itself
                result = run("--merge-stderr", *words, env=env, stdin="typed\n")
                equal((result.out, result.err), ("typed\nerror\n", ""), f"one stream of {kind}", result)


@case
def lines_of_srun_stay_whole():
    """mpiexec reads its stderr on the way: nothing is lost or cut."""
    script = "i=0; while [ $i -lt 20000 ]; do echo line $i of many words to be read on the way; i=$((i + 1)); done >&2"
    with engines("srun") as machine:
        result = run(*PROGRAM, env=machine.environment(FAKE_SCRIPT=script, **SLURM))
        equal(result.err, "".join(f"line {i} of many words to be read on the way\n" for i in range(20000)),
              "all lines")


@case
def exit_codes_of_engines():
    for kind in KINDS:
        with engines(*KINDS) as machine:
            for script, code in (("exit 7", 7), ("kill -SEGV $$", 139 if kind == "srun" else -signal.SIGSEGV)):
                env = machine.environment(HEADWAY_ENGINE=kind, FAKE_SCRIPT=script, **AROUND[kind])
                result = run("--hosts", "node1", *PROGRAM, env=env)
                equal(result.code, code, f"{script} of {kind}", result)


@case
def the_true_code_under_srun():
    tell = "echo 'srun: error: h{}: task {}: {}' >&2; "
    killed = tell.format(0, 1, "Killed") + tell.format(0, 2, "Terminated")
    with engines("srun") as machine:
        for script, code in ((tell.format(1, 7, "Exited with exit code 5") + killed + "exit 143", 5),
                             (killed + tell.format(1, 7, "Exited with exit code 5") + "exit 143", 5),
                             (tell.format(1, 7, "Segmentation fault (core dumped)") + "exit 143", 139),
                             (killed + "exit 137", 137), (killed + "exit 0", 0), ("exit 0", 0)):
            result = run(*PROGRAM, env=machine.environment(FAKE_SCRIPT=script, **SLURM))
            equal(result.code, code, script, result)
            equal(result.err.count("srun: error:"), script.count("srun: error:"), "its lines are passed on", result)


WAITS = "trap 'echo told >\"$here/told\"; exit 1' TERM; trap 'echo asked >>\"$here/asked\"' INT; " \
        "echo >\"$here/ready\"; while :; do /bin/sleep 0.1; done"


@case
def the_time_limit():
    for kind in ("srun", "hydra", "prterun"):
        for limit in (1, 4, 12):  # one that has no traps yet when it is told to end cannot say so
            with engines(*KINDS) as machine:
                env = machine.environment(HEADWAY_ENGINE=kind, FAKE_SCRIPT=WAITS, **AROUND[kind])
                result = run("--timeout", limit, "--hosts", "node1", *PROGRAM, env=env)
                equal(result.code, 124, f"the time limit of {kind}", result)
                expect(limit <= result.seconds < limit + 9, "when", result)
                expect(f"the time of {limit} s (--timeout) is over" in result.err, "the sentence", result)
                if machine.ready:
                    expect(os.path.exists(f"{machine.path}/told"), "the engine is told to end", result)
                    break
        else:
            expect(False, f"{kind} is at work within {limit} s", result)


@case
def an_interrupt_under_srun():
    """The first goes to srun, which gives it to the ranks; the second ends it."""
    def once():
        with engines("srun") as machine, start(*PROGRAM, env=machine.environment(FAKE_SCRIPT=WAITS, **SLURM)) as process:
            wait_until(lambda: machine.ready, "srun at work")
            is_echo = send_with_echo(process, signal.SIGINT)  # a wrapper's copy of the terminal's
            wait_until(lambda: os.path.exists(f"{machine.path}/asked") or process.poll() is not None, "srun is interrupted")
            time.sleep(0.3)
            if is_echo:
                equal(process.poll(), None, "it goes on")
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
            equal(process.returncode, 130, "the code")
            expect(os.path.exists(f"{machine.path}/told"), "srun is told to end")
            return is_echo
    until_near(once)


@case
def a_killed_mpiexec_ends_srun():
    with engines("srun") as machine:
        process = start(*PROGRAM, env=machine.environment(FAKE_SCRIPT=WAITS, **SLURM))
        with process:
            wait_until(lambda: machine.ready, "srun at work")
            pid = machine.pid
            process.kill()
            process.communicate(timeout=20)
        wait_until(lambda: not alive(pid), "srun has ended")
        expect(os.path.exists(f"{machine.path}/told"), "srun was told to end, not killed")


@case
def an_interrupt_under_others():
    """mpiexec has become them."""
    with engines("hydra") as machine:
        process = start("--hosts", "node1", *PROGRAM, env=machine.environment(FAKE_SCRIPT=WAITS))
        with process:
            wait_until(lambda: machine.ready, "Hydra at work")
            equal(machine.pid, process.pid, "the process")
            process.terminate()
            process.communicate(timeout=20)
        equal(process.returncode, 1, "Hydra's own code")


# ---- programs ---------------------------------------------------------------------------------------

@case
def programs_of_handed_over_jobs():
    with engines("hydra") as machine:
        env = machine.environment(PATH=f"{machine.path}/bin:/usr/bin:/bin")
        local = f"{machine.path}/local"
        with open(local, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n")
        os.chmod(local, 0o755)
        for name, cwd, wanted in (("sleep", None, "sleep"), ("local", machine.path, "./local"),
                                  ("./local", machine.path, "./local"), (local, None, local)):
            machine.forget()
            done = subprocess.run([Paths.mpiexec, "--hosts", "node1", name, "1"], env=env, cwd=cwd, timeout=30,
                                  capture_output=True, text=True, check=False)
            equal((done.returncode, machine.words[-2:], done.stderr), (0, [wanted, "1"], ""), name)
        machine.forget()
        result = run("--hosts", "node1", "./not-here", env=env)
        equal((result.code, machine.words[-1:]), (0, ["./not-here"]), "it may be there", result)
        expect(re.search("there is no program ./not-here.*\n.*the others are asked", result.err), "a word of it", result)


@case
def recorded_programs_are_words_like_others():
    """headway record and its variables go through to the ranks."""
    with engines(*KINDS) as machine:
        for kind in KINDS:
            machine.forget()
            env = machine.environment(HEADWAY_ENGINE=kind, HEADWAY_RECORD="1", HEADWAY_RECORD_OUT="/d/run",
                                      LD_PRELOAD="", **AROUND[kind])
            result = run("--hosts", "node1", "headway", "record", "--out", "run", "./prog", env=env)
            equal((result.code, machine.kind), (0, kind), "executed", result)
            expect(stands_in(machine.words, ["headway", "record", "--out", "run", "./prog"]), "its words", result)
            equal(machine.variables["HEADWAY_RECORD_OUT"], "/d/run", f"its variables under {kind}", result)
            if kind == "prterun":
                for name in ("HEADWAY_RECORD", "HEADWAY_RECORD_OUT", "LD_PRELOAD"):
                    expect_words(machine.words, ["-x", name], "named for prterun, which passes on nothing else", result)
