"""A rank that speaks PMI-1 by itself, independent of the library's client: plain lines on PMI_FD.

Used as a module by the ranks that launcher_test.py writes as one-liners.
"""

import os
import socket

RANK = int(os.environ.get("PMI_RANK", "0"))
SIZE = int(os.environ.get("PMI_SIZE", "1"))


class Pmi:
    def __init__(self):
        self.socket = socket.socket(fileno=int(os.environ["PMI_FD"]))
        self.file = self.socket.makefile("r", encoding="ascii", newline="\n")
        self.name = None

    def send(self, text):
        self.socket.sendall((text + "\n").encode())

    def ask(self, text):
        self.send(text)
        return self.answer()

    def answer(self):
        line = self.file.readline()
        if not line.endswith("\n"):
            raise EOFError(f"the launcher closed the connection after {line!r}")
        return dict(part.split("=", 1) for part in line.split())

    def init(self):
        reply = self.ask("cmd=init pmi_version=1 pmi_subversion=1")
        assert reply["cmd"] == "response_to_init" and reply["rc"] == "0", reply
        self.name = self.ask("cmd=get_my_kvsname")["kvsname"]

    def put(self, key, value):
        return self.ask(f"cmd=put kvsname={self.name} key={key} value={value}")

    def get(self, key):
        return self.ask(f"cmd=get kvsname={self.name} key={key}")

    def barrier(self):
        reply = self.ask("cmd=barrier_in")
        assert reply["cmd"] == "barrier_out", reply

    def finalize(self):
        reply = self.ask("cmd=finalize")
        assert reply["cmd"] == "finalize_ack", reply
