# SPDX-License-Identifier: GPL-2.0-only
"""Bug 33948, by CPU time: what the table cache costs a busy server."""

import shutil
import subprocess
import tempfile

from benchlib import sysbench
from benchlib.scenario import integers
from benchlib.servers import BenchError

from .sysbench_oltp import ROWS, Sysbench

# Everything that these call counts, too: the locks that they take
FUNCTIONS = ("tc_acquire_table", "tc_release_table", "tc_add_table")
SAMPLES_A_SECOND = 199          # each CPU; not in step with the clock tick
STACK_BYTES = 8192              # copied for each sample, unwound afterwards


class SysbenchProfile(Sysbench):
    name = "sysbench-profile"
    title = "Share of the server's CPU time spent in the table cache"
    question = ("How much of the CPU goes into taking TABLEs from the table "
                "cache and giving them back, and into the locks for that?")
    method = ("perf samples the server during oltp_point_select on one table; "
              "counted are the samples with one of "
              + ", ".join(FUNCTIONS) + " on their stack.")
    unit = "% of samples"
    higher_is_better = False

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--profile-threads", default=None,
                            help="numbers of threads (default 1,16,64,256; "
                            "quick 1,64)")

    @staticmethod
    def settings(options):
        threads = integers(options.profile_threads or
                           ("1,64" if options.quick else "1,16,64,256"))
        return threads, [1], 5

    @classmethod
    def check(cls, options):
        sysbench.require()
        cls.settings(options)
        if not shutil.which("perf"):
            raise BenchError("perf is missing; apt-get install linux-perf, or "
                             "name the scenarios that you want")

    @classmethod
    def cells(cls, options):
        return [{"label": f"{users} thread{'s' * (users > 1)}",
                 "threads": users} for users in cls.settings(options)[0]]

    @classmethod
    def measure(cls, server, cell, options):
        _, _, seconds = cls.settings(options)

        def load(length):
            return sysbench.run(server, "oltp_point_select", "tc_oltp1",
                                cell["threads"], seconds=length, tables=1,
                                table_size=ROWS)
        load(2)
        with tempfile.TemporaryDirectory() as work:
            recorder = subprocess.Popen(
                ["perf", "record", "--quiet", f"--freq={SAMPLES_A_SECOND}",
                 f"--call-graph=dwarf,{STACK_BYTES}",
                 f"--pid={server.process.pid}", f"--output={work}/perf.data",
                 "--", "sleep", str(seconds)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            load(seconds + 1)
            recorder.wait()
            return cls.share(f"{work}/perf.data")

    @staticmethod
    def share(data):
        """Percentage of samples that have one of FUNCTIONS on their stack."""
        total = counted = 0
        with subprocess.Popen(
                ["perf", "script", "--input", data, "--fields", "ip,sym",
                 "--no-inline"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                text=True) as script:
            stack = []
            for line in script.stdout:
                words = line.split()
                if words:
                    stack.append(words[1] if len(words) > 1 else "")
                elif stack:
                    total += 1
                    counted += any(symbol.startswith(FUNCTIONS)
                                   for symbol in stack)
                    stack = []
        if total < 100:
            raise BenchError(f"perf took {total} samples only")
        return 100.0 * counted / total

    @staticmethod
    def remarks(results, options):
        return []
