# SPDX-License-Identifier: GPL-2.0-only
"""Bug 33948, by CPU time: what the table cache costs a busy server."""

import tempfile
import time

from benchlib import profile, sysbench
from benchlib.scenario import integers
from benchlib.statistics import median

from .sysbench_oltp import Sysbench, plural

# The table cache as the rest of the server sees it. The functions that these
# call count for them: the core's functions, and the locks.
FUNCTIONS = ("tdc_acquire_share", "tdc_release_share", "tc_acquire_table",
             "tc_release_table", "tc_add_table", "tc_is_for_schema")
WARM = 2                        # seconds before those that count
SECONDS = 5


class SysbenchProfile(Sysbench):
    name = "sysbench-profile"
    title = "Share of the server's CPU time spent in the table cache"
    question = (
        "How much of the CPU goes into finding a table's definition, taking a "
        "TABLE from the table cache and giving it back, and into the locks for "
        "that?")
    method = (
        "perf samples the server during oltp_point_select on one table. Samples "
        "count in " + ", ".join(FUNCTIONS) + ", and in what they call. Only the "
        "patched server has tc_is_for_schema.")
    caveat = (
        "A share of CPU time says nothing about time spent waiting. perf's own "
        "sampling costs both servers the same.")
    unit = "% of samples"
    higher_is_better = False
    weight = 5
    pairs = 5
    peers = False
    load = None
    remarks_on_some = False
    also_options = ("sysbench_rows",)

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--profile-threads", default=None,
                            help="numbers of threads (default "
                            "1,16,64,256,2048; "
                            "quick 1,64)")

    @classmethod
    def threads(cls, options):
        return integers(options.profile_threads or
                        ("1,64" if options.quick else "1,16,64,256,2048"))

    @classmethod
    def tables(cls, options):
        return [1]

    @classmethod
    def check(cls, options):
        super().check(options)
        profile.require()

    @classmethod
    def cells(cls, options):
        return [{"label": plural(users, "thread"), "threads": users}
                for users in cls.threads(options)]

    @classmethod
    def measure(cls, server, cell, options):
        program = profile.Program(server.process.pid, server.program,
                                  FUNCTIONS)
        with tempfile.TemporaryDirectory() as work:
            file = f"{work}/perf.data"
            # Until it is ended: perf takes long to begin with many threads
            with sysbench.Load(
                    server, "oltp_point_select", cls.database(options, 1),
                    cell["threads"], tables=1, table_size=cls.rows(options),
                    rand_type="uniform") as load, load.working():
                time.sleep(WARM)
                profile.record(server.process.pid, SECONDS, file)
            share, functions = profile.shares(
                profile.stacks(file, server.process.pid), FUNCTIONS,
                program.called)
        program.close()
        return {"value": share, "functions": functions}

    @staticmethod
    def remarks(results, options):
        """The functions one by one, at most threads."""
        cell = results[-1][0]
        said = []
        for variant, details in sorted(cell.get("details", {}).items()):
            parts = [(median([detail["functions"].get(name, 0)
                              for detail in details]), name)
                     for name in FUNCTIONS]
            said.append(f"{variant}, {cell['label']}: "
                        + ", ".join(f"{name} {part:.2f} %"
                                    for part, name in sorted(parts)[::-1]
                                    if part))
        return said
