"""Tests of the verdict on a run: what counts as lost. Needs no rights and makes no cluster."""

import os
import resource
import subprocess
import sys
import unittest
from unittest import mock

import support  # noqa: F401  makes the cluster's modules importable
import watch


def counts(when, retransmits=(0, 0), reported=(0, 0), drops=0, shaped=0, late=0, refused=0,
           idle=0.5):
    return watch.Counts(when=when, backlog_drops=drops, shaper_drops=shaped,
                        retransmits=list(retransmits), reported=list(reported), timeouts=0,
                        late_handshakes=late, refused_handshakes=refused,
                        sent_bytes=[0, 0], received_bytes=[0, 0], cpu_total=1000.0 * when,
                        cpu_idle=1000.0 * when * idle, cpu_softirq=0.0, cpu_waiting_us=0,
                        own_cpu_seconds=0.0)


def verdict(**changes):
    """Of a run of ten seconds, on hosts that had resent something before it."""
    before = counts(1.0, (7, 2), (7, 0))
    after = counts(11.0, **({"retransmits": (7, 2), "reported": (7, 0)} | changes))
    return watch.judge(before, after, after)


def used_by_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Orphans(unittest.TestCase):
    def test_what_daemons_leave_behind_is_counted(self):
        """As Open MPI's ranks, whose daemon ends before them."""
        spins = "import time\nwhile time.process_time() < 0.4: pass"
        begun = used_by_children()
        # Others may have the processors.
        with mock.patch.object(watch, "LAST_WAIT", 60), watch.adopting():
            subprocess.run(["sh", "-c", 'setsid "$0" -c "$1" &', sys.executable, spins], check=True, timeout=60)
        self.assertGreater(used_by_children() - begun, 0.4)

    def test_other_children_are_left_alone(self):
        """Who does not get its child's end takes it for 0."""
        own = subprocess.Popen(["sh", "-c", "exit 3"])
        os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
        with watch.adopting():
            subprocess.run(["true"], check=True, timeout=60)
        self.assertEqual(own.wait(5), 3)


class Verdicts(unittest.TestCase):
    def test_nothing_happened(self):
        seen = verdict()
        self.assertTrue(seen.valid, seen.reasons)
        self.assertEqual((seen.retransmits, seen.needless_retransmits), (0, 0))

    def test_what_the_receiver_had_is_no_loss(self):
        seen = verdict(retransmits=(9, 3), reported=(9, 1))
        self.assertTrue(seen.valid, seen.reasons)
        self.assertEqual((seen.retransmits, seen.needless_retransmits), (3, 3))
        self.assertEqual(seen.lost_segments, 0)

    def test_what_no_receiver_told_of_is_a_loss(self):
        seen = verdict(retransmits=(8, 2))
        self.assertFalse(seen.valid)
        self.assertIn("resent 1 segments", seen.reasons[0])

    def test_one_hosts_reports_do_not_excuse_anothers_loss(self):
        seen = verdict(retransmits=(7, 3), reported=(12, 0))
        self.assertFalse(seen.valid)
        self.assertEqual(seen.lost_segments, 1)

    def test_dropped_packets(self):
        for change in ({"drops": 2}, {"shaped": 2}):
            seen = verdict(**change)
            self.assertFalse(seen.valid, change)
            self.assertIn("2 packets were dropped", seen.reasons[0])

    def test_a_late_handshake_is_no_loss(self):
        seen = verdict(late=50)
        self.assertTrue(seen.valid, seen.reasons)
        self.assertEqual((seen.late_handshakes, seen.lost_segments), (50, 0))

    def test_a_refused_handshake_is_told(self):
        seen = verdict(late=1, refused=1)
        self.assertFalse(seen.valid)
        self.assertIn("1 connections were refused", seen.reasons[0])


if __name__ == "__main__":
    unittest.main()
