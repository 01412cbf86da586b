"""Output in whole lines, files, stdin, terminals."""

import os
import subprocess
import time

from harness import (PYTHON, Skipped, Terminal, case, environment, equal, expect, folder, pids_in,
                     python, read_file, run, write_pid)

# Writes numbered lines of many lengths, in pieces that end anywhere.
FLOOD = """
import random
rank = int(os.environ['PMI_RANK'])
random.seed(rank)
text = ''.join(f'{rank} {i} ' + chr(97 + rank) * random.choice((0, 1, 30, 300, 5000)) + ' end\\n'
               for i in range(2000)).encode()
while text:
    size = random.choice((1, 7, 4095, 4096, 4097, 60000))
    size = os.write(1, text[:size])
    text = text[size:]
"""


def check_flood(lines, ranks):
    seen = [0] * ranks
    for line in lines:
        words = line.split(" ")
        expect(len(words) == 4 and words[3] == "end", f"a whole line: {line[:100]!r}")
        rank = int(words[0])
        equal(int(words[1]), seen[rank], f"order of rank {rank}")
        expect(set(words[2]) <= {chr(97 + rank)}, f"no mixture: {line[:100]!r}")
        seen[rank] += 1
    equal(seen, [2000] * ranks, "lines of each rank")


@case
def lines_stay_whole_in_a_flood():
    result = run("-n", "6", *python(FLOOD), limit=60)
    equal(result.code, 0, "exit code", result)
    check_flood(result.out.splitlines(), 6)


@case
def tagged_lines():
    result = run("-n", "6", "-l", *python(FLOOD), limit=60)
    equal(result.code, 0, "exit code", result)
    lines = result.out.splitlines()
    for line in lines:
        expect(line[:4] == f"[{line[4:5]}] ", f"tag and rank: {line[:40]!r}")
    check_flood([line[4:] for line in lines], 6)
    result = run("-n", "12", "--tag-output", "sh", "-c", "echo out; echo err >&2")
    equal(sorted(result.out.splitlines()), sorted(f"[{r:2}] out" for r in range(12)), "stdout")
    equal(sorted(result.err.splitlines()), sorted(f"[{r:2}] err" for r in range(12)), "stderr")


@case
def slow_reader():
    """A reader that takes its time: nothing is lost, and mpiexec holds only so much."""
    job = subprocess.Popen(
        ["sh", "-c", 'exec "$0" "$@"', *command("-n", "3", *python(FLOOD))],
        stdout=subprocess.PIPE, text=True)
    text = ""
    time.sleep(0.5)
    while piece := job.stdout.read(100_000):
        text += piece
        time.sleep(0.002)
    equal(job.wait(30), 0, "exit code")
    job.stdout.close()
    check_flood(text.splitlines(), 3)


def command(*words):
    from harness import Paths
    return [Paths.mpiexec, *words]


@case
def last_line_without_newline():
    result = run("-n", "3", "printf", "no newline")
    equal(sorted(result.out.split("\n")), ["no newline"] * 3, "one line each", result)
    expect(not result.out.endswith("\n"), "nothing is added at the end", result)
    result = run("-n", "2", "printf", "a\\n\\nb")
    equal(sorted(result.out.split("\n")), sorted(["a", "", "b"] * 2), "empty lines", result)


@case
def bytes_pass_unchanged():
    result = run("-n", "2", *python("os.write(1, bytes(range(256)))"), text=False)
    equal(result.code, 0, "exit code")
    equal(sorted(result.out.replace(bytes([10]), b"")),
          sorted(bytes(b for b in range(256) if b != 10) * 2), "all bytes arrive")


@case
def reader_leaves():
    result = run("-c", f'{" ".join(command("-n", "2", "yes"))} | head -n 3; '
                 'echo "${PIPESTATUS[0]}"', launcher="/bin/bash")
    equal(result.out, "y\ny\ny\n141\n", "end as of any program", result)
    equal(result.err, "", "no noise", result)


