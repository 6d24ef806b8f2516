# SPDX-License-Identifier: GPL-2.0-only
"""Tests of series.py and topics.py: what belongs to which topic, and that
mistakes are found."""

import re
import unittest

from support import TOP, WorkTest, git, put

import alone_test
import hunks
import overlay
import series
import series_test
import topics
from common import Problem

LICENSE = overlay.LICENSE


def all_sources():
    """{name: files} of the patch set, on each series."""
    found = {}
    for base in ("10.11", "11.8"):
        for name, path in overlay.sources(TOP, base).items():
            found.setdefault(name, set()).add(path)
    return found


class TopicsOfPatchSetTest(unittest.TestCase):
    def setUp(self):
        self.topics = topics.read_topics(TOP)
        self.files = all_sources()

    def owners(self, name):
        """The topics of a new file, or of an edit."""
        if not name.endswith(".patch"):
            return {topics.owner(self.topics, name).name}
        return {hunks.name_of(hunk.topic) for path in self.files[name]
                for hunk in hunks.read_hunks(overlay.split_patch(path.read_text("latin-1"))[1])}

    def test_each_topic_changes_something(self):
        used = set().union(*map(self.owners, self.files))
        self.assertEqual(used, {topic.name for topic in self.topics})

    def test_each_topic_is_in_a_part(self):
        self.assertEqual({topic.part for topic in self.topics}, set(topics.read_parts(TOP)))
        for topic in self.topics:
            self.assertEqual(topic.number < topics.ALONE, topic.part == "fixes", topic.name)
            if topic.part == "fixes":
                self.assertEqual(topic.needs, [], topic.name)

    def test_a_test_and_its_result_have_the_same_topic(self):
        for name in self.files:
            match = re.fullmatch(r"(.*)/t/(\w+)\.(test|opt|cnf)", name)
            if match:
                self.assertEqual(
                    self.owners(name),
                    self.owners(f"{match[1]}/r/{match[2]}.result"), name)

    def test_messages_are_those_of_a_commit(self):
        for topic in self.topics:
            lines = topic.message.splitlines()
            self.assertLessEqual(len(lines[0]), 76, topic.path.name)
            self.assertFalse(lines[0].endswith("."), topic.path.name)
            self.assertEqual(lines[1:2], [""], topic.path.name)
            for line in lines[2:]:
                if not line.startswith("  "):   # a command or a table
                    self.assertLessEqual(len(line), 76, topic.path.name)
            self.assertIn("Tests: ", topic.message, topic.path.name)


