"""Test of exchanges between hosts: the two directions of a link carry data at the same time."""

import os

import support
from harness import tries
from support import ClusterTest, cluster

# Short enough that the system would take a whole message at once.
BYTES, EXCHANGES = 128 << 10, 25
# TCP's and Ethernet's headers beside 1,448 bytes of data.
WIRE_S = BYTES * 8 / 100e6 * 1538 / 1448


def exchange():
    """Raises where an exchange takes nearly as long as one message after the other."""
    done = cluster("run", "-n", 2, "--ranks-per-host", 1, "--mpi", "headway", "--quiet", "--timeout",
                   60, "--", os.path.join(support.BUILD, "tests", "cluster", "exchange"), BYTES, EXCHANGES)
    mean_s = float(done.stdout) / EXCHANGES
    print(f"128 KB each way: {mean_s * 1e3:.2f} ms, {mean_s / WIRE_S:.2f} times one way's wire time")
    if mean_s > 1.75 * WIRE_S:
        raise tries.Late(f"{mean_s / WIRE_S:.2f} times one way's wire time, 2 is one by one")


class Exchange(ClusterTest):
    def test_both_directions_at_once(self):
        cluster("up", "--hosts", 2, "--rate", "100mbit")
        tries.until_right(exchange, tries.Late)


if __name__ == "__main__":
    support.main()
