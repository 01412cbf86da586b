#!/usr/bin/env python3
"""plain_launcher.py [--refuse VERB] [--map TEXT] [--count FILE] -n RANKS PROGRAM ARGS: a launcher that
speaks PMI-1 and does no more: when a rank dies or aborts, the others go on (as under srun without
--kill-on-bad-exit), and its name and that of our mpiexec are strangers. --refuse: the verb (put, get,
barrier_in) is answered by a no. --map: what it says as PMI_process_mapping. --count: where it writes
how often each verb came. Ends with the worst code of its ranks, 128 + N for signal N."""

import os
import selectors
import socket
import subprocess
import sys
from collections import Counter


class Server:
    def __init__(self, ranks, refused, mapping):
        self.ranks, self.refused = ranks, refused
        self.keys, self.inside, self.asked = {}, [], Counter()
        if mapping:
            self.keys["PMI_process_mapping"] = mapping

    def answer(self, rank, line):
        """Lines for ranks: [(rank, text)]."""
        words = dict(part.split("=", 1) for part in line.split() if "=" in part)
        verb = words["cmd"]
        self.asked[verb] += 1
        rc = -1 if verb == self.refused else 0
        if verb == "init":
            return [(rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")]
        if verb == "get_maxes":
            return [(rank, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024")]
        if verb == "get_my_kvsname":
            return [(rank, f"cmd=my_kvsname kvsname=plain_{os.getpid()}")]
        if verb == "get_appnum":
            return [(rank, "cmd=appnum appnum=0")]
        if verb == "get_universe_size":
            return [(rank, f"cmd=universe_size size={self.ranks}")]
        if verb == "put":
            if rc == 0:
                self.keys[words["key"]] = words["value"]
            return [(rank, f"cmd=put_result rc={rc} msg=no")]
        if verb == "get":
            if rc != 0 or words["key"] not in self.keys:
                return [(rank, "cmd=get_result rc=-1 msg=no value=unknown")]
            return [(rank, f"cmd=get_result rc=0 msg=success value={self.keys[words['key']]}")]
        if verb == "barrier_in":
            if rc != 0:
                return [(rank, "cmd=barrier_out rc=-1")]
            self.inside.append(rank)
            if len(self.inside) < self.ranks:
                return []
            self.inside.clear()
            return [(r, "cmd=barrier_out rc=0") for r in range(self.ranks)]
        if verb == "finalize":
            return [(rank, "cmd=finalize_ack rc=0")]
        return []  # an abort is heard, and nothing is done


def main(words):
    given = {}
    while words[0] in ("--refuse", "--map", "--count"):
        given[words[0]], words = words[1], words[2:]
    ranks, program = int(words[1]), words[2:]
    server = Server(ranks, given.get("--refuse"), given.get("--map"))
    selector, processes, ends = selectors.DefaultSelector(), [], []
    for rank in range(ranks):
        ours, theirs = socket.socketpair()
        environment = {**os.environ, "PMI_FD": str(theirs.fileno()), "PMI_RANK": str(rank),
                       "PMI_SIZE": str(ranks)}
        processes.append(subprocess.Popen(program, env=environment, pass_fds=[theirs.fileno()]))
        theirs.close()
        ends.append(ours)
        selector.register(ours, selectors.EVENT_READ, rank)
    texts = [b""] * ranks
    while selector.get_map():
        for key, _ in selector.select():
            rank = key.data
            try:
                got = key.fileobj.recv(65536)
            except ConnectionResetError:
                got = b""
            if not got:
                selector.unregister(key.fileobj)
                continue
            *lines, texts[rank] = (texts[rank] + got).split(b"\n")
            for line in lines:
                for to, text in server.answer(rank, line.decode()):
                    try:
                        ends[to].sendall(text.encode() + b"\n")
                    except OSError:
                        pass  # it has ended
    codes = [process.wait() for process in processes]
    if "--count" in given:
        with open(given["--count"], "w", encoding="ascii") as file:
            file.write("".join(f"{verb} {count}\n" for verb, count in server.asked.items()))
    return max(128 - code if code < 0 else code for code in codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
