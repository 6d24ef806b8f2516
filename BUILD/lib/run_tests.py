#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Run the tests that BUILD/test asks for, and sum them up.

Every run is WHAT:TYPE; 'all' stands for those of everything.py.  mtr's and the unit
tests' own output goes to the terminal as it comes; what they report is read from it
and counted.  A run that reports nothing, or whose program fails without saying which
test did, counts as one failure.  The last line is 'N passed, N failed, N skipped'.

Exit status: 0 nothing failed, 1 something failed, 2 wrong usage.
"""

import argparse
import collections
import copy
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import common
import everything
import hunks
import overlay
import pages
import topics

OUR_SUITE = "table_cache,table_cache_dump,table_cache_info"
STRESS_SECONDS = 300

# Programs in sql-bench, and the options of the server that they stress
STRESS_PROGRAMS = {
    "stress_table_cache": ("--table-open-cache=10", "--table-definition-cache=400"),
    "stress_open_close": ("--table-open-cache=10", "--aria-checkpoint-interval=1"),
    "stress_query_cache": ("--query-cache-type=1", "--query-cache-size=4M"),
    "stress_first_touch": ("--table-open-cache=10", "--table-definition-cache=400",
                           "--innodb-fatal-semaphore-wait-threshold=120"),
    "stress_open_files": ("--innodb-open-files=20", "--innodb-buffer-pool-size=8M",
                          "--innodb-flush-log-at-trx-commit=2"),
}
# And these only for a patched server, which has the plugins
PATCHED_OPTIONS = {
    "stress_table_cache": ("--plugin-load-add=table_cache_dump",
                           "--plugin-load-add=table_cache_info",
                           "--table-cache-dump-interval=1"),
}
PROGRAMS = ("deploy", "replication", "galera", "series", "alone", "tarball",
            "upgrade", "parts", "faults")
# Under qemu, 1. InnoDB reserves addresses for a buffer pool of 8 TB, and qemu takes 10 GB to
# note their pages; mtr starts mariadbd --bootstrap with options that begin with --innodb
# only.  2. Data is not in memory: InnoDB takes that for persistent memory, for which ARM64
# has an instruction that qemu 7.2 does not know
EMULATED = ("--mysqld=--innodb-buffer-pool-size-max=512M",
            "--mysqld=--innodb-use-native-aio=0", "--testcase-timeout=60")
DEFAULT = "default"             # the suites that mtr runs if nobody names one
OPEN_FILES = 16384              # for each server that mtr starts
MEMORY = 2 << 30                # bytes of a RAM disk that mtr's servers may need
# main.func 'innodb'   w2 [ pass ]    123
MTR_LINE = re.compile(r"^(\S+\.\S+)((?: '[^']*')?)\s+(?:w\d+ )?\[ ([a-z-]+) \]")


# Frames of a ThreadSanitizer report that are never where an access is made
SANITIZER = re.compile(r"libsanitizer/|/thr_mutex\.c|/mysql_thread\.h|/ilist\.h")


def race_in(files, log):
    """ThreadSanitizer's first report of an access, or of a lock taken, by the
    code in one of the files; None if there is none.

    MariaDB's own code has such reports, too: some threads count rows without a
    lock.  A report counts only if the patch set's own code makes one of the two
    accesses, or takes the lock.
    """
    for report in log.split("=" * 18 + "\n"):
        if "WARNING: ThreadSanitizer" not in report:
            continue
        for stack in re.split(r"\n\s*\n", report):
            head = re.search(r"(?m)^ +(\S.*):$", stack)
            if head and re.match(r"(Location|Thread|As if)|.*created", head[1]):
                continue
            frames = [name for name in re.findall(
                r"(?m)^ +#\d+ .* (\S+?):\d+(?::\d+)? \(", stack) if not SANITIZER.search(name)]
            if frames and frames[0].endswith(files):
                return report
    return None


class MtrEnd:
    """What mtr says at its end, of the run as a whole.

    Its exit status does not tell whether more was wrong than a failed test.
    """

    def __init__(self):
        self.completed = False
        self.error = None
        self.at_shutdown = False        # errors in a server's log
        self.last_tests = set()         # of the servers that had such errors

    def read(self, line):
        if line.startswith("Completed: "):
            self.completed = True
        elif match := re.match(r"\*\*\*Warnings generated in error logs during "
                               r"shutdown after running tests: .*?(\S+)$", line.rstrip()):
            self.last_tests.add(match[1])
        elif line.startswith("Errors/warnings were found in logfiles during"):
            self.at_shutdown = True
        elif match := re.match(r"mysql-test-run: \*\*\* ERROR: (.*)", line):
            if match[1] != "there were failing test cases":
                self.error = self.error or match[1]

    def problem(self, retried=()):
        """In a few words, or None.

        retried: the tests that have passed when they were run again.  mtr stops
        the server of a test that fails, before that has told mtr which errors
        it expects: these errors are of the attempt that failed.
        """
        names = {name.partition(" ")[0] for name in retried}
        if self.at_shutdown and not (self.last_tests and self.last_tests <= names):
            return "errors in a server's log at its shutdown"
        return self.error or (None if self.completed else "ended before all tests had run")


class Results:
    """What one run reported: {test name: 'passed', 'failed' or 'skipped'}."""

    def __init__(self, title):
        self.title = title
        self.outcome = {}
        self.retried = set()
        self.known = []                 # MariaDB's errors that a run has met

    def add(self, name, outcome):
        self.outcome[name] = outcome

    def names(self, outcome):
        return sorted(name for name, what in self.outcome.items() if what == outcome)


def stream(command, cwd, each_line=None, env=None):
    """Run a command, showing its output as it comes; return its status."""
    with subprocess.Popen(command, cwd=cwd, env=env, text=True,
                          errors="replace", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          process_group=0) as process:
        def show():
            for line in process.stdout:
                print(line, end="", flush=True)
                if each_line:
                    each_line(line)
        try:
            show()
        except KeyboardInterrupt:
            # It gets no signal of the terminal's.  Let it stop its servers; it
            # would not get that far if its output was not read
            os.killpg(process.pid, signal.SIGINT)
            show()
            process.wait()
            raise
        return process.wait()


def header(text):
    print(f"\n== {text}", flush=True)


def tests_of(paths):
    """The mtr tests among some paths, and MariaDB's whose results or options
    are; and the unit tests."""
    mtr, unit = set(), set()
    for path in paths:
        match = re.fullmatch(
            r"(?:mysql-test/suite|plugin/\w+/mysql-test|mysql-test(?=/main/))/"
            r"(\w+)/(?:[rt]/)?(\w+?)(-master)?\.(test|result|opt|cnf)", path)
        if match:
            mtr.add(f"{match[1]}.{match[2]}")
        match = re.search(r"([^/]+)-t\.(c|cc)$", path)
        if match:
            unit.add(match[1])
    return mtr, unit


def files_of_test(name):
    """Where the file of the mtr test SUITE.TEST may be in the source."""
    suite, _, test = name.partition(".")
    return (f"mysql-test/{suite}/{test}.test", f"mysql-test/suite/{suite}/t/{test}.test",
            f"plugin/{suite}/mysql-test/{suite}/t/{test}.test")


class Runner:
    def __init__(self, top, trees, variant, mtr_options=(), *, seconds=None,
                 tables=None, minutes=None, arch=None, older=None, without_series=(),
                 topic=(), **_):
        """Takes what main() reads from the command line."""
        self.top = top.resolve()
        self.trees = trees.resolve()
        self.variant = variant
        self.seconds, self.tables, self.minutes = seconds, tables, minutes
        self.arch, self.older, self.without_series = arch, older, without_series
        self.topics = topic
        selection = topics.read_selection(self.trees)
        self.selected = selection and selection.names
        self.mtr_options = mtr_options
        self.known = self.read_known()

    def read_known(self):
        """The tests that fail on the unpatched server in some environment."""
        known = {}
        path = self.top / "BUILD" / "known-failures"
        for line in path.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.partition(" ")
                known[name] = reason.strip()
        return known

    def tree(self, build_type):
        return self.trees / self.variant / build_type

    # ----------------------------------------------------------------- unit

    def unit(self, build_type):
        results = Results(f"unit ({build_type})")
        # Neither depends on the processor
        if self.variant == "patched" and not self.arch:
            self.check_rules(results)
            self.check_tools(results)
        names = sorted(path.stem[:-len("-t")] for path in self.sources()
                       if path.name.endswith(("-t.c", "-t.cc")))
        if names and self.variant != "stock":
            self.ctest(names, build_type, results)
        return results

    def check_rules(self, results):
        header("the patch set's rules and the plugin ABI")
        status = stream(["cmake", "--build", str(self.trees / "cmake"),
                         "--target", "check"], self.top)
        results.add("rules and ABI", "failed" if status else "passed")
        for series in self.without_series:
            print(f"the patches are not checked against {series}: its source "
                  "could not be fetched", flush=True)
            results.add(f"patches against {series}", "skipped")

    def check_tools(self, results):
        header("tests of the tools")

        def each_line(line):
            match = re.match(r"(test_\w+) .*\.\.\. (ok|FAIL|ERROR|skipped)", line)
            if match:
                results.add(match[1], {"ok": "passed", "skipped": "skipped"}
                            .get(match[2], "failed"))

        for folder in ("BUILD/lib/tests", "sql-bench"):
            status = stream([sys.executable, "-W", "ignore", "-m", "unittest",
                             "discover", "-v", "-s", str(self.top / folder),
                             "-p", "test_*.py"], self.top, each_line)
            if status and not results.names("failed"):
                results.add(f"tests of the tools in {folder}", "failed")

    def ctest(self, names, build_type, results):
        header("unit tests")
        report = self.tree(build_type) / "unit-report.xml"
        report.unlink(missing_ok=True)
        stream(["ctest", "--output-on-failure", "--output-junit", str(report),
                "-R", "^(" + "|".join(names) + ")$"], self.tree(build_type))
        found = {}
        if report.exists():
            for case in xml.etree.ElementTree.parse(report).iter("testcase"):
                found[case.get("name")] = case.get("status")
        for name in names:
            results.add(name, "passed" if found.get(name) == "run" else "failed")

    # ------------------------------------------------------------------ mtr

    def memory_for_mtr(self):
        """The option to keep the servers' data in memory, if there is room."""
        disk = os.environ.get("MTR_MEM") or "/dev/shm"
        try:
            room = os.statvfs(disk)
        except OSError:
            return []
        return ["--mem"] if room.f_bavail * room.f_frsize >= MEMORY else []

    @staticmethod
    def free_memory(directory, keep_logs, name):
        """Remove what mtr has left in memory; it does so only in its next run.

        If a test has failed its logs are kept, on the disk.
        """
        link = directory / "var"
        if not link.is_symlink():
            return
        memory = link.resolve()
        if keep_logs and (memory / "log").is_dir():
            logs = directory / f"log-{name}"
            shutil.rmtree(logs, ignore_errors=True)
            shutil.copytree(memory / "log", logs, symlinks=True, ignore_dangling_symlinks=True)
            print(f"-- the logs are kept in {logs}", flush=True)
        shutil.rmtree(memory, ignore_errors=True)
        link.unlink()

    def mtr(self, suites, build_type, tests=(), watch=None):
        """Run suites, or single tests named SUITE.TEST.  watch is called with
        each line that mtr prints."""
        choice = [] if tests or suites == DEFAULT else [f"--suite={suites}"]
        suites = suites or f"{len(tests)} tests"
        results = Results(f"{suites} ({build_type})")
        header(f"mtr: {suites}, {self.variant} {build_type} build")
        end = MtrEnd()

        def each_line(line):
            end.read(line)
            if watch:
                watch(line)
            match = MTR_LINE.match(line)
            if not match:
                return
            name = match[1] + match[2]
            outcome = match[3]
            if outcome in ("pass", "retry-pass"):
                if results.outcome.get(name) == "failed":
                    results.retried.add(name)
                results.add(name, "passed")
            elif outcome in ("skipped", "disabled"):
                results.outcome.setdefault(name, "skipped")
            elif outcome in ("fail", "retry-fail"):
                results.add(name, "failed")

        jobs = 2 * len(os.sched_getaffinity(0))
        # mtr's own default, 1024, is too low for tests of many open tables
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if limit == resource.RLIM_INFINITY or limit > OPEN_FILES:
            limit = OPEN_FILES
        # mtr counts the first run as well: 2 is to run a failed test once more
        command = ["./mtr", *choice, f"--parallel={jobs}",
                   *([] if self.arch else self.memory_for_mtr()),
                   "--force", "--max-test-fail=0", "--retry=2", f"--open-files-limit={limit}",
                   *(EMULATED if self.arch else ()),
                   *self.mtr_options, *tests]
        directory = self.tree(build_type) / "mysql-test"
        try:
            status = stream(command, directory, each_line)
            if not results.outcome:
                results.add(f"mtr --suite={suites}", "failed")
            elif problem := end.problem(results.retried):
                results.add(f"mtr --suite={suites}: {problem}", "failed")
            elif (status and not results.names("failed") and not results.retried):
                results.add(f"mtr --suite={suites} (exit status {status})", "failed")
        finally:
            self.free_memory(
                directory, bool([name for name in results.names("failed")
                                 if not self.excuse(name)]), re.sub(r"\W+", "-", suites))
        return results

    def tests(self, names, units, build_type):
        """mtr tests and unit tests."""
        results = self.mtr(None, build_type, sorted(names)) if names else Results("")
        if units:
            self.ctest(sorted(units), build_type, results)
        return results

    def topic_suite(self, build_type):
        """The tests of some topics, those of MariaDB's among them that they edit:
        what BUILD/test series runs at the stage of each."""
        all_topics = {topic.name: topic for topic in topics.read_topics(self.top)}
        names, units = tests_of(path for name in self.topics or self.selected
                                for path in self.paths_of(all_topics[name]))
        source = self.trees / self.variant / "source"
        names = [name for name in names if any(
            (source / path).is_file() for path in files_of_test(name))]
        results = self.tests(names, units, build_type)
        if not results.outcome:
            results.add("no test is of this topic alone", "skipped")
        results.title = f"{' '.join(self.topics) or self.trees.parent.name} ({build_type})"
        return results

    def paths_of(self, topic):
        """A topic's new files, and the files of MariaDB's that it edits."""
        series = self.trees.name
        heads = re.compile(rf"(?m)^@@ .* @@ ({topic.name}(?: .*)?)$")
        for name, path in overlay.sources(self.top, series).items():
            if topic.has(name):
                yield name
            elif name.endswith(".patch") and any(
                    hunks.is_for_release(head, series) for head in
                    heads.findall(path.read_text(errors="replace"))):
                yield name[:-len(".patch")]

    # ---------------------------------------------------------------- stress

    def stress(self, build_type):
        """Many connections on servers of their own."""
        results = Results(f"stress ({build_type})")
        for program, options in STRESS_PROGRAMS.items():
            self.stress_with(results, build_type, program, options)
        return results

    def stress_with(self, results, build_type, program, options):
        seconds = self.seconds or STRESS_SECONDS
        header(f"{program}, {seconds} seconds on the {build_type} build")
        name = f"{program} on {build_type}"
        with tempfile.TemporaryDirectory(prefix="stress-") as work:
            run = [str(self.top / "BUILD" / "run"), "--base", self.trees.name,
                   "--no-build", "--type", build_type, "--datadir", f"{work}/data"]
            if self.variant == "stock":
                run.append("--stock")
            elif not self.selected or "warm-restart" in self.selected:
                options = (*options, *PATCHED_OPTIONS.get(program, ()))
            command = [sys.executable, str(self.top / "sql-bench/stress" / f"{program}.py"),
                       f"--socket={work}/data/mariadbd.sock",
                       f"--seconds={seconds}"]
            started = False
            try:
                started = not stream(
                    [*run, "--daemon", "--", "--max-connections=200",
                     "--event-scheduler=OFF", *options], self.top)
                status = not started or stream(command, self.top)
            finally:
                stopped = started and stream([*run, "--stop"], self.top)
            if not started:
                results.add(name, "failed")
                return
            # Sanitizers and assertions write to the server's log
            log = pathlib.Path(work, "data", "mariadbd.err").read_text(errors="replace")
            alarm = re.search(r"(?m)^.*(ERROR: AddressSanitizer|LeakSanitizer"
                              r"|runtime error:|Assertion "
                              r"|got signal|\[ERROR\] .*[Tt]able.cache).*$", log)
            race = race_in(self.own_files(), log)
            if alarm:
                print(log[max(0, alarm.start() - 500):][:20000])
            if race:
                print(race)
            if build_type == "tsan":
                print(f"-- {log.count('WARNING: ThreadSanitizer')} reports of ThreadSanitizer, "
                      f"{'some' if race else 'none'} of accesses by the patch set's own files")
            results.add(name, "failed" if status or stopped or alarm or race else "passed")

    def sources(self):
        """The patch set's files, as paths in MariaDB's tree."""
        return [pathlib.PurePosixPath(name)
                for name in overlay.of_topics(
                    overlay.sources(self.top, self.trees.name),
                    topics.read_topics(self.top), self.selected)]

    def own_files(self):
        """Sources that are the patch set's, as ends of paths."""
        return tuple(f"/{path}" for path in self.sources()
                     if path.parts[0] in ("include", "mysys", "sql", "storage", "plugin")
                     and path.suffix in (".c", ".cc", ".h"))

    # ------------------------------------------------------------ topologies

    def program(self, what, build_type):
        """A test that is a program of its own: BUILD/lib/WHAT_test.py.  It prints
        'PASS name' or 'FAIL name: why' for each thing that it checks, or 'SKIP name: why'
        if an error of MariaDB's has ended it."""
        of_series = what in ("series", "alone", "parts")
        results = Results(f"{what} ({build_type})" if of_series or what == "faults" else what)
        header(what)

        def each_line(line):
            match = re.match(r"(PASS|FAIL|SKIP) ([^\n]*)", line)
            if match and match[1] == "PASS":
                results.outcome.setdefault(match[2], "passed")
            elif match and match[1] == "SKIP":
                results.add(match[2], "skipped")
                results.known.append(match[2].partition(": ")[2])
            elif match:
                results.add(match[2][:300], "failed")

        command = [sys.executable, str(self.top / "BUILD/lib" / f"{what}_test.py"),
                   "--trees", str(self.trees)]
        if of_series:
            command += [f"--type={build_type}",
                        *(f"--topic={name}" for name in self.topics)]
        elif self.seconds is not None and what in ("replication", "galera"):
            command.append(f"--seconds={self.seconds}")
        if what == "faults":
            command += [f"--type={build_type}", f"--variant={self.variant}",
                        *([f"--minutes={self.minutes}"] if self.minutes else ())]
        if self.tables and what == "upgrade":
            command.append(f"--tables={self.tables}")
        if self.older and what in ("replication", "upgrade"):
            command.append(f"--from-trees={self.trees.parent / self.older}")
        elif what == "upgrade" and self.selected:
            # Those of a selection have the stock source of the whole
            command.append(f"--whole-trees={(self.trees / 'stock').resolve().parent}")
        status = stream(command, self.top, each_line)
        if not results.outcome or (status and not results.names("failed")):
            results.add(f"{what} (exit status {status})", "failed")
        return results

    def part(self, name, build_type):
        """The tests of a part, with the server that has nothing else."""
        of_part = copy.copy(self)
        of_part.trees = self.trees.parent / "part" / name / self.trees.name
        of_part.topics = []
        of_part.selected = topics.read_selection(of_part.trees).names
        results = of_part.topic_suite(build_type)
        results.title = f"part {name} ({build_type})"
        return results

    def run(self, what, build_type):
        if what in PROGRAMS:
            return self.program(what, build_type)
        if what.startswith("part:"):
            return self.part(what[len("part:"):], build_type)
        if what == "unit":
            return self.unit(build_type)
        if what == "stress":
            return self.stress(build_type)
        if what == "suite" and (self.topics or self.selected):
            return self.topic_suite(build_type)
        if what == "debug-only":
            results = self.mtr(None, build_type, everything.debug_tests(
                self.trees / self.variant / "source"))
            results.title = f"{what} ({build_type})"
            return results
        return self.mtr(OUR_SUITE if what == "suite" else what, build_type)

    def record(self, name, runs, all_results):
        """Keep how many tests passed, of each run, or of all by one name."""
        counts = {}
        for run, results in zip(runs, all_results):
            what, _, build_type = run.rpartition(":")
            command = name or what + (f" --type {build_type}"
                                      if build_type != "release" else "")
            if not name and self.older:
                command += f" --from {self.older}"
            if not name and self.tables:
                command += f" --tables {self.tables}"
            if self.arch:
                command += f" --arch {self.arch}"
            before = counts.get(command, (0, 0, 0))
            counts[command] = tuple(map(sum, zip(before, self.counts(results))))
        for command, found in counts.items():
            everything.record(self.top, everything.version_of(self.trees), command,
                              found, everything.revision(self.top))
        pages.write(self.top)

    # --------------------------------------------------------------- summary

    def excuse(self, name):
        """The reason why a test may fail, or None."""
        return self.known.get(name.split(" ")[0])

    def counts(self, results):
        """How many tests of a run passed, failed and were skipped."""
        failed = results.names("failed")
        excused = sum(bool(self.excuse(name)) for name in failed)
        return (len(results.names("passed")), len(failed) - excused,
                len(results.names("skipped")) + excused)

    def summary(self, all_results):
        """Print the table; return the number of failures that count."""
        print("\n" + "=" * 72)
        totals = [0, 0, 0]
        width = max([len("total")] + [len(r.title) for r in all_results])
        print(f"{'':{width}}  {'passed':>7} {'failed':>7} {'skipped':>7}")
        notes = []
        for results in all_results:
            failed = results.names("failed")
            row = self.counts(results)
            totals = [a + b for a, b in zip(totals, row)]
            print(f"{results.title:{width}}  " + " ".join(f"{count:7d}" for count in row))
            for name in failed:
                reason = self.excuse(name)
                notes.append(f"failed, as on the unpatched server, counted as "
                             f"skipped: {name}: {reason}" if reason
                             else f"FAILED: {results.title}: {name}")
            for why, count in sorted(collections.Counter(results.known).items()):
                notes.append(f"MariaDB's own error, counted as skipped: {results.title}: "
                             f"{why}, {count} times")
            for name in sorted(results.retried):
                notes.append(f"passed when run again: {results.title}: {name}")
        print(f"{'total':{width}}  " + " ".join(f"{count:7d}" for count in totals))
        for note in notes:
            print(note)
        print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped", flush=True)
        return totals[1]


