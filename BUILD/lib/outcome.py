# SPDX-License-Identifier: GPL-2.0-only
"""How the tests that are programs of their own say what they found: a line
'PASS name' or 'FAIL name: why' for each thing checked, which run_tests.py
counts, and exit status 1 if anything failed."""

import common
from common import Problem


class Outcome:
    """Base class of what checks things."""

    failures = 0

    def check(self, name, problem):
        """Report one result; a problem is a text, no problem None or ''."""
        if problem:
            self.failures += 1
            print(f"FAIL {name}: {problem}", flush=True)
        else:
            print(f"PASS {name}", flush=True)


def run(main, name):
    """Call main() and end with what it returns; a Problem is a failure of the test
    called name."""
    def reported():
        try:
            return main()
        except Problem as error:
            print(f"FAIL {name}: {error}", flush=True)
            return 1
    common.end(name, reported)
