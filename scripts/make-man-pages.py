#!/usr/bin/env python3
"""Makes the manual pages docs/man/*.in, docs/launcher-options.md and docs/engine-options.md from what the
commands print as help and from the table of options; --check only compares, and ends with 1 if a page is out of date.

The build puts version and suffix of the names into them (tools/man). They are kept in the tree so
that a cross build, which cannot run the commands, has them too."""
import argparse
import importlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import table_page

ROOT = table_page.ROOT
PAGES = ROOT / "docs" / "man"
SUFFIX = "@HEADWAY_SUFFIX@"
NOTICE = '.\\" Made by scripts/make-man-pages.py. Do not edit.\n'


def roff(text):
    """Plain text for troff: what it would take for itself is escaped."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def heading(name, section, title):
    return (f'{NOTICE}.TH {name.upper()}{SUFFIX} {section} "" "Headway MPI @PROJECT_VERSION@" '
            f'"{title}"\n')


def entry(term, argument, text):
    """One option: bold, its argument in italics."""
    line = f"\\fB{roff(term)}\\fR"
    if argument:
        line += f" \\fI{roff(argument)}\\fR"
    return f".TP\n{line}\n{roff(text)}\n"


def section(title, body):
    return f'.SH "{title}"\n{body}'


def plain(text):
    """A block whose lines stay as they are."""
    return f".nf\n{roff(text.rstrip())}\n.fi\n"


def output_of(*command):
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)
    return done.stdout


# ------------------------------------------------------------------------------------- mpiexec


def options_of_others(build):
    """What the options of other launchers mean: explanation -> names, in order of the alphabet."""
    found = {}
    for line in output_of(build / "bin" / "mpiexec", "--help-rows").splitlines():
        if line.startswith("other\t"):
            _, name, text = line.split("\t")
            found.setdefault(text, []).append(name)
    return {text: sorted(names, key=lambda name: (name.lower(), name))
            for text, names in sorted(found.items())}


def others_doc(build):
    """docs/launcher-options.md."""
    text = ["<!-- Made by scripts/make-man-pages.py. Do not edit. -->\n# Options of other launchers\n\n"
            "What `mpiexec` makes of the options that the MPI standard (5.0, section 11.5), MPICH's\n"
            "Hydra, Intel MPI and Open MPI's `mpirun` name; `mpiexec --help-others` prints the same.\n"
            "One dash or two, as you like. Our own options: `mpiexec --help`.\n"]
    for title, start in (("Done", "as "), ("Accepted", "accepted"), ("Not done, and what to use instead",
                                                                      "refused: ")):
        rows = "".join(f"| {', '.join(f'`-{name}`' for name in names)} | "
                       f"{told.removeprefix('refused: ').replace('|', chr(92) + '|')} |\n"
                       for told, names in options_of_others(build).items() if told.startswith(start))
        text.append(f"\n## {title}\n\n| option | |\n|---|---|\n{rows}")
    return "".join(text)


def engines_doc(build):
    """docs/engine-options.md."""
    rows = [line.split("\t")[1:] for line in output_of(build / "bin" / "mpiexec", "--help-rows").splitlines()
            if line.startswith("engine\t")]
    return ("<!-- Made by scripts/make-man-pages.py. Do not edit. -->\n# How engines are told\n\n"
            "What becomes of each option of `mpiexec` where the ranks are on other machines and an engine\n"
            "starts them ([several machines](launcher.md#several-machines)). Words in code marks stand in the\n"
            "engine's line; *refused*: `mpiexec` starts nothing, and names the option. `mpiexec --dry-run ...`\n"
            "prints the line.\n\n| mpiexec | srun | flux run | Hydra | prterun |\n|---|---|---|---|---|\n"
            + "".join(f"| {' | '.join([f'`{name}`' if name.startswith('-') else name, *cells])} |\n"
                      for name, *cells in rows))


def mpiexec_page(build):
    groups, rest = {}, []
    for line in output_of(build / "bin" / "mpiexec", "--help-rows").splitlines():
        if line.startswith("option\t"):
            _, group, names, kind, text = line.split("\t")
            # The check of a value stands behind its name, as in "N:INT in [1 - 1000000]".
            groups.setdefault(group, []).append(
                entry(names.replace(",", ", "), kind.split(":")[0], text))
        elif not line.startswith(("other\t", "engine\t")):
            rest.append(line)
    examples, _, ends = "\n".join(rest).partition("Exit code: ")
    examples, _, others = examples.partition("\n\n")
    body = [heading("mpiexec", 1, "User Commands"),
            section("NAME", f"mpiexec{SUFFIX}, mpirun{SUFFIX} \\- start the ranks of an MPI "
                            "job\n"),
            section("SYNOPSIS", f".B mpiexec{SUFFIX}\n[\\fIOPTIONS\\fR] \\fIPROGRAM\\fR "
                                "[\\fIARGUMENTS\\fR] [: [\\fIOPTIONS\\fR] \\fIPROGRAM\\fR "
                                "[\\fIARGUMENTS\\fR]]...\n"),
            section("DESCRIPTION", roff(
                "Starts a program as the ranks of one MPI job, serves them while they run, and ends "
                "them together: the first rank that fails ends the others, and one line says which "
                "it was and why.\n") + ".PP\n" + roff(others.strip()) + "\n"),
            section("OPTIONS", "")]
    for group, entries in groups.items():
        body.append(f'.SS "{"General" if group == "Options" else group}"\n' + "".join(entries))
    body.append('.SS "Options of other launchers and of the MPI standard"\n' + "".join(
        entry(", ".join("-" + name for name in names), "", text)
        for text, names in options_of_others(build).items()))
    body += [section("EXIT STATUS", roff(ends.strip()[:1].upper() + ends.strip()[1:]) + "\n"),
             section("ENVIRONMENT", entry(
                 "HEADWAY_*", "", "Options of the library, as --set gives them: see headway(7).")
                     + entry("HEADWAY_CORES_FILE", "", "The file in which jobs reserve cores; "
                             "/tmp/headway-mpiexec-cores, and names of sockets, if not set.")
                     + entry("HEADWAY_ENGINE", "srun|flux|hydra|prterun", "What starts ranks on other "
                             "machines. Not set: Slurm or Flux in their jobs, else Hydra, else prterun.")
                     + entry("HEADWAY_ENGINE_OPTIONS", "", "More words for its line, as a shell has them.")
                     + entry("MPIEXEC_TIMEOUT", "", "As --timeout, in seconds.")
                     + entry("NO_COLOR", "", "If set and not empty: no colour, as --color never.")
                     + entry("OMP_NUM_THREADS", "", "Set for ranks whose cores do not tell their "
                             "share, unless it is set already.")),
             section("EXAMPLES", plain(examples.removeprefix("Examples:\n"))),
             section("SEE ALSO", f".BR mpicc{SUFFIX} (1),\n.BR mpicxx{SUFFIX} (1),\n"
                                 ".BR headway (7)\n")]
    return "".join(body)


# ------------------------------------------------------------------------------ mpicc and mpicxx


def wrapper_page(build, name, others, language, header="mpi.h"):
    text = output_of(build / "bin" / name, "-showme:help")
    # The name of the compiler is that of this build, and of no interest.
    options, _, variables = text.partition("Variables:\n")
    _, _, options = options.partition("to the compiler:\n")

    def rows(block):
        made = []
        for line in filter(str.strip, block.splitlines()):
            found = re.fullmatch(r"  (\S.*?)(?: {2,}(\S.*))", line)
            if not found:
                raise SystemExit(f"{name}: the help has a line that is no option: {line!r}")
            made.append(entry(found[1], "", found[2]))
        return "".join(made)

    names = ", ".join(f"{n}{SUFFIX}" for n in (name, *others))
    return "".join([
        heading(name, 1, "User Commands"),
        section("NAME", f"{names} \\- compile and link MPI programs in {language}\n"),
        section("SYNOPSIS", f".B {name}{SUFFIX}\n[\\fIOPTION\\fR] [\\fIARGUMENTS OF THE "
                            "COMPILER\\fR]\n"),
        section("DESCRIPTION", roff(
            f"Calls the {language} compiler with the folders of {header} and of the library, and links "
            "the library. The library's folder is written into the program as RUNPATH, so that it "
            "is found when the program runs; LD_LIBRARY_PATH and mpiexec come before it. Folders are "
            "found from the place of this command, so an installation can be moved.\n")),
        section("OPTIONS", rows(options)),
        section("ENVIRONMENT", rows(variables)),
        section("SEE ALSO", f".BR mpiexec{SUFFIX} (1),\n.BR headway (7)\n")])


# --------------------------------------------------------------------------------------- cluster


def cluster_parser():
    folder = ROOT / "tools" / "cluster"
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    os.environ.update(CLUSTER_NAME=f"headway{SUFFIX} cluster", CLUSTER_VERSION="@PROJECT_VERSION@")
    spec = importlib.util.spec_from_file_location("arguments", folder / "arguments.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_parser()


def cluster_options(parser):
    made = []
    for action in parser._actions:  # pylint: disable=protected-access
        if isinstance(action, (argparse._SubParsersAction, argparse._HelpAction)):
            continue
        names = ", ".join(action.option_strings)
        value = ""
        if action.nargs != 0:
            value = str(action.metavar or (
                "|".join(action.choices) if action.choices else action.dest.upper()))
        text = action.help or {"json": "print as JSON", "--ranks": "number of ranks",
                               "command": "the command and its arguments"}.get(
            action.option_strings[-1] if action.dest == "ranks" else action.dest, "")
        made.append(entry(names, value, text) if names else entry(value, "", text))
    return "".join(made)


def cluster_page():
    parser = cluster_parser()
    name = parser.prog
    verbs = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {a.dest: a.help for a in verbs._choices_actions}
    body = [heading("headway-cluster", 1, "User Commands"),
            section("NAME", f"headway-cluster{SUFFIX} \\- simulated cluster on one machine\n"),
            section("SYNOPSIS", f".B {name}\n\\fIVERB\\fR [\\fIOPTIONS\\fR]\n"),
            section("DESCRIPTION", roff(
                "Makes hosts of network namespaces, joined by links of a true rate, and runs MPI "
                "programs of Headway, MPICH or Open MPI on them. Every run says whether it told the "
                "truth. Needs root and iproute2.\n")),
            section("VERBS", "")]
    for verb, sub in verbs.choices.items():
        body.append(f'.SS "{verb}: {helps[verb]}"\n' + cluster_options(sub))
        if sub.epilog:
            body.append(".PP\n" + roff(sub.epilog) + "\n")
    body += [section("OPTIONS", cluster_options(parser) + entry("-h, --help", "", "show the help")),
             section("EXIT STATUS", "That of the program that was run; 77 where no cluster can be "
                                    "made, and a line says why.\n"),
             section("SEE ALSO", f".BR mpiexec{SUFFIX} (1)\n")]
    return "".join(body)


# ---------------------------------------------------------------------------------------- headway


def tools_page():
    """headway(1): what `headway` alone prints."""
    sys.path.insert(0, str(ROOT / "tools" / "headway"))
    from headway import commands  # pylint: disable=import-outside-toplevel
    rows = "".join(entry(name.replace("headway", f"headway{SUFFIX}", 1), "", text)
                   for name, text in (*commands.LINES, commands.LAST))
    return "".join([
        heading("headway", 1, "User Commands"),
        section("NAME", f"headway{SUFFIX} \\- tools beside the MPI library Headway\n"),
        section("SYNOPSIS", f".B headway{SUFFIX}\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"),
        section("COMMANDS", rows),
        section("ENVIRONMENT", entry(
            "HEADWAY_PYTHON", "", "The Python to use. Without it: the project's own, where that exists, else python3.")),
        section("EXIT STATUS", "2 for a line that is wrong; else see the pages of the commands.\n"),
        section("SEE ALSO", f".BR headway\\-record{SUFFIX} (1),\n.BR headway\\-trace{SUFFIX} (1),\n.BR headway\\-advise{SUFFIX} (1),\n.BR headway\\-compare{SUFFIX} (1),\n.BR headway\\-where{SUFFIX} (1),\n.BR headway\\-study{SUFFIX} (1),\n.BR headway\\-cluster{SUFFIX} (1),\n.BR mpiexec{SUFFIX} (1),\n.BR headway (7)\n")])


def typer_options(one):
    made = []
    for p in one.params:
        names = ", ".join([*p.opts, *p.secondary_opts]) if p.param_type_name == "option" else p.metavar
        value = "" if p.param_type_name != "option" or p.is_flag else p.metavar or p.type.name.upper()
        made.append(entry(names, value, getattr(p, "help", None) or ""))
    return "".join(made)


def record_page(build):
    """headway-record(1)."""
    rows = [line.split("\t") for line in output_of(build / "bin" / "headway", "record", "--help-rows").splitlines()]
    return "".join([
        heading("headway-record", 1, "User Commands"),
        section("NAME", f"headway-record{SUFFIX} \\- record what a program calls of MPI\n"),
        section("SYNOPSIS", f"\\fILAUNCHER\\fR \\fB\\-n\\fR \\fIN\\fR \\fBheadway{SUFFIX} record\\fR "
                            "[\\fIOPTIONS\\fR] \\fIPROGRAM\\fR [\\fIARGUMENTS\\fR]\n"),
        section("DESCRIPTION", roff(
            "Stands before the program and behind any MPI's launcher. The program runs as it would without, and its "
            "calls of MPI are written into a folder, headway-run-1 and so on, which is never overwritten. Nothing is "
            "sent for that. Works with this library, MPICH and Intel MPI under either ABI, and Open MPI; for others than "
            "the standard ABI a layer is compiled once with that MPI's mpicc and kept. MPI_Pcontrol(0) and (1) turn "
            "recording off and on. Then: headway trace.\n")),
        section("OPTIONS", "".join(entry(name.replace(",", ", "), argument, text) for name, argument, text in rows)),
        section("EXIT STATUS", "That of the program; 2 for a line that is wrong, 4 for a program that cannot be "
                               "recorded, 126 or 127 for one that cannot be started.\n"),
        section("SEE ALSO", f".BR headway{SUFFIX} (1),\n.BR headway\\-trace{SUFFIX} (1),\n.BR headway\\-advise{SUFFIX} (1)\n")])


def where_page():
    """headway-where(1)."""
    sys.path.insert(0, str(ROOT / "tools" / "headway"))
    from headway import where  # pylint: disable=import-outside-toplevel
    parser = where.make_parser()
    return "".join([
        heading("headway-where", 1, "User Commands"),
        section("NAME", f"headway-where{SUFFIX} \\- where a running job stands, and who waits for whom\n"),
        section("SYNOPSIS", f".B headway{SUFFIX} where\n[\\fIOPTIONS\\fR] [\\fIJOB\\fR | \\fIRUN\\fR]\n"),
        section("DESCRIPTION", roff(
            f"{parser.description} Two looks are taken, half a second apart. A deadlock is proven, or called likely, or not "
            "said: a job that waits for something slow is not accused.\n")),
        section("OPTIONS", cluster_options(parser) + entry("-h, --help", "", "show the help")),
        section("EXIT STATUS", "0 if something could be told, whether the job hangs or not; 2 for a line that is wrong or a job "
                               "that is not there, 4 for a folder with nothing to look at.\n"),
        section("SEE ALSO", f".BR headway{SUFFIX} (1),\n.BR headway\\-record{SUFFIX} (1),\n.BR mpiexec{SUFFIX} (1)\n")])


def of_recordings(name, module, what, synopsis, codes, others):
    """headway-NAME(1) of a command on recordings, or None where its packages are missing: the page stays as it is."""
    sys.path.insert(0, str(ROOT / "tools" / "headway"))
    try:
        import typer  # pylint: disable=import-outside-toplevel
        app = importlib.import_module(f"headway.record.{module}").app
    except ImportError:
        return None
    top = typer.main.get_command(app)
    first, _, rest = top.help.strip().partition("\n\n")
    return "".join([
        heading(f"headway-{name}", 1, "User Commands"),
        section("NAME", f"headway-{name}{SUFFIX} \\- {what}\n"),
        section("SYNOPSIS", "\n.br\n".join(f".B headway{SUFFIX} {name}\n[\\fIOPTIONS\\fR] {one}" for one in synopsis) + "\n"),
        section("DESCRIPTION", roff(" ".join(first.split()) + "\n\n" + " ".join(rest.split()) + "\n")),
        section("OPTIONS", typer_options(top)),
        section("EXIT STATUS", codes + "\n"),
        section("SEE ALSO", ",\n".join([f".BR headway{SUFFIX} (1)", *(f".BR headway\\-{other}{SUFFIX} (1)" for other in others)]) + "\n")])


def pages_of_recordings():
    could_not = "if something could not be {}, 2 for a line that is wrong,"
    return {
        "headway-trace.1": of_recordings(
            "trace", "command", "what a recorded program did", ["[\\fIRUN\\fR]"],
            f"1 {could_not.format('written')} 4 if nothing was recorded.", ("record", "advise", "compare", "where")),
        "headway-advise.1": of_recordings(
            "advise", "advise_command", "what to change in a program that waits",
            ["[\\fIRUN\\fR | \\-\\- \\fILAUNCHER\\fR ...]", "[\\fIRUN\\fR] \\fB\\-\\-try\\fR \\fIN\\fR \\-\\- \\fILAUNCHER\\fR ..."],
            f"1 {could_not.format('read, or advice not be tried')} 4 if nothing was recorded.", ("record", "trace", "compare")),
        "headway-compare.1": of_recordings(
            "compare", "compare_command", "what differs between recorded runs of a program",
            ["[\\fIA B\\fR]", "\\fIA1 A2\\fR ... \\fB\\-\\-\\fR \\fIB1 B2\\fR ..."],
            f"1 {could_not.format('read')} 3 if a condition of \\-\\-fail\\-if holds, 4 if nothing was recorded.",
            ("record", "trace", "advise")),
    }


def study_page():
    """headway-study(1), or None where the packages of studies are missing: the page stays as it is."""
    sys.path.insert(0, str(ROOT / "tools" / "headway"))
    try:
        import typer  # pylint: disable=import-outside-toplevel
        from headway.study import command  # pylint: disable=import-outside-toplevel
    except ImportError:
        return None
    top = typer.main.get_command(command.app)
    options = typer_options
    body = [heading("headway-study", 1, "User Commands"),
            section("NAME", f"headway-study{SUFFIX} \\- what overlaps and what blocks in any MPI\n"),
            section("SYNOPSIS", f".B headway{SUFFIX} study\n[\\fIOPTIONS\\fR]\n"),
            section("DESCRIPTION", roff(
                "Measures all MPIs that are found, or those named, in shared memory and between two simulated hosts; "
                "says in words what overlaps, what makes progress and which calls wait for the other side, and what "
                "to change in a program. Every result is kept at once: Ctrl-C loses nothing.\n")),
            section("OPTIONS", options(top)), section("COMMANDS", "")]
    for name, one in top.commands.items():
        first, _, rest = one.help.strip().partition("\n\n")
        body.append(f'.SS "{name}: {" ".join(first.split())}"\n' + roff(" ".join(rest.split()) + "\n" * bool(rest)) + options(one))
    body += [section("EXIT STATUS", "1 if nothing could be measured or written, 2 for a line that is wrong, 130 after "
                                    "Ctrl\\-C.\n"),
             section("SEE ALSO", f".BR headway{SUFFIX} (1),\n.BR headway\\-cluster{SUFFIX} (1)\n")]
    return "".join(body)


def library_page(options_doc, cxx):
    kinds = options_doc.KINDS
    body = [heading("headway", 7, "Miscellaneous"),
            section("NAME", "headway \\- options of the MPI library Headway\n"),
            section("DESCRIPTION", roff(
                "Nothing has to be set. Each option is a variable of the environment, HEADWAY_ and "
                "its name, or can be given to one job: mpiexec --set NAME=VALUE. A value that does "
                "not fit is refused with a message, and the default stays. A switch is on or off; a "
                "size is in bytes and may end in K, M or G; a time may end in us, ms or s.\n"))]
    last = None
    for row in json.loads(table_page.printed(options_doc.PROGRAM, cxx)):
        if row["section"] != last:
            last = row["section"]
            body.append(section(last.upper(), ""))
        kind = row["choices"] if row["kind"] == "choice" else kinds[row["kind"]]
        text = f"{row['help']}. Default: {row['default'] or 'empty'}."
        body.append(entry("HEADWAY_" + row["name"], kind, text[:1].upper() + text[1:]))
    body.append(section("SEE ALSO", f".BR mpiexec{SUFFIX} (1)\n"))
    return "".join(body)


def load_options_doc():
    spec = importlib.util.spec_from_file_location(
        "make_options_doc", pathlib.Path(__file__).with_name("make-options-doc.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build folder")
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--cxx", default=os.environ.get("CXX", "c++"), help="compiler to use")
    options = parser.parse_args()
    pages = {
        "mpiexec.1": mpiexec_page(options.build),
        "mpicc.1": wrapper_page(options.build, "mpicc", [], "C"),
        "mpicxx.1": wrapper_page(options.build, "mpicxx", ["mpic++"], "C++"),
        "mpifort.1": wrapper_page(options.build, "mpifort", ["mpif90", "mpif77"], "Fortran",
                                  "mpif.h and the modules"),
        "headway.1": tools_page(),
        "headway-record.1": record_page(options.build),
        "headway-where.1": where_page(),
        **pages_of_recordings(),
        "headway-study.1": study_page(),
        "headway-cluster.1": cluster_page(),
        "headway.7": library_page(load_options_doc(), options.cxx),
    }
    files = {PAGES / f"{name}.in": text for name, text in pages.items() if text is not None}
    files[ROOT / "docs" / "launcher-options.md"] = others_doc(options.build)
    files[ROOT / "docs" / "engine-options.md"] = engines_doc(options.build)
    stale = []
    for file, text in files.items():
        if file.exists() and file.read_text() == text:
            continue
        stale.append(str(file.relative_to(ROOT)))
        if not options.check:
            PAGES.mkdir(exist_ok=True)
            file.write_text(text)
    if options.check and stale:
        print(f"out of date: {', '.join(stale)}: run scripts/make-man-pages.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
