# SPDX-License-Identifier: GPL-2.0-only
"""Clients of a server, each a process, and the server's CPU time meanwhile."""

import multiprocessing
import time

from . import wire
from .processes import in_processes
from .usage import cpu_time


def client(pipe, begin, work, socket, database, *arguments):
    """A process: connect, wait for the others, answer what work() returns."""
    session = wire.Connection(socket, database)
    begin.wait()
    pipe.send(work(session, *arguments))


def run(server, database, *clients):
    """Run clients, each a tuple of a function, which is given a session of the
    database, and its other arguments; return their answers, when they began,
    and the seconds of CPU time that the server has used meanwhile."""
    begin = multiprocessing.Barrier(len(clients) + 1)
    found = {}

    def started():
        begin.wait()
        found["begin"] = time.monotonic()
        found["before"] = cpu_time(server.process.pid)

    answers = in_processes(
        client, [(begin, work, server.socket, database, *arguments)
                 for work, *arguments in clients], started)
    return answers, found["begin"], cpu_time(server.process.pid) - found["before"]


def read_files(directory):
    """Let the page cache have all files below a directory."""
    for path in directory.rglob("*"):
        if path.is_file():
            with open(path, "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass


def shares(tables, number):
    """A range in that many parts, one after the other."""
    return [tables[len(tables) * i // number:len(tables) * (i + 1) // number]
            for i in range(number)]
