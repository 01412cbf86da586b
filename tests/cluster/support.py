"""What the cluster's tests share: the command, the state of the machine, a main that skips."""

import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CLUSTER_BUILD", os.path.join(ROOT, "build"))
HEADWAY = os.path.join(BUILD, "bin", "headway")
CLUSTER = [HEADWAY, "cluster"]
sys.path[:0] = [os.path.join(ROOT, "tools", "cluster"), os.path.join(ROOT, "tests")]
os.environ["CLUSTER_BIN"] = os.path.join(BUILD, "bin")

import fabric  # noqa: E402
import machine  # noqa: E402

NAME = f"test{os.getpid()}"


def cluster(*words, name=NAME, check=True, timeout=120, **more):
    """Runs one verb on this test's own cluster."""
    words = [words[0], "--name", name, *map(str, words[1:])] if name else list(map(str, words))
    done = subprocess.run([*CLUSTER, *words], capture_output=True, text=True, timeout=timeout,
                          check=False, **more)
    if check and done.returncode != 0:
        raise AssertionError(f"cluster {' '.join(words)}: exit code {done.returncode}\n"
                             f"{done.stdout}{done.stderr}")
    return done


def output_of(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout


def machine_state():
    """Everything outside that a cluster could touch."""
    settings = {}
    for folder, _, files in os.walk("/proc/sys/net"):
        for file in files:
            name = os.path.relpath(os.path.join(folder, file), "/proc/sys")
            # The kernel changes these by itself.
            if not any(word in name for word in ("flush", "nf_conntrack_count", "secret")):
                settings[name] = machine.read_setting(name)
    with open("/proc/self/mounts", encoding="utf-8") as file:
        mounts = [line for line in file if NAME in line]
    return {"settings": settings, "links": output_of("ip", "-o", "link", "show"),
            "shapers": output_of("tc", "qdisc", "show"), "mounts": mounts,
            "folder": os.path.exists(f"{machine.BASE}/{NAME}")}


class ClusterTest(unittest.TestCase):
    """Compares the machine before and after each test, and leaves no cluster behind. Clusters of
    other people may come and go meanwhile: the settings follow the last of them."""

    maxDiff = 4000

    def setUp(self):
        with machine.lock():
            self.before = machine_state()
            saved = machine.load(machine.saved_file())
        # What the machine has without any cluster.
        self.original = dict(self.before["settings"])
        if saved and saved["boot"] == machine.boot_id():
            self.original.update(saved["before"])

    def tearDown(self):
        cluster("down")
        self.same_as_before()

    def same_as_before(self):
        with machine.lock():
            after = machine_state()
            others = machine.folders()
        expected = dict(self.original)
        if others:
            expected.update({name: value for name, value in machine.SETTINGS.items()
                             if self.original.get(name) is not None})
        for part in ("links", "shapers", "mounts", "folder"):
            self.assertEqual(self.before[part], after[part], part)
        changed = {name: (value, after["settings"].get(name))
                   for name, value in expected.items() if value != after["settings"].get(name)}
        self.assertEqual({}, changed, f"settings that were not put back, with {others} up")
        self.assertEqual(set(self.before["settings"]), set(after["settings"]))


def main():
    """Runs this file's tests; exit code 77 and a sentence where no cluster can be made."""
    missing = fabric.what_is_missing()
    if missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    if not os.access(HEADWAY, os.X_OK):
        print(f"there is no {HEADWAY}: build first")
        sys.exit(1)
    unittest.main(verbosity=2)
