"""Options of other launchers and of the MPI standard: each is done, accepted, or refused by name."""

import glob
import os
import re
import resource
import subprocess

from harness import (Skipped, cache, case, environment, equal, expect, folder, python, read_file,
                     run)

SHOW = "print(os.environ['PMI_RANK'], sorted(n for n in os.environ if n.startswith('T_')), " \
       "os.getcwd(), *sys.argv[1:])"
# The MPI standard 5.0, section 11.5.
STANDARD = "n soft host arch wdir path file configfile initial-errhandler memory-alloc-kinds".split()
# Of Intel MPI, which is not installed here, and of older releases.
INTEL = """gwdir gpath genv genvall genvnone genvlist env envall envnone envlist hostfile f machinefile
machine hosts hosts-group ppn perhost grr rr print-rank-map prepend-rank l prepend-pattern
outfile-pattern errfile-pattern ordered-output s gtool gtoolfile trace check_mpi tune ilp64 noconf
silent-abort usize bootstrap bootstrap-exec bootstrap-exec-args branch-count iface demux rmk localhost
enable-x disable-x order-nodes nolocal binding umask tmpdir cleanup info version verbose V v gdb tv
aps mps delegate prefork use-app-topology configfile path host wdir np profile""".split()
OLDER = """oversubscribe allow-run-as-root mca x merge-stderr-to-stdout output-filename tag-output
timestamp-output report-bindings map-by bind-to rank-by slot-list display-map xterm debug tv cf
loadbalance npernode max-restarts maxtime exitinfo stream-buffering with-ft display-comm am
""".split()