class TopicsTest(WorkTest):
    def setUp(self):
        super().setUp()
        self.top = self.work
        self.topic("10-first", "  sql/a*\n  sql/b.cc\n")
        self.topic("20-second", "  sql/deep/*\n")

    def topic(self, name, files, message="What changes\n\nWhy.\n", heads=""):
        put(self.top / "BUILD/topics" / name, f"{LICENSE}\n{heads}\n{message}\nFiles:\n{files}")

    def problems(self, *paths):
        return "\n".join(topics.problems(topics.read_topics(self.top), paths))

    def test_topic_is_read(self):
        first, second = topics.read_topics(self.top)
        self.assertEqual((first.number, first.name, first.title),
                         (10, "first", "What changes"))
        self.assertEqual(first.message, "What changes\n\nWhy.")
        self.assertEqual(first.patterns, ["sql/a*", "sql/b.cc"])
        self.assertTrue(second.has("sql/deep/x"))
        self.assertFalse(second.has("sql/deep/er/x"))

    def test_problems_are_named(self):
        good = ("sql/a.cc", "sql/b.cc", "sql/deep/c.h")
        self.assertEqual(self.problems(*good), "")
        self.assertEqual(self.problems(*good, "sql/d.cc"),
                         "sql/d.cc: no file in BUILD/topics lists it")
        self.assertIn("10-first: no file of the patch set fits sql/b.cc",
                      self.problems("sql/a.cc", "sql/deep/c"))
        self.topic("30-third", "  sql/b.cc\n")
        self.assertIn("sql/b.cc: more than one file in BUILD/topics lists it: "
                      "10-first, 30-third", self.problems(*good))

    def test_heads_are_read(self):
        put(self.top / "BUILD/parts", f"# {LICENSE}\nsome  what some gives\n")
        self.topic("30-third", "", heads="Part: some\nNeeds: first second\n")
        self.topic("40-fourth", "", heads="Needs: third\n")
        self.topic("50-fifth", "")
        found = topics.read_topics(self.top)
        third = found[2]
        self.assertEqual((third.part, third.needs, third.title),
                         ("some", ["first", "second"], "What changes"))
        self.assertEqual(topics.read_parts(self.top),
                         {"some": "what some gives"})
        self.assertEqual(topics.closure(found, {"fourth", "second"}),
                         {"first": "third", "second": None, "third": "fourth",
                          "fourth": None})
        self.assertEqual(topics.dependents(found, {"first"}),
                         {"first": None, "third": "first", "fourth": "third"})

    def test_mistakes_in_heads_are_errors(self):
        put(self.top / "BUILD/parts", "some  what\n")
        self.topic("30-third", "")
        for heads, text in (("Part: other\n", "no part other"),
                            ("Needs: third\n", "it needs third, which comes"),
                            ("Needs: none\n", "it needs none, which is no"),
                            ("Part: some\nPart: some\n", "each once"),
                            ("Subject\n", "expected")):
            self.topic("20-second", "", heads=heads)
            with self.assertRaisesRegex(Problem, text):
                topics.read_topics(self.top)

    def test_mistakes_in_a_topic_are_errors(self):
        path = self.top / "BUILD/topics"
        for name, text in (("third", "What\n\nFiles:\n"),
                           ("30-third", "What\n"),
                           ("30-third", "Files:\n"),
                           ("30-third", "What\n\nFiles:\nsql/x\n"),
                           ("10-third", "What\n\nFiles:\n"),
                           ("30-first", "What\n\nFiles:\n")):
            (path / name).write_text(f"{LICENSE}\n\n{text}")
            with self.assertRaises(Problem):
                topics.read_topics(self.top)
            (path / name).unlink()


class SeriesTest(WorkTest):
    """A patch set of three topics that edit the same lines."""

    STOCK = [f"line {number}\n" for number in range(1, 21)]

    def setUp(self):
        super().setUp()
        self.top = self.work / "top"
        self.trees = self.top / "out/10.11"
        put(self.trees / "stock/version", "1:10.11.99\n")
        put(self.trees / "stock/source/sql/a.cc", "".join(self.STOCK))
        put(self.top / "sql/b.cc", "int b;\n")
        for number, name, files in ((10, "one", ""), (31, "two", "  sql/b.cc\n"),
                                    (32, "three", ""), (40, "other", "")):
            put(self.top / f"BUILD/topics/{number}-{name}",
                     f"{LICENSE}\n\nSubject {name}\n\nText.\n\nFiles:\n{files}")
        put(self.top / "sql/a.cc.patch",
                 f"{LICENSE}\nDescription: x\n\n" + hunks.write_hunks(
                     "sql/a.cc",
                     [hunks.Edit(4, 5, ["one\n"], "one"),
                      hunks.Edit(5, 5, ["two\n"], "two"),
                      hunks.Edit(5, 5, ["three\n"], "three"),
                      hunks.Edit(9, 9, ["#ifdef REPLACED_CODE\n"], "three"),
                      hunks.Edit(12, 12, ["#endif\n"], "three")], self.STOCK))
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
            git(self.top, *words)

    def make(self):
        output = self.top / "patches"
        names = series.Maker(self.top, self.trees, "10.11").make(output)
        return [(output / name).read_text() for name in names]

    def test_each_topic_has_its_patch(self):
        one, two, three = self.make()
        self.assertIn("Subject: [PATCH 1/3] Subject one\n\nText.\n", one)
        self.assertIn(" line 4\n-line 5\n+one\n line 6\n", one)
        self.assertIn(" one\n+two\n line 6\n", two)
        self.assertIn("+++ b/sql/b.cc\n", two)
        self.assertIn(" two\n+three\n line 6\n", three)
        self.assertIn(" line 9\n-line 10\n-line 11\n-line 12\n line 13\n", three)
        self.assertNotIn("REPLACED", three)

    def test_patch_may_be_for_other_releases_alone(self):
        """The file stays MariaDB's, and is in no topic's patch."""
        put(self.trees / "stock/source/sql/c.cc", "".join(self.STOCK))
        put(self.top / "sql/c.cc.patch",
                 f"{LICENSE}\nDescription: x\n\n" + hunks.write_hunks(
                     "sql/c.cc", [hunks.Edit(4, 5, ["new\n"], "two only 11.8")], self.STOCK))
        self.assertEqual(len(self.make()), 3)
        self.assertNotIn("c.cc", "".join(self.make()))

    def test_series_is_the_same_each_time(self):
        self.assertEqual(self.make(), self.make())

    def test_error_of_mariadb_must_apply_alone(self):
        """The patch of the second topic has a line of the first's."""
        self.make()
        (self.top / "BUILD/topics/31-two").rename(self.top / "BUILD/topics/20-two")
        with self.assertRaisesRegex(Problem, "apply --check"):
            self.make()

    def test_hunk_without_a_topic_is_an_error(self):
        patch = self.top / "sql/a.cc.patch"
        patch.write_text(patch.read_text().replace("@@ two\n", "@@\n"))
        with self.assertRaisesRegex(Problem, "a hunk of ''"):
            self.make()

    def test_stages_are_those_of_the_topics_that_change_something(self):
        put(self.top / "BUILD/known-failures")
        for program, names in ((series_test.Stages, ["one", "two", "three"]),
                               (alone_test.Alone, ["one"])):
            found = program(self.top, self.trees, "release")
            self.assertEqual([topic.name for topic in found.topics], names)

    def test_directory_of_others_is_not_replaced(self):
        for name in ("series", "table-cache-01-index.patch"):
            (self.work / "out" / name).parent.mkdir(exist_ok=True)
            (self.work / "out" / name).touch()
        self.assertEqual(series.files_of_others(self.work / "out"), [])
        (self.work / "out/0001-of-debian.patch").touch()
        self.assertEqual(series.files_of_others(self.work / "out"),
                         ["0001-of-debian.patch"])


