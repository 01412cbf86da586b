"""Command line, environment, library options, programs that cannot be started."""

import json
import os
import re
import subprocess

from harness import (PYTHON, Paths, Skipped, cache, case, environment, equal, expect, folder, python,
                     run)

SHOW = "import json\nprint(json.dumps(dict(os.environ)))"


def environments(result):
    equal(result.code, 0, "exit code", result)
    return [json.loads(line) for line in result.out.splitlines()]


@case
def help_and_version():
    for word in ("--help", "-h", "-help"):
        result = run(word)
        equal(result.code, 0, word, result)
        for option in ("--np", "--timeout", "--bind-to", "--output-dir", "--set", "Examples"):
            expect(option in result.out, f"{option} in the help", result)
    for word in ("--version", "-V"):
        result = run(word)
        equal(result.code, 0, word, result)
        expect(result.out.startswith("mpiexec (Headway MPI) "), "the version", result)


@case
def info_shows_the_options():
    result = run("--set", "SPIN=7us", "--info", env=environment(HEADWAY_EAGER_MAX_TCP="32K"))
    equal(result.code, 0, "--info", result)
    for text in ("PROGRESS", "SPIN             7us  (--set; default 50us)",
                 "32K  (environment; default 16K)", "cores", "library", "UNEXPECTED_MAX   512M"):
        expect(text in result.out, f"{text!r} in the info", result)


@case
def info_of_an_ordinary_user_is_short():
    """What such a user's pages cannot do takes a sentence: it is said once, in lines that fit."""
    if os.geteuid() != 0:
        raise Skipped("becoming another user needs root")

    def become():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    with folder() as path:
        os.chmod(path, 0o755)
        copy = os.path.join(path, "mpiexec")
        subprocess.run(["cp", Paths.mpiexec, copy], check=True)
        for words in ((), ("--set", "GUARD=trap"), ("--set", "GUARD=minor"), ("--set", "GUARD=none")):
            result = run(*words, "--info", launcher=copy, before=become)
            equal(result.code, 0, "--info", result)
            lines = result.out.split("closing pages")[1].split("\n\n")[0].splitlines()
            told = [line.split()[0] for line in lines[1:] if line[2] != " "]
            equal(told, ["missing", "minor", "trap", "chosen"], "the ways and the chosen one", result)
            sentences = [line for line in lines if line.startswith("      ")]
            equal(len(sentences), len(set(sentences)), "every sentence once", result)
            expect(result.out.count("are trapped before") <= 1, "that sentence once", result)
            expect(max(map(len, lines)) <= 90, "lines that fit", result)


@case
def no_program():
    for words in ((), ("-n", "2"), ("-n", "2", "true", ":"), ("--timeout", "3")):
        result = run(*words)
        equal(result.code, 2, f"exit code of {words}", result)
        equal(len(result.own_lines), 1, "lines", result)
        expect("no program given" in result.err, "the sentence", result)


@case
def program_that_cannot_start():
    with folder() as path:
        plain = os.path.join(path, "plain")
        with open(plain, "w", encoding="ascii") as file:
            file.write("just text\n")
        for program, code, text in (
            ("no-such-program-anywhere", 127, "no program no-such-program-anywhere"),
            ("./no-such-file", 127, "no program ./no-such-file"),
            (plain, 126, "not executable (chmod +x"),
            (path, 126, "is a folder"),
        ):
            result = run("-n", "2", program)
            equal(result.code, code, f"exit code of {program}", result)
            expect(text in result.err, f"{text!r} in the sentence", result)
            equal(len(result.err.splitlines()), 1, "lines", result)
        os.chmod(plain, 0o755)
        result = run("-n", "2", plain)
        equal(result.code, 126, "a script without a first line", result)
        expect("#!/bin/sh" in result.err, "the remedy", result)


