"""What is typed while a job runs: it is the job's if a rank asks for it, and else the shell's."""

import contextlib
import os
import shlex
import signal

from harness import (PYTHON, Paths, Skipped, Terminal, alive, case, environment, equal, expect,
                     folder, python, read_file, wait_until)

PROMPT = "<ready>"


@contextlib.contextmanager
def shell():
    """A shell at a terminal, as a user has it, and an empty folder."""
    if not os.path.exists("/proc/self/syscall"):
        raise Skipped("this system does not tell in which call a process waits")
    env = environment(PS1=PROMPT, PS2="", HISTFILE=None, ENV=None, TERM="dumb", INPUTRC="/dev/null")
    with folder() as path, Terminal("--norc", "--noprofile", "--noediting", "-i", env=env,
                                    launcher="/bin/bash") as terminal:
        terminal.expect(PROMPT)
        yield terminal, path
        terminal.type("exit\n")
        terminal.end()


def start(terminal, path, *words, ranks=2):
    """Gives the shell a job of some ranks, and waits until they are at work."""
    words = [Paths.mpiexec, "-n", ranks, "sh", "-c", f'echo > {path}/begun.$PMI_RANK; exec "$0" "$@"',
             *words]
    terminal.type(shlex.join(map(str, words)) + "\n")
    wait_until(lambda: all(os.path.exists(f"{path}/begun.{rank}") for rank in range(ranks)),
               "the ranks at work")


@case
def typed_ahead_is_the_shells():
    """A job that reads nothing takes nothing, as it would be without mpiexec."""
    waits = python("while not os.path.exists(sys.argv[1]): time.sleep(0.01)")
    for ranks in (1, 2, 3):
        with shell() as (terminal, path):
            start(terminal, path, *waits, path + "/go", ranks=ranks)
            terminal.type("echo on''e\necho tw''o\n")
            terminal.pump(0.5)  # time to take it
            with open(path + "/go", "w", encoding="ascii"):
                pass
            terminal.expect("one\r\n")
            terminal.expect("two\r\n")


# Ways to wait for input, each of one line, which is then read to its end.
LINE = "print('got', os.read(FD, 100).decode().strip(), flush=True)\n"
WAYS = {
    "read": "FD = 0\n",
    "another descriptor": "FD = os.dup(0); os.close(0)\n",
    "poll": "import select\nFD = 0\np = select.poll(); p.register(0, select.POLLIN); p.poll()\n",
    "select": "import select\nFD = 0\nselect.select([0], [], [])\n",
    "epoll": "import select\nFD = 0\np = select.epoll(); p.register(0, select.EPOLLIN); p.poll()\n",
    "never waiting": "FD = 0\nos.set_blocking(0, False)\nimport select\n"
                     "while not select.select([0], [], [], 0)[0]: pass\n",
    "a thread": "import threading, select\nFD = 0\n"
                "t = threading.Thread(target=lambda: select.select([0], [], []))\nt.start()\n"
                "t.join()\n",
    "a child": "FD = 0\nif os.fork():\n    os.wait()\n    os._exit(0)\n",
    "an orphan": "FD = 0\nif os.fork():\n    while not os.path.exists(sys.argv[1]): "
                 "time.sleep(0.01)\n    os._exit(0)\nif os.fork(): os._exit(0)\n",
    "stopped between": "import select\nFD = 0\nme = os.getpid()\nif os.fork() == 0:\n"
                       "    time.sleep(0.2); os.kill(me, signal.SIGSTOP); time.sleep(0.2)\n"
                       "    os.kill(me, signal.SIGCONT); os._exit(0)\n"
                       "os.wait()\np = select.poll(); p.register(0, select.POLLIN); p.poll()\n",
}