def main():
    parser = argparse.ArgumentParser(
        description="Run tests and sum them up (called by BUILD/test).")
    parser.add_argument("--top", type=pathlib.Path, required=True)
    parser.add_argument("--trees", type=pathlib.Path, required=True)
    parser.add_argument("--variant", choices=("stock", "patched"), default="patched")
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--tables", type=int)
    parser.add_argument("--minutes", type=int)
    parser.add_argument("--arch", help="a foreign one; qemu runs its programs")
    parser.add_argument("--from", dest="older", metavar="SERIES")
    parser.add_argument("--without-series", metavar="SERIES", default=[], action="append",
                        help="a series whose source could not be fetched")
    parser.add_argument("--topic", action="append", default=[],
                        help="with 'suite', 'series' and 'alone': only this one")
    parser.add_argument("--record", action="store_true",
                        help="keep the numbers in " + everything.RECORDS)
    parser.add_argument("runs", nargs="+", metavar="WHAT:TYPE")
    words = sys.argv[1:]
    mtr_options = []
    if "--" in words:
        at = words.index("--")
        words, mtr_options = words[:at], words[at + 1:]
    arguments = parser.parse_args(words)
    known = [topic.name for topic in topics.read_topics(arguments.top)]
    for name in arguments.topic:
        if name not in known:
            parser.error(f"no topic {name}; there are {', '.join(known)}")
    runner = Runner(mtr_options=mtr_options, **vars(arguments))
    all_results = []
    interrupted = False
    runs = arguments.runs
    whole = runs == ["all"]
    if whole:
        runner.seconds = runner.seconds or everything.SECONDS
        runs = everything.RUNS
    try:
        for run in runs:
            what, _, build_type = run.rpartition(":")
            all_results.append(runner.run(what, build_type))
    except KeyboardInterrupt:
        interrupted = True
        print("\ninterrupted")
    failures = runner.summary(all_results)
    if arguments.record and not interrupted:
        runner.record("all" if whole else None, runs, all_results)
    return 1 if failures or interrupted or not all_results else 0


if __name__ == "__main__":
    common.end("tests", main)
