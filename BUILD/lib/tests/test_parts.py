# SPDX-License-Identifier: GPL-2.0-only
"""Tests of what can be taken by itself: the choice of topics, what each needs of
the others, and the patches of each choice."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import TOP, WorkTest, git, put

import needs
import overlay
import series
import topics
from common import Problem, answer

# Directories of the sources that are there, of each series
TREES = [TOP / "out" / path.stem[len("base-"):]
         for path in sorted(TOP.glob("cmake/base-*.cmake"))
         if (TOP / "out" / path.stem[len("base-"):] / "stock/version").exists()]


class ChoiceTest(WorkTest):
    PARTS = {"low": "", "high": "", "other": ""}

    def setUp(self):
        super().setUp()
        self.top = self.work
        put(self.top / "BUILD/parts", "low\nhigh\nother\n")
        for number, name, part, need in (
                (30, "one", "low", ""), (31, "two", "low", ""),
                (32, "three", "high", "Needs: one\n"),
                (33, "four", "high", "Needs: three\n"),
                (34, "five", "other", "")):
            put(self.top / f"BUILD/topics/{number}-{name}",
                f"{overlay.LICENSE}\nPart: {part}\n{need}\nWhat\n\nFiles:\n")
        self.topics = topics.read_topics(self.top)

    def choose(self, *words):
        selection, sentences = topics.choose(self.topics, self.PARTS, *words)
        return " ".join(selection.names), selection.label, sentences

    def test_part_takes_what_it_needs(self):
        self.assertEqual(self.choose(["high"]),
                         ("one three four", "high",
                          ["also taken, because three needs it: one"]))

    def test_topics_and_parts_are_joined(self):
        self.assertEqual(self.choose(["other"], ["two"]),
                         ("two five", "other.topic-two", []))

    def test_what_needs_a_topic_is_left_out_with_it(self):
        self.assertEqual(self.choose([], [], ["three"]),
                         ("one two five", "without-three",
                          ["left out, because it needs three: four"]))
        self.assertEqual(self.choose(["high"], [], ["four"])[0], "one three")
        self.assertEqual(self.choose([], [], ["low"])[0], "five")

    def test_what_cannot_be_chosen_is_named(self):
        for words, text in ((([], ["four"], ["one"]),
                             "four cannot be taken, because it needs three"),
                            ((["none"],), "there is no none; there are low, high, other"),
                            (([], ["low"]), "no low; there are one, two"),
                            (([], [], ["x"]), "there is no x"),
                            ((["low"], [], ["low"]), "nothing is left")):
            with self.assertRaisesRegex(Problem, text):
                self.choose(*words)

    def test_topic_by_its_number_or_file_name(self):
        for name in ("33", "33-four"):
            self.assertEqual(self.choose([], [name])[:2],
                             ("one three four", "topic-four"))
        self.assertEqual(self.choose([], [], ["32-three"])[0], "one two five")
        with self.assertRaisesRegex(Problem, "did you mean three?"):
            self.choose([], ["thre"])

    def test_selection_is_written_and_read(self):
        trees = self.top / "out"
        trees.mkdir()
        self.assertIsNone(topics.read_selection(trees))
        program = [sys.executable, str(TOP / "BUILD/lib/topics.py"),
                   f"--top={self.top}", "--part=high"]
        self.assertEqual(answer(program), (0, "high\n"))
        self.assertIn("3 of 5 topics: one three four\n   also taken",
                      answer([*program, f"--write={trees}"])[1])
        self.assertEqual(topics.read_selection(trees),
                         ("high", ["one", "three", "four"]))


class PatchSetTest(unittest.TestCase):
    def setUp(self):
        if not TREES:
            self.skipTest("no source of MariaDB's is there")
        self.topics = topics.read_topics(TOP)

    def test_no_topic_needs_one_that_it_does_not_name(self):
        for trees in TREES:
            self.assertEqual(list(needs.undeclared(
                TOP, trees.name, trees / "stock/source", self.topics)), [])

    def closures(self):
        """The topics of each choice of one part or topic, once each."""
        asked = [{topic.name for topic in self.topics if topic.part == part}
                 for part in topics.read_parts(TOP)]
        asked += [{topic.name} for topic in self.topics]
        asked += [{topic.name for topic in self.topics}]
        return sorted({tuple(topics.closure(self.topics, names)) for names in asked}, key=len)

    def test_patches_of_each_choice_apply_with_each_tool(self):
        for trees in TREES:
            with tempfile.TemporaryDirectory() as work:
                self.apply(series.Maker(TOP, trees, trees.name), pathlib.Path(work))

    def apply(self, maker, work):
        git = maker.repository(work, {path for topic in maker.topics
                                      for path in maker.paths_of(topic)})
        for names in self.closures():
            with self.subTest(base=maker.base, topics=" ".join(names)):
                self.apply_choice(maker.of(names), git, work / "patches")

    def apply_choice(self, maker, git, directory):
        stages = list(maker.stages())
        if not stages:                  # MariaDB does not need it
            return
        maker.write_patches(git, stages, "wanted", directory)
        patches = sorted(map(str, directory.iterdir()))
        wanted = git("rev-parse", "wanted^{tree}")
        git("apply", "--index", *patches)
        self.assertEqual(git("write-tree"), wanted, "git apply")
        git("reset", "-q", "--hard")
        git("am", "-q", "--keep-cr", *patches)
        self.assertEqual(git("rev-parse", "HEAD^{tree}"), wanted, "git am")
        git("reset", "-q", "--hard", f"HEAD~{len(stages)}")
        for patch in patches:
            subprocess.run(["patch", "-p1", "-F0", "-s", "-i", patch],
                           cwd=git.where, check=True, stdout=subprocess.PIPE)
        git("add", "-f", "--all", ".")
        self.assertEqual(git("write-tree"), wanted, "patch")
        git("reset", "-q", "--hard")
        git("branch", "-q", "-D", "wanted")
        shutil.rmtree(directory)


class CheckoutTest(WorkTest):
    """series.py --git."""

    def setUp(self):
        super().setUp()
        self.top, self.server = self.work / "top", self.work / "server"
        put(self.top / "BUILD/parts", "one  what\ntwo  what\n")
        for number, name in ((31, "one"), (32, "two")):
            put(self.top / f"BUILD/topics/{number}-{name}",
                     f"{overlay.LICENSE}\nPart: {name}\n\nSubject {name}\n\n"
                     f"Files:\n  sql/{name}.cc\n")
            put(self.top / f"sql/{name}.cc", f"int {name};\n")
        put(self.top / "sql/a.cc.patch",
                 f"{overlay.LICENSE}\nDescription: x\n\n--- a/sql/a.cc\n"
                 "+++ b/sql/a.cc\n@@ -1,1 +1,2 @@ one\n first\n+1\n"
                 "@@ -3,1 +4,2 @@ two\n third\n+2\n")
        put(self.top / "BUILD/lib/replaced.sha256", "")
        put(self.server / "sql/a.cc", "first\nsecond\nthird\n")
        put(self.server / "VERSION", "MYSQL_VERSION_MAJOR=10\n"
                 "MYSQL_VERSION_MINOR=11\nMYSQL_VERSION_PATCH=18\n")
        for directory in (self.top, self.server):
            for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
                git(directory, *words)

    def run_series(self, *words):
        """(status, what it prints)"""
        trees = self.work / "trees/10.11"
        trees.mkdir(parents=True, exist_ok=True)
        return answer([sys.executable, TOP / "BUILD/lib/series.py", f"--top={self.top}",
                       f"--trees={trees}", "--base=10.11", f"--git={self.server}",
                       *words])

    def test_branch_has_a_commit_of_each_topic(self):
        put(self.server / "sql/a.cc", "edited\n")
        status, said = self.run_series()
        self.assertEqual(status, 0, said)
        for words, text in (
                (["log", "--format=%s", "table-cache"], "Subject two\nSubject one\nall\n"),
                (["show", "table-cache:sql/a.cc"], "first\n1\nsecond\nthird\n2\n"),
                (["show", "table-cache:sql/two.cc"], "int two;\n"),
                # What the user has there stays
                (["status", "--short"], " M sql/a.cc\n")):
            self.assertEqual(git(self.server, *words), text)
        self.assertEqual((self.server / "sql/a.cc").read_text(), "edited\n")
        self.assertIn("has a branch table-cache already", self.run_series()[1])

    def test_branch_has_the_chosen_topics_only(self):
        put(self.work / "trees/10.11/selection", "two\ntwo\n")
        self.assertIn("branch mine in", self.run_series("--branch=mine")[1])
        self.assertEqual(git(self.server, "show", "mine:sql/a.cc"), "first\nsecond\nthird\n2\n")
        self.assertEqual(git(self.server, "log", "--format=%s", "mine"), "Subject two\nall\n")

    def test_another_release_is_refused(self):
        put(self.server / "sql/a.cc", "first\nsecond\nfourth\n")
        git(self.server, "commit", "-q", "-a", "-m", "other")
        status, said = self.run_series()
        self.assertEqual(status, 1)
        self.assertIn("hunk 2 (two) is found 0 times", said)