@case
def output_left_by_children():
    """A daemon that a rank leaves behind with its stdout does not hold the job."""
    result = run("-n", "2", "sh", "-c", "(sleep 20 & echo $! >&2); echo done")
    equal((result.code, result.out), (0, "done\ndone\n"), "output", result)
    expect(result.seconds < 5, "the end", result)
    for pid in result.err.split():
        os.kill(int(pid), 9)  # a good end leaves it alone; the test does not


@case
def output_folder():
    with folder() as path:
        target = os.path.join(path, "logs")
        result = run("--output-dir", target, "-n", "11", *python(
            "print('out', os.environ['PMI_RANK'])\nprint('err', file=sys.stderr)"))
        equal((result.code, result.out, result.err), (0, "", ""), "nothing else", result)
        equal(sorted(os.listdir(target)),
              sorted(f"rank.{r:02}.{s}" for r in range(11) for s in ("out", "err")), "files")
        equal(read_file(target + "/rank.07.out"), "out 7\n", "stdout of rank 7")
        equal(read_file(target + "/rank.07.err"), "err\n", "stderr of rank 7")
        result = run("--output-dir", target + "/rank.00.out/x", "-n", "2", "true")
        expect(result.code not in (0, 124) and "cannot make the folder" in result.err,
               "a folder that cannot be", result)


@case
def full_disk_is_told():
    if os.geteuid() != 0:
        raise Skipped("mounting a small file system needs root")
    with folder() as path:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", path],
                                 stderr=subprocess.PIPE, text=True, check=False)
        if mounted.returncode != 0:
            raise Skipped(f"cannot mount a small file system: {mounted.stderr.strip()}")
        try:
            result = run("--output-dir", path, "-n", "2", *python(
                "for i in range(100000): print(i)\nprint('complete', file=sys.stderr)"))
        finally:
            subprocess.run(["umount", path], check=True)
        expect(result.code == 1, "not a success", result)
        expect("No space left on device" in result.err and "the job goes on" in result.err,
               "the first loss", result)
        expect("is not complete:" in result.err and "bytes could not be written" in result.err,
               "the whole loss", result)
        expect(len(result.own_lines) <= 5, "few lines", result)


@case
def full_stdout_is_told():
    with open("/dev/full", "w", encoding="ascii") as full:
        result = run("-n", "2", "echo", "hello", stdout=full)
    equal(result.code, 1, "exit code", result)
    expect("cannot write stdout: No space left on device" in result.err, "the sentence", result)


READ = "print(os.environ['PMI_RANK'], repr(sys.stdin.read()))"


@case
def stdin_goes_to_one_rank():
    for words, wanted in (((), ["0 'some\\ntext\\n'", "1 ''", "2 ''"]),
                          (("--stdin", "0"), ["0 'some\\ntext\\n'", "1 ''", "2 ''"]),
                          (("--stdin", "2"), ["0 ''", "1 ''", "2 'some\\ntext\\n'"]),
                          (("--stdin", "none"), ["0 ''", "1 ''", "2 ''"])):
        result = run("-n", "3", *words, *python(READ), stdin="some\ntext\n")
        equal((result.code, sorted(result.out.splitlines())), (0, wanted), f"{words}", result)
    big = "".join(f"line {i}\n" for i in range(200_000))
    result = run("-n", "2", *python("n = sum(map(len, sys.stdin))\nprint(n)"), stdin=big, limit=60)
    equal(sorted(result.out.split()), ["0", str(len(big))], "much input", result)
    result = run("-n", "2", "true", stdin=big)  # a rank that does not read
    equal(result.code, 0, "exit code", result)


@case
def a_shell_loop_keeps_its_input():
    """`while read x; do mpiexec ...; done` goes through all lines."""
    result = run("-c", 'while read x; do "$0" -n 2 true; echo $x; done', command()[0],
                 launcher="/bin/sh", stdin="1\n2\n3\n")
    equal(result.out, "1\n2\n3\n", "three rounds", result)