@case
def mistakes_on_the_line():
    for words, text in (
        (("--timeuot", "3", "true"), "did you mean --timeout?"),
        (("-n", "zero", "true"), "zero"),
        (("-n", "0", "true"), "np"),
        (("-n", "-3", "true"), "np"),
        (("-n",), "-n needs a value"),
        (("--bind-to", "cheese", "true"), "core and none"),
        (("-x", "NOT_SET_ANYWHERE", "true"), "no such variable"),
        (("--env", "=3", "true"), "NAME=VALUE"),
        (("--stdin", "7", "-n", "2", "true"), "ranks 0 to 1"),
        (("--timeout", "-1", "true"), "timeout"),
        (("--set", "PROGRES=on", "true"), "did you mean PROGRESS?"),
        (("--set", "EAGER_MAX=1K", "true"), "EAGER_MAX_SHM"),
        (("--set", "PROGRESS=maybe", "true"), "on or off"),
        (("--set", "SPIN=fast", "true"), "50us"),
        (("--set", "SPIN", "true"), "NAME=VALUE"),
    ):
        result = run(*words)
        equal(result.code, 2, f"exit code of {words}", result)
        expect(text in result.err, f"{text!r} in the sentence for {words}", result)
        equal(len(result.err.splitlines()), 1, f"lines for {words}", result)


@case
def options_of_other_launchers():
    hydra = ("-launcher ssh -iface lo -ppn 2 -genvall -rmk user -bind-to core -map-by socket "
             "-print-all-exitcodes -disable-hostname-propagation -prepend-rank -np 2").split()
    open_mpi = ("--oversubscribe --allow-run-as-root --map-by slot:PE=1 --mca btl self,tcp "
                "--mca pml ob1 --bind-to none --use-hwthread-cpus --rank-by core "
                "--report-bindings --tag-output -c 2").split()
    for words in (hydra, open_mpi):
        result = run(*words, "echo", "hello")
        equal(result.code, 0, f"{words}", result)
        equal(sorted(result.out.splitlines()), ["[0] hello", "[1] hello"], "output", result)


@case
def environment_in_all_forms():
    result = run("-genv", "A", "1", "-genv", "B=2", "--env", "C=3", "-env", "D", "4", "-x", "E=5",
                 "-x", "F", "--genv", "G=a=b c", "--unset", "H", "-env", "I", "",
                 "-n", "2", *python(SHOW), env=environment(F="6", H="7"))
    found = environments(result)
    equal(len(found), 2, "ranks", result)
    for variables in found:
        for name, value in dict(A="1", B="2", C="3", D="4", E="5", F="6", G="a=b c", I="").items():
            equal(variables.get(name), value, f"variable {name}")
        expect("H" not in variables, "H is gone")
        equal(variables["PMI_SIZE"], "2", "PMI_SIZE")
    equal(sorted(v["PMI_RANK"] for v in found), ["0", "1"], "ranks")


@case
def library_options_become_variables():
    result = run("--set", "progress=off", "--set", "HEADWAY_EAGER_MAX_TCP=32K", *python(SHOW))
    variables = environments(result)[0]
    equal(variables["HEADWAY_PROGRESS"], "off", "PROGRESS")
    equal(variables["HEADWAY_EAGER_MAX_TCP"], "32K", "EAGER_MAX_TCP")


@case
def several_programs():
    code = python("import pmi_rank\np = pmi_rank.Pmi()\np.init()\n"
                  "a = p.ask('cmd=get_appnum')['appnum']\np.barrier()\np.finalize()\n"
                  "print(pmi_rank.RANK, a, os.environ.get('WHO'), os.getcwd(), *sys.argv[1:])")
    result = run("-n", "1", "-env", "WHO", "a", *code, "x", ":", "-n", "2", "-env", "WHO", "b",
                 "-wdir", "/usr", *code, "y", "z")
    equal(result.code, 0, "exit code", result)
    equal(sorted(result.out.splitlines()),
          [f"0 0 a {os.getcwd()} x", "1 1 b /usr y z", "2 1 b /usr y z"], "output", result)


