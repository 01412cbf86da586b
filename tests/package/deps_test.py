#!/usr/bin/env python3
"""scripts/install-deps.sh asks before it uses sudo: with a sudo, an apt-get and a dpkg-query that
only write down what was wanted of them."""

import os
import pty
import select
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "install-deps.sh")

FAKES = {
    "dpkg-query": "echo 'installed gcc'",  # everything else is missing
    "id": "echo ${FAKE_UID:-1000}",
    "sudo": 'echo "sudo $*" >>"$FAKE_LOG"\n[ "$1" = -n ] && shift\nexec "$@"',
    "apt-get": 'echo "apt-get $*" >>"$FAKE_LOG"',
}


class Deps(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        for name, text in FAKES.items():
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\n{text}\n")
            os.chmod(path, 0o755)
        self.log = os.path.join(self.folder, "log")
        self.environment = {"PATH": f"{self.folder}:{os.environ['PATH']}", "FAKE_LOG": self.log,
                            "HOME": self.folder, "TERM": "dumb"}

    def calls(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log, encoding="ascii") as file:
            return file.read()

    def run_script(self, **more):
        return subprocess.run([SCRIPT], env={**self.environment, **more}, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=30, check=False)

    def run_at_terminal(self, answer):
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(SCRIPT, [SCRIPT], self.environment)
        text, typed, deadline = "", False, time.monotonic() + 30
        while time.monotonic() < deadline:
            if not select.select([fd], [], [], 0.1)[0]:
                continue
            try:
                got = os.read(fd, 4096)
            except OSError:
                break
            if not got:
                break
            text += got.decode()
            if "[Y/n]" in text and not typed:
                os.write(fd, answer.encode() + b"\n")
                typed = True
        os.close(fd)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.assertTrue(typed, f"no question in {text!r}")
        return code, text

    def test_without_a_terminal_nothing_happens_unasked(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("sudo is not used unasked", done.stderr)
        self.assertIn("libhwloc-dev", done.stderr)
        self.assertEqual(self.calls(), "")

    def test_permission_by_a_variable(self):
        done = self.run_script(HEADWAY_SUDO="yes")
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(self.calls(), r"sudo -n env .*apt-get .*install -y .*libhwloc-dev")

    def test_yes_at_the_terminal(self):
        code, text = self.run_at_terminal("y")
        self.assertEqual(code, 0, text)
        self.assertIn("libhwloc-dev", text[:text.index("[Y/n]")], "what is asked for is named")
        self.assertRegex(self.calls(), r"sudo env .*apt-get .*install -y .*libhwloc-dev")

    def test_no_at_the_terminal(self):
        for answer in ("n", "no", "what?"):
            code, text = self.run_at_terminal(answer)
            self.assertEqual(code, 1, text)
            self.assertIn("Nothing was installed", text)
            self.assertEqual(self.calls(), "")

    def test_root_needs_no_sudo(self):
        done = self.run_script(FAKE_UID="0")
        self.assertEqual(done.returncode, 0, done)
        self.assertNotIn("sudo", self.calls())
        self.assertIn("apt-get", self.calls())


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