@case
def a_terminal_for_a_terminal():
    code = python("print('tty', *map(os.isatty, (0, 1, 2)), os.get_terminal_size(1).columns == 93)")
    with Terminal("-n", "2", *code) as terminal:
        equal(terminal.end(), 0, f"exit code, after {terminal.text!r}")
        equal(terminal.text.count("tty False True True True"), 2, f"ranks: {terminal.text!r}")
        expect("\r\r" not in terminal.text, f"newlines are not doubled: {terminal.text!r}")
    with Terminal("-n", "1", *code) as terminal:
        equal(terminal.end(), 0, f"exit code, after {terminal.text!r}")
        expect("tty True True True" in terminal.text, f"one rank has ours: {terminal.text!r}")
    result = run("-n", "2", *python("print(os.isatty(1), os.isatty(2))"))
    equal(result.out, "False False\n" * 2, "no terminal where we have none", result)


@case
def stderr_stays_apart():
    """At a terminal too each stream has its own, and a file gets its own alone."""
    both = python("print('to stdout'); print('to stderr', file=sys.stderr)")
    for more in ((), ("-l",)):
        result = run(*more, "-n", "2", *both)
        equal((result.out.count("to stdout"), result.out.count("to stderr")), (2, 0), "stdout", result)
        equal((result.err.count("to stdout"), result.err.count("to stderr")), (0, 2), "stderr", result)
    result = run("--merge-stderr", "-n", "2", *both)
    equal((result.out.count("to stderr"), result.err), (2, ""), "merged when asked for", result)
    with folder() as path:
        script = os.path.join(path, "both")
        with open(script, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho to stdout; echo to stderr >&2\n")
        os.chmod(script, 0o755)
        # A shell at the terminal, as a job of one rank, sends one stream of another job to a file.
        shell = f"exec {command()[0]} -n 2 {script} 2> {path}/err"
        with Terminal("-n", "1", "sh", "-c", shell) as terminal:
            equal(terminal.end(), 0, f"exit code, after {terminal.text!r}")
        equal(terminal.text.count("to stdout"), 2, f"the terminal: {terminal.text!r}")
        expect("to stderr" not in terminal.text, f"nothing else there: {terminal.text!r}")
        equal(read_file(path + "/err"), "to stderr\n" * 2, "the file")


COLOR = "\x1b["


@case
def colour_only_where_it_is_wanted():
    words = ("-l", "-n", "2", "sh", "-c", "exit 3")
    for variables, more, coloured in (
        (dict(TERM="xterm"), (), True),
        (dict(TERM="xterm", NO_COLOR="1"), (), False),
        (dict(TERM="xterm", NO_COLOR=""), (), True),  # as no-color.org says
        (dict(TERM="dumb"), (), False),
        (dict(TERM=None), (), False),
        (dict(TERM="xterm"), ("--color", "never"), False),
        (dict(TERM="xterm", NO_COLOR="1"), ("--color=always",), True),
    ):
        env = environment(**{"NO_COLOR": None, **variables})
        with Terminal(*more, *words, env=env) as terminal:
            equal(terminal.end(), 3, f"exit code, after {terminal.text!r}")
        equal(COLOR in terminal.text, coloured, f"{variables} {more}: {terminal.text!r}")
        expect("ended with code 3" in terminal.text, f"the sentence: {terminal.text!r}")
    xterm = environment(TERM="xterm", NO_COLOR=None)
    result = run(*words, env=xterm)
    expect(COLOR not in result.err + result.out, "a pipe gets none", result)
    result = run("--color", "always", "-l", "-n", "2", "echo", "x", env=xterm)
    expect(result.out.count(COLOR) == 4, "unless it is asked for", result)
    with folder() as path:
        run("--color", "always", "--output-dir", path, "-l", "-n", "1", "echo", "x", env=xterm)
        equal(read_file(path + "/rank.0.out"), "[0] x\n", "a file never")
    result = run("--color", "sometimes", "true")
    equal(result.code, 2, "exit code", result)


@case
def no_stdin_at_a_terminal():
    """What is typed stays for whoever comes after the job."""
    code = python("print('read', repr(sys.stdin.read()))")
    for ranks in ("1", "2"):
        with Terminal("--stdin", "none", "-n", ranks, *code) as terminal:
            equal(terminal.end(), 0, f"exit code, after {terminal.text!r}")
            equal(terminal.text.count("read ''"), int(ranks), f"ends at once: {terminal.text!r}")


@case
def printf_is_not_held_back():
    with Terminal("-n", "2", PYTHON, "-c", "import time; print('early'); time.sleep(1000)") as t:
        t.expect("early", 10)
        t.type("\x03")
        equal(t.end(5), 130, f"Ctrl-C, after {t.text!r}")


@case
def prompt_and_answer():
    code = python("if os.environ['PMI_RANK'] == '0': print('got', input('size? '))\n")
    with Terminal("-n", "2", *code) as terminal:
        terminal.expect("size? ", 10)
        terminal.type("42\n")
        terminal.expect("got 42", 10)
        equal(terminal.end(), 0, f"exit code, after {terminal.text!r}")
    with Terminal("-n", "2", *python("print(len(sys.stdin.read()))")) as terminal:
        terminal.type("abc\n\x04")
        equal(terminal.end(), 0, f"end of input, after {terminal.text!r}")
        expect("4\r\n" in terminal.text, f"all input: {terminal.text!r}")


@case
def interrupt_at_a_terminal():
    with folder() as path:
        code = python("signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + write_pid(path)
                      + "time.sleep(1000)")
        with Terminal("-n", "2", *code) as terminal:
            pids_in(path, 2)
            terminal.type("\x03")
            terminal.expect("a second Ctrl-C kills them", 5)
            terminal.type("\x03")
            equal(terminal.end(2), 130, f"exit code, after {terminal.text!r}")


@case
def a_debugger_keeps_its_interrupts():
    """One rank at a terminal decides alone what Ctrl-C means, as often as it is typed."""
    code = python("""
def count(*_):
    global seen
    seen += 1
seen = 0
signal.signal(signal.SIGINT, count)
print('ready', flush=True)
for wanted in (1, 2, 3):
    while seen < wanted: time.sleep(0.01)
    print('interrupt', seen, flush=True)
print('said', input('(prompt) '))
""")
    with Terminal("-n", "1", *code) as terminal:
        terminal.expect("ready", 10)
        for wanted in (1, 2, 3):
            terminal.type("\x03")
            terminal.expect(f"interrupt {wanted}", 10)
        terminal.expect("(prompt) ", 10)
        terminal.type("quit\n")
        equal(terminal.end(), 0, f"exit code, after {terminal.text!r}")
        expect("said quit" in terminal.text, f"the answer: {terminal.text!r}")


@case
def background_job_survives():
    """At a terminal, but not in its foreground: no stop, although stdin is the terminal."""
    script = 'set -m; "$0" -n 2 sh -c "sleep 0.5; echo fin" & wait $!; echo code $?'
    with Terminal() as unused:
        unused.end()
    import pty
    pid, fd = pty.fork()
    if pid == 0:
        os.execv("/bin/bash", ["bash", "-c", script, command()[0]])
    text = b""
    deadline = time.monotonic() + 15
    while b"code " not in text and time.monotonic() < deadline:
        try:
            text += os.read(fd, 4096)
        except OSError:
            break
    os.waitpid(pid, 0)
    os.close(fd)
    equal(text.splitlines().count(b"fin"), 2, f"both ranks: {text!r}")
    expect(b"code 0" in text, f"exit code: {text!r}")
