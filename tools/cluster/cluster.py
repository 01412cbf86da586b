#!/usr/bin/env python3
"""headway cluster: a truthful simulated cluster on this machine (docs/cluster.md).

Needs Python's standard library and iproute2 alone; rich makes its tables prettier.
"""

import dataclasses
import json
import os
import sys
import time

import arguments
import check
import fabric
import launch
import machine
import tables
import watch
from plan import Plan, Refused


def up(options):
    plan = Plan.make(options.name, options.hosts, options.rate, options.hosts_per_switch,
                     options.uplink_rate, options.dilation)
    missing = fabric.what_is_missing()
    if missing:
        raise Refused(missing, 77)
    folder = machine.Folder(plan.name)
    began = time.monotonic()
    with machine.lock():
        for name in machine.sweep():
            print(f"cluster: removed what an unfinished cluster '{name}' had left",
                  file=sys.stderr)
        if folder.state():
            raise Refused(f"cluster '{plan.name}' is already up: cluster down first, or another"
                          " --name", 1)
        state = {"phase": "making", "boot": machine.boot_id(), "maker": os.getpid(),
                 "plan": plan.as_dict(), "congestion": options.congestion}
        os.mkdir(folder.path, 0o755)
        machine.sync_folder(machine.BASE)
        try:
            machine.save(folder.state_file, state)
            for name in machine.change_settings():
                print(f"cluster: {name} does not exist here; large exchanges may lose packets,"
                      " which each run would report", file=sys.stderr)
            fabric.build(plan, folder, options.congestion)
            machine.save(folder.state_file, dict(state, phase="up"))
        except BaseException:
            folder.remove()
            machine.put_back_if_last()
            raise
    print(f"cluster '{plan.name}' is up: {plan.sentence()} ({time.monotonic() - began:.1f} s)")
    return 0


def down(options):
    if os.geteuid() != 0:
        raise Refused("clusters are made and removed by root", 77)
    with machine.lock():
        found = [f for f in machine.folders() if options.all or f.name == options.name]
        for folder in found:
            ended = folder.remove()
            story = f", {ended} processes on its hosts ended" if ended else ""
            print(f"cluster '{folder.name}' is down{story}")
        if not found:
            print("no cluster is up" if options.all else f"no cluster '{options.name}' is up")
        for story in machine.put_back_if_last():
            print(f"cluster: left alone: {story}", file=sys.stderr)
    return 0


def status(options):
    rows = []
    for folder in machine.folders():
        state = folder.state() or {}
        current = state.get("boot") == machine.boot_id()
        phase = state.get("phase", "unfinished") if current else "ended by a reboot"
        plan = Plan(**state["plan"]) if "plan" in state else None
        rows.append((folder, phase, plan))
    if options.json:
        print(json.dumps([{"name": f.name, "phase": p, "plan": plan and plan.as_dict()}
                          for f, p, plan in rows], indent=1))
    elif not rows:
        print("no cluster is up")
    else:
        tables.show("clusters of this machine", ["name", "what", "phase"],
                    [[f.name, plan.sentence() if plan else "?", p] for f, p, plan in rows])
    return 0


def execute(options):
    folder = machine.Folder(options.name)
    plan = folder.plan()
    host = plan.host_name(plan.host_number(options.host))
    enter = launch.helper("cluster-enter")
    sys.stdout.flush()
    with machine.awake(plan, inherited=True):  # as long as the command lives
        os.execv(enter, [enter, "--name", folder.name, "--host", host, "--"] + options.command)


def run(options):
    folder = machine.Folder(options.name)
    plan = folder.plan()
    words, environment = launch.command(plan, folder, options.mpi, options.ranks,
                                        options.ranks_per_host, options.launcher,
                                        options.launcher_arg, options.program)
    with machine.awake(plan) as awake:
        code, verdict = watch.around(
            plan, folder, lambda: launch.run(words, environment, folder, plan, options.timeout),
            options.min_idle)
    if not options.quiet:
        print(f"cluster: {verdict.sentence()}", file=sys.stderr)
    if options.report:
        report = dict(verdict.as_dict(), awake=awake, cluster=dataclasses.asdict(plan),
                      mpi=options.mpi, ranks=options.ranks, command=words, exit_code=code)
        with open(options.report, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
    if options.strict and code == 0 and not verdict.valid:
        return 3
    return code


def run_check(options):
    folder = machine.Folder(options.name)
    plan = folder.plan()
    with machine.awake(plan):
        return 0 if check.run(plan, folder, options.quick, options.report) else 1


VERBS = {"up": up, "down": down, "status": status, "exec": execute, "run": run,
         "check": run_check}


def main():
    options = arguments.parse(sys.argv[1:])
    try:
        return VERBS[options.verb](options)
    except Refused as refusal:
        print(f"cluster: {refusal}", file=sys.stderr)
        return refusal.code
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
