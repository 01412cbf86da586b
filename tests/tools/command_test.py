#!/usr/bin/env python3
"""`headway` alone, and how it starts its commands."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

from support import headway
from headway.commands import LAST, LINES


class Command(unittest.TestCase):
    def test_alone_it_says_in_six_lines_what_each_command_is_for(self):
        lines = headway().stdout.splitlines()
        self.assertEqual(len(lines), 6)
        for line in lines:
            self.assertRegex(line, r"^headway \w+.*  \S")
            self.assertLess(len(line), 100)

    def test_help_and_version(self):
        text = headway("--help").stdout
        self.assertTrue(text.startswith("usage: headway COMMAND"))
        self.assertEqual([line.split("  ")[0] for line in text.splitlines()[2:]], [*(name for name, _ in LINES), LAST[0]])
        self.assertRegex(headway("--version").stdout, r"^headway \(Headway MPI\) \d+\.\d+\.\d+\n$")

    def test_every_line_names_a_command_that_is_there(self):
        for line in headway().stdout.splitlines():
            command = line.split()[1]
            self.assertIn(f"headway {command}", headway(command, "--help").stdout)

    def test_a_wrong_command_is_a_bad_line(self):
        done = headway("clutser", "up", code=2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr, "headway: no command 'clutser'; did you mean 'cluster'?\n")
        self.assertIn("there are advise, cluster", headway("xyz", code=2).stderr)

    def test_options_of_the_cluster_are_its_own(self):
        self.assertIn("usage: headway cluster up", headway("cluster", "up", "--help").stdout)
        self.assertIn(
            "invalid int value", headway("cluster", "up", "--hosts", "many", "--rate", "1gbit", code=2).stderr
        )
        self.assertIn("--nonsense", headway("cluster", "status", "--nonsense", code=2).stderr)

    def test_the_cluster_needs_no_package(self):
        """As on a machine with nothing but Python: `-S` leaves all packages out."""
        with tempfile.TemporaryDirectory() as folder:
            bare = Path(folder, "python3")
            bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
            bare.chmod(0o755)
            done = headway("cluster", "status", code=None, env={**os.environ, "HEADWAY_PYTHON": str(bare)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
