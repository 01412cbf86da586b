#!/usr/bin/env python3
"""Tests of mpiexec, each a run or a few as a user would make them. See harness.main for usage."""

import sys

import cases_blame  # noqa: F401  (each registers its cases)
import cases_check  # noqa: F401
import cases_cores  # noqa: F401
import cases_ends  # noqa: F401
import cases_engines  # noqa: F401
import cases_hosts  # noqa: F401
import cases_input_output  # noqa: F401
import cases_options  # noqa: F401
import cases_peers  # noqa: F401
import cases_places  # noqa: F401
import cases_protocol  # noqa: F401
import cases_sentences  # noqa: F401
import cases_typed_ahead  # noqa: F401
from harness import main

sys.exit(main(sys.argv[1:]))
