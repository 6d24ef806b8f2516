# SPDX-License-Identifier: GPL-2.0-only
"""Run a benchmark's clients, each in a process: one Python is too slow for
many connections."""

import multiprocessing

from .servers import BenchError


def in_processes(target, arguments, started=None):
    """Run target in a process for each tuple of arguments; their answers.

    target: a function whose first argument is the pipe for its answer
    started: a function to be called when all of them have been started
    """
    jobs, answers = [], []
    try:
        for words in arguments:
            mine, theirs = multiprocessing.Pipe(False)
            job = multiprocessing.Process(target=target,
                                          args=(theirs, *words))
            job.start()
            theirs.close()
            jobs.append((job, mine))
        if started:
            started()
        for job, pipe in jobs:
            answers.append(pipe.recv())
            job.join()
    except EOFError:
        raise BenchError(f"{target.__name__}() ended early") from None
    finally:
        for job, _ in jobs:
            job.kill()                  # if it has not ended
            job.join()
    return answers