@case
def working_directory():
    with folder() as path:
        program = os.path.join(path, "here")
        with open(program, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\npwd\n")
        os.chmod(program, 0o755)
        for name in ("./here", "here"):  # seen from the folder of the ranks
            result = run("--wdir", path, "-n", "2", name)
            equal(result.code, 0, "exit code", result)
            equal(result.out.splitlines(), [os.path.realpath(path)] * 2, "folders", result)
        result = run("--wdir", path + "/none", "-n", "2", "true")
        equal(result.code, 127, "a folder that is not there", result)
        expect("enter its folder" in result.err, "the sentence", result)


@case
def library_comes_first():
    """Ours is found before the program's own folders; the program's RPATH is reported."""
    library = os.path.realpath(os.path.join(os.path.dirname(os.path.dirname(
        run.__globals__["Paths"].mpiexec)), "lib"))
    if not os.path.exists(os.path.join(library, "libmpi_abi.so.1")):
        raise Skipped(f"there is no library in {library}")
    result = run(*python(SHOW), env=environment(LD_LIBRARY_PATH="/elsewhere"))
    equal(environments(result)[0]["LD_LIBRARY_PATH"], f"{library}:/elsewhere", "search path")
    result = run("--library", "program", *python(SHOW), env=environment(LD_LIBRARY_PATH=None))
    expect("LD_LIBRARY_PATH" not in environments(result)[0], "untouched with --library program")
    with open(os.path.join(library, "libmpi_abi.so.1"), "rb") as file:
        if re.search(rb"__[at]san_init", file.read()):
            raise Skipped("a sanitizer's runtime must come first: foreign programs cannot load it")
    mpich = cache("mpich")
    with folder() as path:
        source = os.path.join(path, "a.c")
        with open(source, "w", encoding="ascii") as file:
            file.write("#include <stdio.h>\n#include <mpi.h>\nint main(void) { char v["
                       "MPI_MAX_LIBRARY_VERSION_STRING]; int n; return MPI_Get_library_version(v, "
                       "&n) || puts(v) < 0; }\n")
        # The wrapper only compiles: it would add a RUNPATH of its own at the end of a link line.
        build = run("-c", "-o", path + "/a.o", source, launcher=f"{mpich}/bin/mpicc_abi")
        equal(build.code, 0, "mpicc_abi", build)
        for tags, ours in (("--enable-new-dtags", True), ("--disable-new-dtags", False)):
            program = os.path.join(path, tags)
            build = run("-o", program, path + "/a.o", f"-Wl,{tags}", f"-Wl,-rpath,{mpich}/lib",
                        f"-L{mpich}/lib", "-l:libmpi_abi.so.1", launcher="/usr/bin/cc")
            equal(build.code, 0, "the linker", build)
            result = run(program)
            equal("RPATH" in result.err, not ours, f"the warning with {tags}", result)
            equal("Headway" in result.out, ours, f"the library with {tags}", result)
            quiet = run("--library", "program", program)
            expect("MPICH" in quiet.out and not quiet.err, "the program's own library", quiet)


@case
def program_of_open_mpi():
    open_mpi = cache("openmpi")
    with folder() as path:
        source, program = os.path.join(path, "a.c"), os.path.join(path, "a")
        with open(source, "w", encoding="ascii") as file:
            file.write("#include <mpi.h>\nint main(void) { int f; return MPI_Initialized(&f); }\n")
        build = run("-o", program, source, launcher=f"{open_mpi}/bin/mpicc")
        equal(build.code, 0, "mpicc", build)
        result = run("-n", "2", program)
        expect("built for Open MPI" in result.err, "the warning", result)


@case
def python_without_tricks():
    """The interpreter that the other cases rely on does start under mpiexec."""
    result = run("-n", "3", PYTHON, "-c", "print('x' * 5)")
    equal((result.code, result.out), (0, "xxxxx\n" * 3), "output", result)
