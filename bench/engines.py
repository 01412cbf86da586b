#!/usr/bin/env python3
"""engines.py [--build DIR] ENGINE: what mpiexec adds to the start of a job that it hands over, among the machines of
tests/engines/four_hosts.sh. Each job (MPI_Init, an allreduce, MPI_Finalize) is started by the engine's own line, as
--dry-run prints it, and by mpiexec, in turn; medians of whole commands in seconds.

  tests/engines/four_hosts.sh agent bench/engines.py hydra
  tests/engines/four_hosts.sh agent bench/engines.py prterun
  tests/engines/four_hosts.sh slurm salloc -Q -N4 --ntasks-per-node=16 bench/engines.py srun

engines.py here: 8 to 512 ranks on this machine by our own mpiexec, with the private memory of a rank (kB, dirty pages) and
the questions that a launcher of PMI-1 gets (tests/places/plain_launcher.py), 64 ranks a machine."""

import argparse
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("HEADWAY_CACHE") or pathlib.Path.home() / ".cache" / "headway")
PEERS = {"hydra": "mpich", "prterun": "openmpi"}
HOSTS = ("--hosts", "h0,h1,h2,h3")


def seconds(words, env):
    begun = time.monotonic()
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0 or "ok" not in done.stdout:
        sys.exit(f"{shlex.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return time.monotonic() - begun


def start(build, engine, rounds):
    env = {**os.environ, "HEADWAY_ENGINE": engine}
    if engine in PEERS:
        env["PATH"] += f":{CACHE / PEERS[engine] / 'bin'}"
    mpiexec, spread = str(build / "bin" / "mpiexec"), str(build / "tests" / "engines" / "spread")
    hosts = () if engine == "srun" else HOSTS
    for ranks in (8, 64):
        ours = [mpiexec, *hosts, "-n", str(ranks), spread]
        line = subprocess.run([mpiexec, "--dry-run", *ours[1:]], env=env, capture_output=True, text=True, check=True).stdout
        own = shlex.split(line)
        own = own if own[0] == "env" else ["env", *own]
        times = [(seconds(own, env), seconds(["env", *ours], env)) for _ in range(rounds)]
        alone, with_us = (statistics.median(column) for column in zip(*times))
        added = statistics.median(b - a for a, b in times)
        print(f"{engine:8} {ranks:3} ranks  its own line {alone:.3f} s  mpiexec {with_us:.3f} s  added {added:+.3f} s", flush=True)


def private_kb(pids):
    sizes = []
    for pid in pids:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        sizes.append(sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_Dirty")))
    return sizes


def ranks_of(name, count):
    """The processes of that program, once all are there and asleep in MPI."""
    for _ in range(600):
        pids = [p.name for p in pathlib.Path("/proc").iterdir()
                if p.name.isdigit() and (p / "comm").exists() and (p / "comm").read_text().strip() == name]
        if len(pids) == count:
            time.sleep(2)
            return pids
        time.sleep(0.1)
    sys.exit(f"{count} ranks do not come")


def here(build, rounds):
    env = {**os.environ}
    mpiexec, spread = str(build / "bin" / "mpiexec"), str(build / "tests" / "engines" / "spread")
    for ranks in (8, 64, 128, 256, 512):
        taken = statistics.median(seconds([mpiexec, "-n", str(ranks), spread], env) for _ in range(rounds))
        with subprocess.Popen([mpiexec, "-n", str(ranks), spread, "wait"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as job:
            sizes = private_kb(ranks_of("spread", ranks))
            job.terminate()
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, str(ROOT / "tests" / "places" / "plain_launcher.py"), "--map",
                     f"(vector,(0,{max(ranks // 64, 1)},{min(ranks, 64)}))", "--count", f"{folder}/count", "-n", str(ranks), spread]
            seconds(words, {**env, "LD_LIBRARY_PATH": str(build / "lib")})
            told = dict(line.split() for line in pathlib.Path(folder, "count").read_text(encoding="ascii").splitlines())
        print(f"{ranks:3} ranks  start to end {taken:.2f} s  memory a rank {statistics.median(sizes):.0f} kB (most {max(sizes)})  "
              f"gets {told['get']}, asked at most {2 * ranks + ranks * ranks // 64}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("engine", choices=("srun", "hydra", "prterun", "here"))
    options = parser.parse_args()
    if options.engine == "here":
        here(options.build, min(options.rounds, 3))
    else:
        start(options.build, options.engine, options.rounds)


main()
