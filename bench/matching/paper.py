"""What the paper reports (Parallel Computing 89, 2019, 102547), as far as its text has numbers, and
what was asked of this library."""

PROGRAMS = {"radix": "Radix", "nbody": "Nbody", "miniamr": "MiniAMR", "fds": "FDS"}
PROCESSES = {"radix": (512, 1024, 2048), "nbody": (256, 512, 1024), "miniamr": (512, 1024, 2048),
             "fds": (512, 1024, 2048, 4096)}
DESIGNS = ("list", "source", "pnp", "col+list", "list+pnp", "col+pnp", "headway")
KINDS = ("point", "collective", "all")
QUEUES = ("unexpected", "posted")

# Figures 7 and 8: "up to", over the process counts. (program, design, kind): unexpected, posted
GAINS = {
    ("radix", "col+pnp", "all"): (1.15, 1.14),
    ("nbody", "col+list", "point"): (1.23, 1.37),
    ("nbody", "col+list", "all"): (1.18, 1.27),
    ("nbody", "list+pnp", "point"): (2.26, 2.28),
    ("nbody", "col+pnp", "all"): (1.94, 1.89),
    ("nbody", "col+pnp", "collective"): (1.09, 1.33),
    ("nbody", "source", "collective"): (1.1, 1.22),
    ("miniamr", "col+pnp", "collective"): (1.37, 1.46),
    ("fds", "col+pnp", "collective"): (42, 42),
    ("fds", "col+pnp", "point"): (4.4, 73),
    ("fds", "col+list", "point"): (3.34, 71),
    ("fds", "col+list", "all"): (27, 52),
    ("fds", "list+pnp", "collective"): (17, 2),
}

# Asked at every process count: (program, design, kind): unexpected, posted.
ASKED = {
    ("fds", "col+pnp", "collective"): (40, 40),
    ("fds", "col+pnp", "all"): (27, 52),
    ("radix", "col+pnp", "all"): (1.15, 1.14),
    ("nbody", "col+pnp", "all"): (1.94, 1.89),
    ("miniamr", "col+pnp", "collective"): (1.37, 1.46),
}

# Figure 5: latency of small messages, one list over col+pnp at k = 1.
LATENCY = {("gather", 1024): 1.5, ("gather", 2048): 2.4, ("gather", 4096): 5.4,
           ("allreduce", 4096): 1.16, ("iallgather", 4096): 1.26}

# Table 2: overhead over search time of col+pnp.
OVERHEAD = {
    ("radix", 512): 0.0359, ("radix", 1024): 0.03027, ("radix", 2048): 0.0175,
    ("nbody", 256): 0.1563, ("nbody", 512): 0.0589, ("nbody", 1024): 0.0343,
    ("miniamr", 512): 0.0192, ("miniamr", 1024): 0.0366, ("miniamr", 2048): 0.0138,
    ("fds", 512): 0.0027, ("fds", 1024): 0.0021, ("fds", 2048): 0.0020,
}

# Lists that the text names: (program, processes): collectives, point to point.
LISTS = {("fds", 1024): (256, None), ("fds", 2048): (None, 194)}