class AloneTest(unittest.TestCase):
    def test_each_error_has_a_test_or_a_reason(self):
        """On each series, and none is named that does not exist."""
        names = {topic.name: topic for topic in topics.read_topics(TOP)
                 if topic.number < topics.ALONE}
        shown = {name for name, topic in names.items()
                 if any(re.search(r"/[rt]/|-t\.cc?$", pattern) for pattern in topic.patterns)}
        named = set(alone_test.PROGRAMS) | set(alone_test.UNTESTED)
        self.assertEqual(set(names) - shown - named, set())
        self.assertEqual(named - set(names), set())
        self.assertEqual(set(alone_test.UNTESTED) & shown, set())
        for programs in alone_test.PROGRAMS.values():
            for program in programs:
                self.assertTrue((TOP / "sql-bench" / program.split()[0]).exists())

    def test_a_crash_that_mtr_finds_at_the_end_is_of_no_test(self):
        sections = alone_test.Sections()
        for line in ("table_cache.one              w2 [ fail ]\n",
                     "mysqltest: At line 59: query failed\n",
                     "***Warnings generated in error logs during shutdown after "
                     "running tests: table_cache.two\n", "got signal 11 ;\n",
                     "table_cache.three            w1 [ pass ]     12\n"):
            sections.add(line)
        self.assertEqual(alone_test.reason_in(sections.text["table_cache.one"]),
                         "mysqltest: At line 59: query failed")
        self.assertIn("table_cache.three", sections.text)

    def test_the_reason_is_what_says_most(self):
        self.assertEqual(alone_test.reason_in(
            "mysqltest: At line 5: query failed\n"
            "mariadbd: a.cc:3: f(): Assertion `x == 1'  failed.\n"
            "[ERROR] mysqld got signal 6 ;\n"), "Assertion `x == 1' failed")
        self.assertEqual(alone_test.reason_in(
            "--- r/a.result\n+++ r/a.reject\n@@ -1 +1 @@\n a\n-1\n+2\n"), "-1 +2")
        self.assertEqual(alone_test.reason_in(""), "failed")
