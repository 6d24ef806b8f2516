#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Test each of MariaDB's own errors by itself (called by BUILD/test alone).

The first topics of the series, below topics.ALONE, correct errors and
weaknesses of MariaDB's own.  A test of each has to fail on MariaDB's source,
and to pass on that source with the topic's patch alone.  The tests are the mtr
and unit tests that the topic brings, and the programs that PROGRAMS names.

MariaDB's source with all of these tests and without any of the patches is
built first, and all tests are run on it; then with one patch after the other,
each with the tests of its topic.  Source and build trees are those of
series_test.py.  What a test has given is kept in out/BASE/series/alone, by the
contents of the source and of the program; remove it to begin anew.

Exit status: 0 as it has to be, 1 not, 2 wrong usage.
"""

import json
import re
import sys

import common
import overlay
import run_tests
import series_test
import topics

# Programs of sql-bench, of topics whose errors no mtr test can reach: they
# hold single calls of the server, or lose what it has not synced
PROGRAMS = {
    "innodb-checkpoint-lsn": ("held_calls.py order",),
    "innodb-write-during-fsync": ("held_calls.py mark",),
    "innodb-compressed-assertion": ("held_calls.py unzip",),
    "innodb-removed-pages": ("held_calls.py flush",),
}
# Why a topic has no test that fails without it
UNTESTED = {
    "debian-debug-builds": "a debug build that starts",
    "mtr-open-files-limit": "is about mtr itself; table_cache.many_open_tables needs it",
}
MINUTES = 6                     # for a test: one of the errors makes a thread wait for ever
# The lines that explain best why a test failed, the best first
REASONS = (r"Assertion .*? failed", r"safe_mutex: .*", r"got signal \d+",
           r"Test case timeout", r"mysqltest: At line .*", r"(?m)^not ok .*",
           r"(?m)^-(?!-).*\n\+(?!\+).*$", r"(?m)^[-+](?![-+]).*\S.*$")


def reason_in(text):
    """Why a test failed, in one line."""
    for pattern in REASONS:
        match = re.search(pattern, text)
        if match:
            return " ".join(match[0].split())[:160]
    return "failed"


class Sections:
    """What mtr writes about each test, without what it finds in the logs of servers
    that several tests have used."""

    def __init__(self):
        self.text = {}
        self.test = None

    def add(self, line):
        match = run_tests.MTR_LINE.match(line)
        if match:
            self.test = match[1]
        elif line.startswith("***Warnings generated in error logs"):
            self.test = None
        self.text[self.test] = self.text.get(self.test, "") + line


def is_of_unit_tests(path):
    return bool(re.search(r"(^|/)unittest/(.*/)?CMakeLists\.txt$", path))


class Alone(series_test.Stages):
    """Topics without those before them, and MariaDB's source with their tests."""

    def __init__(self, top, trees, build_type):
        super().__init__(top, trees, build_type)
        self.kept = self.tree / "alone"
        self.topics = [topic for topic in self.maker.topics
                       if topic.number < topics.ALONE and self.maker.paths_of(topic)]
        self.runner.mtr_options = ["--retry=1", f"--testcase-timeout={MINUTES}"]

    # --------------------------------------------------------------- sources

    def without_patches(self):
        """MariaDB's source with the tests of all topics."""
        names = {topic.name for topic in self.topics}
        state = {}
        for topic in self.topics:
            state.update(self.maker.new_files[topic.name])
            for path in self.maker.paths_of(topic):
                if path in self.maker.edited and is_of_unit_tests(path):
                    state[path] = self.maker.content(path, names)
        return state

    def with_patch(self, topic):
        state = self.without_patches()
        for path in self.maker.paths_of(topic):
            if path in self.maker.edited and not is_of_unit_tests(path):
                state[path] = self.maker.content(path, {topic.name})
        return state

    def tests(self, topic):
        """mtr tests, unit tests and programs."""
        names, units = run_tests.tests_of(self.maker.paths_of(topic))
        return (self.existing(names, self.without_patches()), units,
                set(PROGRAMS.get(topic.name, ())))

    # ------------------------------------------------------------------ runs

    def file_of(self, state, test):
        """The file that keeps what a test has given on a source."""
        more = f" {test}"
        if " " in test:                 # a program
            more += "".join(
                overlay.digest(path.read_bytes()) for path in
                sorted((self.top / "sql-bench").rglob("*.[pc]*"))
                if path.suffix in (".py", ".c"))
        return self.kept / self.name_of(state, more)

    def run_mtr(self, names):
        sections = Sections()
        outcome = self.runner.mtr(None, self.type, sorted(names), sections.add).outcome
        for name in names:
            what = [outcome[each] for each in outcome if each.partition(" ")[0] == name]
            if "failed" in what:
                yield name, reason_in(sections.text.get(name, ""))
            else:
                yield name, what[0] if what else "did not run"

    def run_unit(self, unit):
        status, output = common.answer(
            ["ctest", "--output-on-failure", "--no-tests=error", "-R", f"^{unit}$"],
            cwd=self.build)
        print(output, flush=True)
        return reason_in(output) if status else "passed"

    def run_program(self, program):
        file, *words = program.split()
        status, output = common.answer(
            [sys.executable, self.top / "sql-bench" / file, self.tree, *words, "--type",
             self.type], cwd=self.top)
        print(output, flush=True)
        last = (output.strip().splitlines() or ["failed"])[-1]
        if ": skipped" in last:
            return "skipped"
        if status > 1:
            return "did not run"
        if not status:
            return "passed"
        return last.partition(": ")[2].removeprefix("error: ") or last

    def results_on(self, state, names, units, programs):
        """{test: 'passed', 'skipped' or why it failed}, on one source."""
        found = {}
        for test in names | units | programs:
            before = overlay.read(self.file_of(state, test))
            if before:
                found[test] = json.loads(before)
        names, units, programs = (tests - set(found) for tests in (names, units, programs))
        if not names | units | programs:
            return found
        if not self.compile(state):
            return dict.fromkeys(names | units | programs, "does not build")

        def keep(test, result):
            found[test] = result
            if result != "did not run":
                overlay.write(self.file_of(state, test),
                              json.dumps(result).encode(), False)

        for unit in sorted(units):
            keep(unit, self.run_unit(unit))
        for program in sorted(programs):
            keep(program, self.run_program(program))
        if names:
            for name, result in self.run_mtr(names):
                keep(name, result)
        return found

    def run(self, wanted):
        """Returns the number of tests that did not do what they have to."""
        self.prepare()
        self.kept.mkdir(parents=True, exist_ok=True)
        chosen = [topic for topic in self.topics if not wanted or topic.name in wanted]
        tests = {topic.name: self.tests(topic) for topic in chosen}
        run_tests.header("MariaDB's source with the tests, without any patch")
        stock = self.results_on(
            self.without_patches(),
            *(set().union(*(each[kind] for each in tests.values())) for kind in range(3)))
        rows, wrong = [], 0
        for topic in chosen:
            title = f"{topic.number:02}-{topic.name} ({self.type})"
            if not any(tests[topic.name]):
                rows.append((topic.name, "none: " + UNTESTED[topic.name], "", ""))
                continue
            run_tests.header(f"with one patch: {title}: {topic.title}")
            alone = self.results_on(self.with_patch(topic), *tests[topic.name])
            for test in sorted(set().union(*tests[topic.name])):
                rows.append((topic.name, test, stock[test], alone[test]))
                if "skipped" in (stock[test], alone[test]):
                    continue
                problem = verdict(stock[test], alone[test])
                print(f"FAIL {title}: {test}: {problem}" if problem
                      else f"PASS {title}: {test}", flush=True)
                wrong += bool(problem)
        print_table(rows)
        return wrong


def verdict(stock, alone):
    """What is wrong, or None."""
    if stock in ("passed", "does not build", "did not run"):
        return f"{stock} without the patch"
    if alone != "passed":
        return f"with the patch: {alone}"
    return None


def print_table(rows):
    print("\n| topic | test | without the patch | with it alone |\n"
          "|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    print(flush=True)


if __name__ == "__main__":
    common.end("alone", lambda: series_test.main(
        Alone, "Test each of MariaDB's own errors with and without its patch", "debug"))