def of_mpich():
    root = cache("mpich")
    said = subprocess.run([f"{root}/bin/mpiexec", "--help"], env=environment(), capture_output=True,
                          text=True, timeout=30, check=False).stdout
    names = [name for line in said.splitlines() if line.startswith("    -")
             for name in re.findall(r"(?:^    |/)-([A-Za-z][\w-]*)", line)]
    expect(len(names) > 30, "names in MPICH's help")
    said = subprocess.run([f"{root}/bin/mpiexec.gforker", "--help"], env=environment(), text=True,
                          timeout=30, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    return names + re.findall(r" -([a-z][\w-]*)", said)


def of_open_mpi():
    """All topics of its help: what `mpirun --help NAME` reads."""
    files = glob.glob(cache("openmpi") + "/share/prte/help-prterun.txt")
    if not files:
        raise Skipped("Open MPI's help is not there")
    with open(files[0], encoding="utf-8") as file:
        text = file.read()
    topics = re.findall(r"^\[([\w-]+)\]", text, re.M)
    # Chapters of the help, no options.
    chapters = ("usage", "version", "stream", "test-suicide", "placement", "multiple-default")
    names = [name for name in topics if not name.startswith(chapters)]
    expect(len(names) > 60, "topics of Open MPI's help")
    return names


@case
def every_option_of_the_peers_is_known():
    names = set(STANDARD + INTEL + OLDER)
    missing = []
    for source in (of_mpich, of_open_mpi):
        try:
            names |= set(source())
        except Skipped as reason:
            missing.append(str(reason))
    unknown = []
    for name in sorted(names):
        result = run("-" + name)  # without a program: nothing is started
        if "unknown option" in result.err:
            unknown.append(name)
        elif "is not done here" in result.err:
            equal(result.code, 2, f"exit code of the refusal of {name}", result)
            expect(re.search(r"-\S+ is not done here: \S+ \S+ \S+", result.err),
                   f"what to use instead of {name}", result)
    equal(unknown, [], "unknown options of the peers")
    listed = run("--help-others")
    equal(listed.code, 0, "--help-others", listed)
    rows = set(re.findall(r"^  (\S+) +\S", listed.out, re.M))
    equal(sorted(names - rows), [], "names that --help-others lacks")
    if missing and len(missing) == 2:
        raise Skipped("; ".join(missing))


@case
def options_from_a_file():
    with folder() as path:
        file = path + "/job"
        program = path + "/show"
        with open(program, "w", encoding="ascii") as script:
            script.write('#!/bin/sh\necho $PMI_RANK $WHO "$@"\n')
        os.chmod(program, 0o755)
        with open(file, "w", encoding="ascii") as text:
            text.write(f"# two programs, and one more\n\n-n 1 -env WHO a {program} 'one word' \\\n"
                       f"   x\n  # nothing\n-n 1 -env WHO b {program} \"y\\\"z\" : -n 1 {program}\n")
        wanted = ["[0] 0 a one word x", '[1] 1 b y"z', "[2] 2"]
        for option in ("-configfile", "--configfile", "--app"):
            result = run("-l", option, file)
            equal((result.code, sorted(result.out.splitlines())), (0, wanted), option, result)
        result = run("-n", "1", program, "first", ":", "-configfile", file)
        equal(len(result.out.splitlines()), 4, "a file as one of the parts", result)
        for words, text in ((("-configfile", path + "/none"), "No such file"),
                            (("-configfile", path), "Is a directory"),
                            (("-configfile", file, "true"), "nothing can follow"),
                            (("-configfile", "/dev/null"), "no line with a program")):
            result = run(*words)
            equal(result.code, 2, f"exit code of {words}", result)
            expect(text in result.err, f"{text!r} for {words}", result)
        for line, text in (("-n 2 'true", "a quote is not closed in line 1"),
                           (f"-configfile {file}", "cannot name another")):
            with open(path + "/bad", "w", encoding="ascii") as bad:
                bad.write(line + "\n")
            result = run("-configfile", path + "/bad")
            equal(result.code, 2, f"exit code of {line}", result)
            expect(text in result.err, f"{text!r} for {line}", result)


@case
def soft_numbers_of_ranks():
    for words, ranks in ((("-n", "7", "-soft", "2"), 2), (("-n", "7", "-soft", "1:9:3"), 7),
                         (("-n", "6", "-soft", "1:9:3"), 4), (("-soft", "1,3:5"), 5),
                         (("-n", "4", "-soft", "9:0:-2"), 3), (("-n", "2", "-soft", "2:4,1"), 2)):
        result = run(*words, "echo", "rank")
        equal((result.code, len(result.out.splitlines())), (0, ranks), f"{words}", result)
    for words in (("-n", "2", "-soft", "3:9"), ("-soft", "a"), ("-soft", "1:2:0"), ("-soft", "")):
        result = run(*words, "true")
        equal(result.code, 2, f"{words}", result)
        expect("soft" in result.err, f"the sentence for {words}", result)


@case
def places_of_programs():
    with folder() as path:
        os.mkdir(path + "/bin")
        with open(path + "/bin/only-there", "w", encoding="ascii") as file:
            file.write("#!/bin/sh\npwd\n")
        os.chmod(path + "/bin/only-there", 0o755)
        real = os.path.realpath(path)
        for option in ("-path", "-gpath"):
            result = run(option, f"/nowhere:{path}/bin", "-gwdir", path, "-n", "2", "only-there")
            equal((result.code, result.out), (0, f"{real}\n" * 2), option, result)
        result = run("-gwdir", path, "-n", "1", "-wdir", "/usr", "pwd", ":", "-n", "1", "pwd")
        equal(sorted(result.out.split()), sorted(["/usr", real]), "-wdir is stronger", result)
        result = run("-path", path, "only-there")
        equal(result.code, 127, "a program that is in none of the folders", result)
        expect(f"neither in {path}, on the PATH" in result.err, "where it was looked for", result)
    for option in ("-gwdir", "-wdir"):
        result = run(option, "/nowhere", "-n", "2", "true")
        equal(result.code, 127, "a folder that is not there", result)
        expect("its folder, /nowhere: No such file" in result.err, "which one", result)
    machine = os.uname().machine
    equal(run("-arch", machine, "true").code, 0, "this machine's kind")
    result = run("-arch", "vax", "true")
    equal(result.code, 2, "another kind", result)
    expect(machine in result.err, "what this machine is", result)


@case
def lists_of_variables():
    env = environment(T_A="1", T_B="2", T_C="3")
    show = python(SHOW)
    for words, names in (((), "T_A T_B T_C"), (("-genvlist", "T_A,T_C"), "T_A T_C"),
                         (("-envlist", "T_B"), "T_B"), (("-genvnone",), ""), (("-envnone",), ""),
                         (("-genvnone", "-genv", "T_X", "1"), "T_X"),
                         (("-genvlist", "T_A", "-envlist", "T_B"), "T_B"),
                         (("-genvnone", "-x", "T_*"), "T_A T_B T_C"),
                         (("-genvnone", "--set-env", "T_Y=2"), "T_Y")):
        result = run(*words, *show, env=env)
        equal((result.code, str(names.split())),
              (0, re.sub(r"^\d+ (\[.*\]).*\n", r"\1", result.out)), f"{words}", result)


@case
def output_by_patterns():
    both = python("print('out', os.environ['PMI_RANK'])\nprint('err', file=sys.stderr)")
    with folder() as path:
        result = run("-n", "2", "-outfile-pattern", path + "/o.%r.%h", "-errfile-pattern", path + "/e",
                     *both)
        equal((result.code, result.out, result.err), (0, "", ""), "nothing else", result)
        equal({name[:3] for name in os.listdir(path)}, {"e", "o.0", "o.1"}, "files")
        equal(read_file(path + "/e"), "err\nerr\n", "one file of two ranks")
        for rank in range(2):
            equal(read_file(glob.glob(f"{path}/o.{rank}.*")[0]), f"out {rank}\n", "a file a rank")
        result = run("-n", "1", "-outfile-pattern", path + "/one%%", *both)
        equal((result.out, result.err, read_file(path + "/one%")), ("", "err\n", "out 0\n"),
              "one rank, stdout only", result)
        result = run("-n", "2", "--output", f"TAG,FILE={path}/f", *both)
        equal(sorted(read_file(path + "/f.1").splitlines()), ["[1] err", "[1] out 1"], "both streams")
        result = run("-n", "2", "-outfile-pattern", path + "/none/x", *both)
        expect(result.code != 0 and "cannot write" in result.err, "a file that cannot be", result)
    result = run("-n", "2", "-prepend-pattern", "<%r@%h> ", *both)
    expect(all(re.fullmatch(r"<[01]@[^>]+> out [01]", line) for line in result.out.splitlines())
           and result.out.count("\n") == 2, "tags by a pattern", result)
    for words in (("--timestamp-output",), ("--output", "timestamp,merge")):
        result = run("-n", "2", *words, *both)
        expect(re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} out 1$", result.out, re.M),
               f"{words}", result)
    equal(result.err, "", "merged", result)


@case
def few_descriptors_are_told():
    """The limit and what to do about it, never a number of ranks that makes no sense."""
    def limit(number):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))
    equal(run("-n", "1", "true", before=limit(26)).code, 0, "enough for one rank")
    equal(run("-n", "4", "true", before=limit(40)).code, 0, "enough for four ranks")
    for number, ranks in ((12, 2), (20, 1), (26, 4), (70, 400)):
        result = run("-n", str(ranks), "true", before=limit(number))
        equal(result.code, 1, f"{number} descriptors", result)
        equal(len(result.own_lines), 1, "one sentence", result)
        for text in (f"limit is {number} (ulimit -Hn)", "raise it", "nofile"):
            expect(text in result.err, f"{text!r} with {number} descriptors", result)
        expect("at most 0" not in result.err, "no start of 0 ranks", result)
        found = re.search(r"start at most (\d+) rank", result.err)
        if number == 70:
            expect(found, f"a number with {number} descriptors", result)
        if found:
            again = run("-n", found[1], "true", before=limit(number))
            equal(again.code, 0, f"{found[1]} ranks with {number} descriptors", again)
