#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Build and test the patch set topic by topic (called by BUILD/test series).

Stage N is MariaDB's source with the first N patches of the series.  Each stage
is built, and passes the tests of its topics: the unit tests and mtr tests that
they bring, and MariaDB's tests that they edit.  The stages share one source
and one build tree a type, so a stage compiles what its patch changes, and
ccache has it from the run before.

A stage is not built again, nor is a test run again that has passed, while the
stage's files stay as they are: an interrupted run continues where it was.
out/BASE/series/passed has what has passed; remove it to begin anew.

Exit status: 0 all passed, 1 something failed, 2 wrong usage.
"""

import argparse
import functools
import json
import os
import pathlib
import shutil
import sys
import time

import common
import overlay
import run_tests
import series

say = functools.partial(print, "-- stages:", flush=True)


class Stages:
    def __init__(self, top, trees, build_type):
        self.top = top
        self.trees = trees
        self.base = trees.name
        self.type = build_type
        self.own_tests = bool(os.environ.get("SERIES_OWN_TESTS"))
        self.maker = series.Maker(top, trees, self.base)
        self.tree = trees / "series"
        self.source = self.tree / "source"
        self.build = self.tree / build_type
        self.passed = self.tree / "passed"
        self.stages = list(self.maker.stages())
        self.topics = [topic for topic, _ in self.stages]
        self.runner = run_tests.Runner(top, trees, "series")

    # --------------------------------------------------------------- source

    def prepare(self):
        """The source of MariaDB's version, whatever patches it has."""
        stock = self.trees / "stock" / "source"
        fetched = overlay.read(stock / ".fetched")
        if (self.source.is_dir()
                and (overlay.read(self.source / ".fetched") != fetched
                     or overlay.read(self.tree / "version") != self.maker.version.encode())):
            shutil.rmtree(self.source)
        if not self.source.is_dir():
            say("copying MariaDB's source")
            overlay.write(self.tree / "files.json", b"[]", False)
            overlay.write(self.tree / "version", self.maker.version.encode(), False)
            overlay.copy_source(stock, self.source)

    def switch_to(self, state):
        """Bring the source to a stage."""
        listed = self.tree / "files.json"
        before = set(json.loads(listed.read_text()))
        # First, so that an interrupted run knows what to look at
        overlay.write(listed, json.dumps(sorted(before | set(state))).encode(), False)
        for path in sorted(before | set(state)):
            want = state.get(path, self.maker.original(path))
            file = self.source / path
            if overlay.read(file) == want:
                continue
            if want is None:
                file.unlink()
            else:
                overlay.write(file, want, self.maker.overlay.executable(path))
        overlay.write(listed, json.dumps(sorted(state)).encode(), False)

    # ---------------------------------------------------------------- build

    def compile(self, state):
        """Build a stage.  'configured-of' in the build tree has a checksum of
        the CMake files that it was configured from: MariaDB's CMake is to run
        anew, not on its own cache (configure.cmake)."""
        self.switch_to(state)
        cmake = self.name_of({path: content for path, content in state.items()
                              if path.endswith("CMakeLists.txt")})
        mark = self.build / "configured-of"
        if overlay.read(mark) != cmake.encode():
            (self.build / "configured-with.txt").unlink(missing_ok=True)
        quick = self.trees / "cmake" / "quick_build.cmake"
        options = ""
        if quick.exists():
            options = f"-DCMAKE_PROJECT_INCLUDE={quick};-DPRECOMPILE_PYTHON={sys.executable}"
        status = run_tests.stream(
            ["cmake", "-D", f"TREES={self.trees}", "-D", f"BASE={self.base}",
             "-D", "TREE=series", "-D", f"TYPE={self.type}",
             "-D", f"BUILD_TYPE={self.type}", "-D", f"OPTIONS={options}",
             "-P", str(self.top / "cmake" / "build_tree.cmake")], self.top)
        if not status:
            overlay.write(mark, cmake.encode(), False)
        return not status

    # ----------------------------------------------------------------- run

    def name_of(self, state, more=""):
        """A file name for what a source gives on this build."""
        text = "".join(f"{path} {overlay.digest(content)}\n"
                       for path, content in sorted(state.items()))
        return overlay.digest(f"{text}{self.maker.version} {self.type}{more}".encode())[:32]

    def record_of(self, state):
        """The file that tells which tests a stage has passed."""
        return self.passed / self.name_of(state)

    def paths_until(self, index):
        """What the topics up to one change, or the topic alone."""
        chosen = self.stages[:index + 1]
        if self.own_tests and index + 1 < len(self.stages):
            chosen = chosen[-1:]
        return {path for topic, _ in chosen for path in self.maker.paths_of(topic)}

    def run(self, wanted):
        """Returns the number of stages that failed.  Prints PASS or FAIL for
        each, as run_tests.py expects it."""
        self.prepare()
        self.passed.mkdir(parents=True, exist_ok=True)
        failed = 0
        for index, (topic, state) in enumerate(self.stages):
            if wanted and topic.name not in wanted:
                continue
            title = f"{topic.number:02}-{topic.name} ({self.type})"
            names, units = run_tests.tests_of(self.paths_until(index))
            names = self.existing(names, state)
            record = self.record_of(state)
            done = set((overlay.read(record) or b"").decode().split("\n"))
            if record.exists() and names | units <= done:
                print(f"PASS {title}: built before, {len(names | units)} tests "
                      "had passed or been skipped", flush=True)
                continue
            run_tests.header(f"stage {index + 1} of {len(self.stages)}: {title}: {topic.title}")
            problem = self.build_and_test(state, names - done, units - done, done, record)
            print(f"FAIL {title}: {problem}" if problem else f"PASS {title}", flush=True)
            failed += bool(problem)
        return failed

    def build_and_test(self, state, names, units, done, record):
        """Returns what failed, in words, or None."""
        begin = time.monotonic()
        if not self.compile(state):
            return "does not build"
        built = time.monotonic()
        results = self.runner.tests(names, units, self.type)
        say(f"built in {built - begin:.0f} s, {len(results.names('passed'))} tests passed and "
            f"{len(results.names('skipped'))} skipped in {time.monotonic() - built:.0f} s")
        bad = [name for name in results.names("failed") if not self.runner.excuse(name)]
        # 'main.func 'innodb'' is the test main.func, which may have failed
        # with another engine
        lost = {name.split(" ")[0] for name in bad}
        done |= ({name.split(" ")[0] for name in results.outcome}
                 | {name for name in names if not bad}) - lost
        overlay.write(record, "\n".join(sorted(done)).encode(), False)
        return "failed: " + " ".join(bad) if bad else None

    def existing(self, names, state):
        """Those mtr tests whose test file is there: a result may be of a test
        that only another series has."""
        return {name for name in names
                if any(path in state or (self.source / path).is_file()
                       for path in run_tests.files_of_test(name))}


def main(make=Stages, description="Build and test each stage of the series",
         build_type="release"):
    """Run what 'make' makes of the trees; alone_test.py calls this, too."""
    parser = argparse.ArgumentParser(description=f"{description} (called by BUILD/test).")
    parser.add_argument("--trees", type=pathlib.Path, required=True)
    parser.add_argument("--type", default=build_type)
    parser.add_argument("--topic", action="append", default=[], help="only this one")
    arguments = parser.parse_args()
    made = make(common.TOP, arguments.trees.resolve(), arguments.type)
    known = [topic.name for topic in made.topics]
    for name in arguments.topic:
        if name not in known:
            parser.error(f"no topic {name}; there are {', '.join(known)}")
    return 1 if made.run(arguments.topic) else 0


if __name__ == "__main__":
    common.end("stages", main)
