"""Tests of plans: what follows from the options. Needs no rights and makes no cluster."""

import os
import subprocess
import unittest

from support import CLUSTER  # also makes the cluster's modules importable
from plan import PAYLOAD, Plan, Refused, parse_rate, shaping, wire_seconds


class Rates(unittest.TestCase):
    def test_units(self):
        for text, rate in (("100mbit", 100e6), ("1gbit", 1e9), ("1Gbit/s", 1e9), ("250k", 250e3),
                           ("12.5Mbit", 12.5e6), ("1e8", 1e8), (" 10 mbit ", 10e6)):
            self.assertEqual(parse_rate(text), rate, text)

    def test_nonsense(self):
        for text in ("", "fast", "0", "-1mbit", "1tbit", "1..2mbit", "1000gbit", "10 kbit", "e9",
                     "10mbps"):
            with self.assertRaises(Refused, msg=text):
                parse_rate(text)


class Shape(unittest.TestCase):
    def test_wire_time(self):
        # 1,448 bytes of payload are 1,500 on the wire.
        self.assertAlmostEqual(wire_seconds(1448 * 1000, 100e6), 0.12)

    def test_any_packet_fits_into_any_bucket_on_its_way(self):
        for hosts in (2, 8, 9, 16, 17, 64, 300):
            for rate in ("1mbit", "100mbit", "300mbit", "1gbit", "10gbit", "100gbit"):
                for uplink in ("1mbit", "100mbit", "1gbit", "10gbit"):
                    plan = Plan.make("x", hosts, rate, 4, uplink)
                    for link in (plan.link_rate, plan.link_uplink_rate):
                        frames = (plan.largest_packet - 200) // PAYLOAD
                        self.assertGreaterEqual(plan.burst(link), frames * 1514 + 50)
                        self.assertLessEqual(plan.largest_packet, 65536)

    def test_small_messages_are_not_free(self):
        # 4 KB are 4,294 bytes on the wire.
        self.assertLess(shaping(100e6, 16)[0], 4000)
        self.assertLess(shaping(12.5e6, 64)[0], 4000)
        self.assertLess(shaping(100e6, 64)[0], 6000)

    def test_switches(self):
        plan = Plan.make("x", 40, "100mbit", 16, "1gbit")
        self.assertEqual(plan.switches, 3)
        self.assertEqual([plan.switch_of(h) for h in (0, 15, 16, 39)], [0, 0, 1, 2])
        self.assertEqual(Plan.make("x", 40, "100mbit").switches, 1)

    def test_addresses_differ(self):
        plan = Plan.make("x", 512, "100mbit")
        for of in (plan.address, plan.mac, plan.host_name):
            self.assertEqual(len({of(h) for h in range(512)}), 512)
        self.assertEqual(plan.host_number(plan.address(300)), 300)
        self.assertEqual(plan.host_number("h511"), 511)

    def test_dilation(self):
        plan = Plan.make("x", 64, "100mbit", 16, "1gbit", 8)
        self.assertEqual((plan.link_rate, plan.link_uplink_rate), (12.5e6, 125e6))
        self.assertEqual(Plan(**plan.as_dict()), plan)
        faster = Plan.make("x", 8, "100mbit", dilation=0.25)
        self.assertEqual(faster.link_rate, 400e6)
        self.assertIn("4 times faster", faster.sentence())

    def test_a_question_may_stand_in_every_queue_on_its_way(self):
        self.assertAlmostEqual(Plan.make("x", 2, "100mbit").longest_wait, 4 * 0.32)
        self.assertAlmostEqual(Plan.make("x", 2, "100mbit", dilation=8).longest_wait, 4 * 2.56)
        # The paper's cluster with 64 ranks: uplinks hold four times as much.
        paper = Plan.make("x", 32, "100mbit", 16, "100mbit", 8)
        self.assertAlmostEqual(paper.longest_wait, 4 * 2.56 + 4 * 10.24)

    def test_refused(self):
        for name, hosts, *rest in (("x", 0, "1gbit"), ("x", 513, "1gbit"), ("../x", 2, "1gbit"),
                                   ("", 2, "1gbit"), ("x", 2, "1gbit", None, "1gbit"),
                                   ("x", 2, "1gbit", 0), ("x", 2, "1gbit", None, None, 0.04),
                                   ("x", 2, "1mbit", None, None, 100)):
            with self.assertRaises(Refused, msg=str((name, hosts, rest))):
                Plan.make(name, hosts, *rest)


class CommandLine(unittest.TestCase):
    def code(self, *words):
        done = subprocess.run([*CLUSTER, *words], capture_output=True, text=True, timeout=30,
                              check=False)
        self.assertNotIn("Traceback", done.stderr)
        self.assertTrue(done.stderr.strip())
        return done.returncode

    def test_wrong_words(self):
        self.assertEqual(self.code("up", "--hosts", "2", "--rate", "quick"), 2)
        self.assertEqual(self.code("up", "--rate", "1gbit"), 2)
        self.assertEqual(self.code("fly"), 2)
        self.assertEqual(self.code("run", "--name", "none-such", "-n", "2", "--", "true"), 1)
        self.assertEqual(self.code("run", "-n", "2"), 2)
        self.assertEqual(self.code("exec", "--name", "none-such", "h0", "true"), 1)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
    def test_an_ordinary_user_is_told_what_is_missing(self):
        done = subprocess.run([*CLUSTER, "up", "--hosts", "2", "--rate", "1gbit"],
                              capture_output=True, text=True, timeout=30, check=False,
                              user=65534, group=65534, extra_groups=[])
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertRegex(done.stderr, "not allowed here for user 65534.*CAP_SYS_ADMIN")


if __name__ == "__main__":
    unittest.main(verbosity=2)
