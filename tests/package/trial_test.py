#!/usr/bin/env python3
"""What scripts/trial.py makes of a terminal's output and of times: its record must not lie."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import trial_page  # noqa: E402
import trial_root  # noqa: E402
from trial_page import Step  # noqa: E402


def screen(*pieces):
    made = trial_page.Screen()
    for when, piece in enumerate(pieces):
        made.take(piece, float(when))
    return [text for _, text in made.rows()]


class Screen(unittest.TestCase):
    def test_plain_lines(self):
        self.assertEqual(screen(b"one\r\ntwo\r\n\r\nfour\r\n\r\n"), ["one", "two", "", "four"])

    def test_a_line_written_again(self):
        self.assertEqual(screen(b"[1/2] long name\r\x1b[K[2/2] end\r\n"), ["[2/2] end"])
        self.assertEqual(screen(b"12345\rab\r\n"), ["ab345"])

    def test_colours_and_titles_go(self):
        self.assertEqual(screen(b"\x1b[1;31mred\x1b[0m\x1b]0;title\x07 plain\x1b(B"), ["red plain"])

    def test_cursor_up_and_erase(self):
        self.assertEqual(screen(b"a\r\nspinner\r\n\x1b[1A\x1b[2Kdone\r\n"), ["a", "done"])
        self.assertEqual(screen(b"a\r\nb\r\nc\x1b[2A\r\x1b[J"), [])

    def test_pieces_that_are_cut_anywhere(self):
        text = "\x1b[32mgrün\x1b[0m µs\r\n".encode()
        for cut in range(len(text)):
            self.assertEqual(screen(text[:cut], text[cut:]), ["grün µs"], cut)

    def test_when_a_line_came(self):
        made = trial_page.Screen()
        made.take(b"one\r\ntwo\r\n", 1.0)
        made.take(b"three\r\n", 5.0)
        self.assertEqual([when for when, _ in made.rows()], [1.0, 1.0, 5.0])


class Times(unittest.TestCase):
    STEPS = [trial_page.Section("x"), Step(50, 0, [], line="apt", user="root"),
             Step(1, 0, [], line="clone", mark="clone", user="ada"),
             Step(7, 0, [], line="apt", user="root"), Step(2, 0, [], line="make", user="ada"),
             Step(9, 0, [], reached=4.0, line="demo", mark="demo", user="ada")]

    def test_from_mark_to_what_was_waited_for(self):
        self.assertEqual(trial_page.span(self.STEPS, "clone", "demo"), 1 + 2 + 4)

    def test_what_never_came_has_no_time(self):
        self.assertIsNone(trial_page.span(self.STEPS, "clone", "wheel"))
        failed = [*self.STEPS[:-1], Step(9, 1, [], line="demo", mark="demo", user="ada",
                                         expected=False)]
        self.assertIsNone(trial_page.span(failed, "clone", "demo"))
        self.assertEqual(trial_page.seconds(None), "not reached")


class Terminal(unittest.TestCase):
    def test_words_run_at_a_terminal(self):
        step = trial_root.in_terminal(["sh", "-c", "test -t 0 && test -t 1 && stty size; exit 3"], 20,
                                      first="40 100")
        self.assertEqual((step.code, [text for _, text in step.rows]), (3, ["40 100"]))
        self.assertLess(step.reached, step.seconds + 1e-9)

    def test_a_limit(self):
        step = trial_root.in_terminal(["sh", "-c", "echo here; sleep 60"], 0.5)
        self.assertEqual(step.code, -9)
        self.assertIn("here", step.rows[0][1])
        self.assertIn("not done", step.rows[-1][1])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
