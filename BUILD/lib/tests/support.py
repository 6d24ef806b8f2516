# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of the tools have in common."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "BUILD/lib"))
sys.dont_write_bytecode = True


def put(path, text=""):
    """Write a file, and make its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def git(directory, *words):
    """Run git there, as a user whose settings do not matter; return what it prints."""
    return subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words],
                          cwd=directory, check=True, text=True, stdout=subprocess.PIPE).stdout


def quiet():
    """A context in which nothing is printed."""
    return contextlib.redirect_stdout(io.StringIO())


class WorkTest(unittest.TestCase):
    """A test with a directory of its own, 'work'."""

    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)