@case
def asked_for_is_the_ranks():
    """Rank 0 gets the line that it waits for, in whatever way, and the next one is the shell's."""
    for way, code in WAYS.items():
        with shell() as (terminal, path):
            done = f"open({path!r} + '/done', 'w').close()\n"
            other = "if os.environ['PMI_RANK'] != '0':\n    os._exit(0)\n"
            start(terminal, path, *python(other + code + LINE + done), path + "/done")
            terminal.type("first\n")
            terminal.expect("got first\r\n", 20)
            if way == "never waiting":
                # It may be given more than it takes: what comes behind the job is the shell's.
                terminal.expect("got first\r\n" + PROMPT, 20)
            else:
                terminal.type("echo sec''ond\n")
                terminal.expect("second\r\n", 20)
            equal(terminal.text.count("got first"), 1, f"once, with {way}")


@case
def typed_while_the_rank_ends():
    """mpiexec finds the line together with the end of the rank that would have got it."""
    code = python("with open(sys.argv[1] + '/' + os.environ['PMI_RANK'], 'w') as f:\n"
                  "    print(os.getpid(), os.getppid(), file=f, flush=True)\n"
                  "while not os.path.exists(sys.argv[1] + '/end' + os.environ['PMI_RANK']): "
                  "time.sleep(0.01)")
    with folder() as path, Terminal("-c", '"$0" "$@"; read -r line; echo "left: $line"',
                                    Paths.mpiexec, "-n", "2", *code, path,
                                    launcher="/bin/sh") as terminal:
        wait_until(lambda: all(read_file(f"{path}/{rank}").endswith("\n")
                               for rank in range(2) if os.path.exists(f"{path}/{rank}"))
                   and len(os.listdir(path)) == 2, "the ranks at work")
        rank, launcher = map(int, read_file(path + "/0").split())
        os.kill(launcher, signal.SIGSTOP)
        with open(path + "/end0", "w", encoding="ascii"):
            pass
        wait_until(lambda: not alive(rank), "the end of rank 0")
        terminal.type("words\n")
        terminal.pump(0.2)
        os.kill(launcher, signal.SIGCONT)
        with open(path + "/end1", "w", encoding="ascii"):
            pass
        terminal.expect("left: words\r\n", 20)
        equal(terminal.end(), 0, f"exit code, after {terminal.text!r}")


@case
def a_rank_that_only_looks_can_be_named():
    """Nobody sees a rank that looks without waiting; --stdin says that input is for it."""
    code = python("import select\nwhile not select.select([0], [], [], 0)[0]: pass\n"
                  "print('got', input())\n")
    with Terminal("-n", "2", "--stdin", "0", "sh", "-c",
                  '[ "$PMI_RANK" = 0 ] && exec "$0" "$@" || true', *code) as terminal:
        terminal.type("words\n")
        terminal.expect("got words", 20)
        equal(terminal.end(), 0, f"exit code, after {terminal.text!r}")


@case
def much_is_typed_at_once():
    """Lines that come faster than the rank reads arrive all, in order, and so does the end."""
    code = python("if os.environ['PMI_RANK'] == '0':\n"
                  "    lines = sys.stdin.read().split()\n"
                  "    print(len(lines), lines == [f'line{i}' for i in range(len(lines))])\n")
    with Terminal("-n", "2", *code) as terminal:
        for i in range(400):
            terminal.type(f"line{i}\n")
            terminal.pump(0)
        terminal.type("\x04")
        terminal.expect("400 True", 20)
        equal(terminal.end(), 0, f"exit code, after {terminal.text[-300:]!r}")


@case
def where_nothing_is_told_input_arrives():
    """A rank that hides what it does gets its input all the same."""
    if os.geteuid() != 0:
        raise Skipped("becoming another user needs root")
    code = ("import os\nif os.environ['PMI_RANK'] == '0':\n    os.setuid(65534)\n"
            "    print('got', input())\n")
    with Terminal("-n", "2", PYTHON, "-S", "-c", code) as terminal:
        terminal.type("words\n")
        terminal.expect("got words", 20)
        equal(terminal.end(), 0, f"exit code, after {terminal.text!r}")
    expect("Traceback" not in terminal.text, f"no fault: {terminal.text!r}")
