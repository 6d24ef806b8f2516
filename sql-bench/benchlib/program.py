# SPDX-License-Identifier: GPL-2.0-only
"""What the programs of sql-bench that start servers have in common."""

import argparse
import contextlib
import fcntl
import pathlib
import sys

from . import wire
from .servers import BenchError
from .signals import obey_signals


def run_program(main):
    """Call main(), and exit with the status that it returns.

    An error is one line, and status 1; so is an interruption. A signal that ends a program
    raises KeyboardInterrupt, so that finally clauses stop the servers and remove the data.
    """
    name = pathlib.Path(sys.argv[0]).name
    obey_signals()
    try:
        sys.exit(main())
    except (BenchError, OSError, wire.Error) as error:
        print(f"{name}: error: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
    sys.exit(1)


def one_of(names):
    """For argparse's type: one of these names; another one is wrong usage."""
    def read(text):
        if text not in names:
            raise argparse.ArgumentTypeError(
                f"'{text}' is not one of {', '.join(names)}")
        return text
    return read


def list_of(names):
    """For argparse's type: some of these names, between commas."""
    def read(text):
        return [one_of(names)(name) for name in text.split(",")]
    return read


def resolved(text):
    """For argparse's type: a path that holds in any working directory."""
    return pathlib.Path(text).resolve()


@contextlib.contextmanager
def only_one(directory):
    """Keep a second program out that measures there, too: the two would measure
    each other, or one would remove the other's data."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "lock", "w", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BenchError(f"another benchmark runs in {directory}; wait "
                             "for its end") from None
        yield
