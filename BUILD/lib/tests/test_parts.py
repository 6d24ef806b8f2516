# SPDX-License-Identifier: GPL-2.0-only
"""Tests of what can be taken by itself: the choice of topics, what each needs of
the others, and the patches of each choice."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "BUILD/lib"))
import needs  # noqa: E402
import overlay  # noqa: E402
import series  # noqa: E402
import topics  # noqa: E402

# Directories of the sources that are there, of each series
TREES = [TOP / "out" / path.stem[len("base-"):]
         for path in sorted(TOP.glob("cmake/base-*.cmake"))
         if (TOP / "out" / path.stem[len("base-"):]
             / "stock/version").exists()]
IDENTITY = {"GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{role}_{field}": "x" for role in ("AUTHOR", "COMMITTER")
               for field in ("NAME", "EMAIL")}}


class ChoiceTest(unittest.TestCase):
    PARTS = {"low": "", "high": "", "other": ""}

    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.top = pathlib.Path(work.name)
        (self.top / "BUILD/topics").mkdir(parents=True)
        (self.top / "BUILD/parts").write_text("low\nhigh\nother\n")
        for number, name, part, need in (
                (30, "one", "low", ""), (31, "two", "low", ""),
                (32, "three", "high", "Needs: one\n"),
                (33, "four", "high", "Needs: three\n"),
                (34, "five", "other", "")):
            (self.top / f"BUILD/topics/{number}-{name}").write_text(
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
                            ((["none"],), "there is no none; there are low, "
                             "high, other"),
                            (([], ["low"]), "no low; there are one, two"),
                            (([], [], ["x"]), "there is no x"),
                            ((["low"], [], ["low"]), "nothing is left")):
            with self.assertRaisesRegex(topics.TopicError, text):
                self.choose(*words)

    def test_topic_by_its_number_or_file_name(self):
        for name in ("33", "33-four"):
            self.assertEqual(self.choose([], [name])[:2],
                             ("one three four", "topic-four"))
        self.assertEqual(self.choose([], [], ["32-three"])[0], "one two five")
        with self.assertRaisesRegex(topics.TopicError, "did you mean three?"):
            self.choose([], ["thre"])

    def test_selection_is_written_and_read(self):
        trees = self.top / "out"
        trees.mkdir()
        self.assertIsNone(topics.read_selection(trees))
        program = [sys.executable, str(TOP / "BUILD/lib/topics.py"),
                   f"--top={self.top}", "--part=high"]
        label = subprocess.run(program, check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        self.assertEqual(label, "high\n")
        said = subprocess.run([*program, f"--write={trees}"], check=True,
                              text=True, stdout=subprocess.PIPE).stdout
        self.assertIn("3 of 5 topics: one three four\n   also taken", said)
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
        return sorted({tuple(topics.closure(self.topics, names))
                       for names in asked}, key=len)

    def test_patches_of_each_choice_apply_with_each_tool(self):
        for trees in TREES:
            with tempfile.TemporaryDirectory() as work:
                self.apply(series.Maker(TOP, trees, trees.name),
                           pathlib.Path(work))

    def apply(self, maker, work):
        environment = {"HOME": str(work), **IDENTITY}
        git = series.Git(work / "repository", environment)
        git.where.mkdir()
        git("init", "-q", "-b", "stock")
        for path in {path for topic in maker.topics
                     for path in maker.paths_of(topic)}:
            content = maker.original(path)
            if content is not None:
                overlay.write(git.where / path, content, (
                    maker.stock / "source" / path).stat().st_mode & 0o100)
        git("add", "-f", "--all", ".")
        git("commit", "-q", "-m", "stock")
        for names in self.closures():
            with self.subTest(base=maker.base, topics=" ".join(names)):
                self.apply_choice(maker.of(names), git, work / "patches")

    def apply_choice(self, maker, git, directory):
        stages = list(maker.stages())
        if not stages:                  # MariaDB does not need it
            return
        maker.commit(git, stages, git.commit_of("stock"), "wanted")
        git("format-patch", "-q", "--zero-commit", "--no-signature",
            "--no-renames", "--full-index", "-o", str(directory),
            "stock..wanted")
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


class CheckoutTest(unittest.TestCase):
    """series.py --git."""

    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)
        self.top, self.server = self.work / "top", self.work / "server"
        self.put(self.top / "BUILD/parts", "one  what\ntwo  what\n")
        for number, name in ((31, "one"), (32, "two")):
            self.put(self.top / f"BUILD/topics/{number}-{name}",
                     f"{overlay.LICENSE}\nPart: {name}\n\nSubject {name}\n\n"
                     f"Files:\n  sql/{name}.cc\n")
            self.put(self.top / f"sql/{name}.cc", f"int {name};\n")
        self.put(self.top / "sql/a.cc.patch",
                 f"{overlay.LICENSE}\nDescription: x\n\n--- a/sql/a.cc\n"
                 "+++ b/sql/a.cc\n@@ -1,1 +1,2 @@ one\n first\n+1\n"
                 "@@ -3,1 +4,2 @@ two\n third\n+2\n")
        self.put(self.top / "BUILD/lib/replaced.sha256", "")
        self.put(self.server / "sql/a.cc", "first\nsecond\nthird\n")
        self.put(self.server / "VERSION", "MYSQL_VERSION_MAJOR=10\n"
                 "MYSQL_VERSION_MINOR=11\nMYSQL_VERSION_PATCH=18\n")
        for directory in (self.top, self.server):
            git = self.git(directory)
            git("init", "-q", "-b", "main")
            git("add", ".")
            git("commit", "-q", "-m", "all")

    def git(self, directory):
        return series.Git(directory, {"HOME": str(self.work), **IDENTITY})

    @staticmethod
    def put(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_series(self, *words):
        trees = self.work / "trees/10.11"
        trees.mkdir(parents=True, exist_ok=True)
        return subprocess.run(
            [sys.executable, str(TOP / "BUILD/lib/series.py"),
             f"--top={self.top}", f"--trees={trees}", "--base=10.11",
             f"--git={self.server}", *words], text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def test_branch_has_a_commit_of_each_topic(self):
        (self.server / "sql/a.cc").write_text("edited\n")
        done = self.run_series()
        self.assertEqual(done.returncode, 0, done.stdout)
        git = self.git(self.server)
        self.assertEqual(git("log", "--format=%s", "table-cache").decode(),
                         "Subject two\nSubject one\nall\n")
        self.assertEqual(git("show", "table-cache:sql/a.cc").decode(),
                         "first\n1\nsecond\nthird\n2\n")
        self.assertEqual(git("show", "table-cache:sql/two.cc").decode(),
                         "int two;\n")
        # What the user has there stays
        self.assertEqual((self.server / "sql/a.cc").read_text(), "edited\n")
        self.assertEqual(git("status", "--short").decode(), " M sql/a.cc\n")
        self.assertIn("has a branch table-cache already",
                      self.run_series().stdout)

    def test_branch_has_the_chosen_topics_only(self):
        self.put(self.work / "trees/10.11/selection", "two\ntwo\n")
        done = self.run_series("--branch=mine")
        self.assertIn("branch mine in", done.stdout)
        git = self.git(self.server)
        self.assertEqual(git("show", "mine:sql/a.cc").decode(),
                         "first\nsecond\nthird\n2\n")
        self.assertTrue(re.search("Subject two\nall\n$", git(
            "log", "--format=%s", "mine").decode()))

    def test_another_release_is_refused(self):
        self.put(self.server / "sql/a.cc", "first\nsecond\nfourth\n")
        self.git(self.server)("commit", "-q", "-a", "-m", "other")
        done = self.run_series()
        self.assertEqual(done.returncode, 1)
        self.assertIn("hunk 2 (two) is found 0 times", done.stdout)


if __name__ == "__main__":
    unittest.main()
