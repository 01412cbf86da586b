"""Arguments of the command line: names, defaults and help, nothing else."""

import argparse
import os

from launch import MPIS
from watch import MIN_IDLE


def add_name(parser):
    parser.add_argument("--name", default="default", help="which cluster (default: 'default')")


def add_up(verbs):
    up = verbs.add_parser("up", help="make a cluster")
    add_name(up)
    up.add_argument("--hosts", type=int, required=True, metavar="N", help="number of hosts")
    up.add_argument("--rate", required=True, metavar="RATE",
                    help="of each host's link: 100mbit, 1gbit, 12.5mbit")
    up.add_argument("--hosts-per-switch", type=int, metavar="K",
                    help="several switches of K hosts, joined by uplinks (default: one switch)")
    up.add_argument("--uplink-rate", metavar="RATE", help="of each uplink (default: --rate)")
    up.add_argument("--dilation", type=float, default=1.0, metavar="D",
                    help="slow the whole cluster D times, where this machine would saturate; below 1:"
                         " faster, where a run would take too long (0.05 to 1000)")
    up.add_argument("--congestion", default="reno", metavar="NAME",
                    help="TCP congestion control in the hosts (default: reno)")


def add_run(verbs):
    run = verbs.add_parser(
        "run", help="run an MPI program on the hosts",
        epilog="The last line on stderr says whether the run was true. Exit code: the launcher's;"
               " with --strict, 3 if the run was not.")
    add_name(run)
    run.add_argument("-n", "--ranks", type=int, required=True, metavar="RANKS")
    run.add_argument("--ranks-per-host", type=int, metavar="R",
                     help="fill a host with R ranks before the next (default: as few as fit)")
    run.add_argument("--mpi", choices=MPIS, default="headway", help="whose launcher")
    run.add_argument("--launcher", metavar="PATH", help="that MPI's mpiexec, if not the usual one")
    run.add_argument("--launcher-arg", action="append", default=[], metavar="ARG",
                     help="passed to the launcher as it is; may be repeated")
    run.add_argument("--report", metavar="FILE", help="counters and verdict as JSON")
    run.add_argument("--timeout", type=float, default=3600.0, metavar="S", help="end it after S s")
    run.add_argument("--min-idle", type=float, default=MIN_IDLE, metavar="SHARE",
                     help="idle share of the processors below which a run whose processes waited"
                          " for a processor is invalid (default: 1/3)")
    run.add_argument("--strict", action="store_true", help="exit code 3 if the run was not true")
    run.add_argument("--quiet", action="store_true", help="no verdict line")
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ARGS")


def add_others(verbs):
    execute = verbs.add_parser("exec", help="run a command on one host")
    add_name(execute)
    execute.add_argument("host", help="h3, 3 or its address")
    execute.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    down = verbs.add_parser("down", help="remove a cluster and put back the machine's settings")
    add_name(down)
    down.add_argument("--all", action="store_true", help="every cluster on this machine")
    status = verbs.add_parser("status", help="which clusters there are")
    status.add_argument("--json", action="store_true")
    check = verbs.add_parser(
        "check", help="show that messages take the time the wire would",
        epilog="Exit code 1 when the cluster is not true, 77 where none can be made.")
    add_name(check)
    check.add_argument("--quick", action="store_true", help="fewer sizes and repeats")
    check.add_argument("--report", metavar="FILE", help="all times as JSON")


def make_parser():
    name = os.environ.get("CLUSTER_NAME", "headway cluster")  # as the command in front of us is called
    parser = argparse.ArgumentParser(
        prog=name, description="A truthful simulated cluster on this machine:"
        " docs/cluster.md. Exit code 77: not possible here, and why.")
    parser.add_argument("--version", action="version", version=f"{name} (Headway MPI) "
                        + os.environ.get("CLUSTER_VERSION", "of the source tree"),
                        help="show the version")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    add_up(verbs)
    add_run(verbs)
    add_others(verbs)
    return parser


def parse(words):
    parser = make_parser()
    arguments = parser.parse_args(words)
    for rest in ("program", "command"):
        words = getattr(arguments, rest, None)
        if words is not None:
            if words[:1] == ["--"]:
                words.pop(0)
            if not words:
                parser.error(f"{arguments.verb}: no {rest} given")
    return arguments
