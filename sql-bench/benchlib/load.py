# SPDX-License-Identifier: GPL-2.0-only
"""Clients of a server, each a process: one Python is too slow for many connections."""

import multiprocessing
import time

from . import wire
from .servers import BenchError
from .usage import cpu_time


def client(pipe, begin, work, socket, database, *arguments):
    """A process: connect, wait for the others, answer what work() returns."""
    session = wire.Connection(socket, database)
    begin.wait()
    pipe.send(work(session, *arguments))


def run(server, database, *clients):
    """Run clients, each a tuple of a function, which is given a session of the database, and its
    other arguments; return their answers, when they began, and the seconds of CPU time that the
    server has used meanwhile, None if it was killed."""
    begin = multiprocessing.Barrier(len(clients) + 1)
    jobs, answers, pid = [], [], server.process.pid
    try:
        for work, *arguments in clients:
            mine, theirs = multiprocessing.Pipe(False)
            job = multiprocessing.Process(target=client, args=(
                theirs, begin, work, server.socket, database, *arguments))
            job.start()
            theirs.close()
            jobs.append((job, mine))
        begin.wait()
        began, before = time.monotonic(), cpu_time(pid)
        for job, pipe in jobs:
            answers.append(pipe.recv())
            job.join()
        try:
            used = cpu_time(pid) - before
        except OSError:
            used = None
    except EOFError:
        raise BenchError("a client ended early") from None
    finally:
        for job, _ in jobs:
            job.kill()                  # if it has not ended
            job.join()
    return answers, began, used


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
