#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The topics of the patch set: which change belongs to which patch.

docs/DEVELOPING.md, Topics, says what a topic is, and what the heads of its file in
BUILD/topics mean:

    SPDX-License-Identifier: GPL-2.0-only
    Part: myisam-aria
    Needs: open-index other-topic
    From: 10.11.16
    Until: 11.8.7 11.4.11
    Upstream: MDEV-54321, open: does it in another way

    MDEV-12345 What changes, in one line

    Why, how it was measured, which tests there are.

    Files:
      sql/new_file.cc
      mysql-test/suite/table_cache/*/new_*

Paths are those of MariaDB's tree; * stands for any characters but a slash.  Each new
file of the patch set belongs to exactly one topic.  An edit of a file of MariaDB's is a
hunk of FILE.patch, which names its topic after the second @@ of its first line (hunks.py).

closure() adds what some topics need; needs.py finds needs that nobody has declared.
choose() computes what --part, --topic and --without of the commands in BUILD take.  Each
choice has trees of its own, below out/part/LABEL.  This program writes the choice into
the file 'selection' there; what lays the patch set over MariaDB's source reads it.
"""

import argparse
import collections
import difflib
import pathlib
import re

import common
import releases
from common import Problem

ALONE = 30                      # topics of lower numbers need no other one
HEADS = ("SPDX-License-Identifier", "Part", "Needs", "From", "Until", "Upstream")
NAME = re.compile(r"(\d\d)-([a-z][a-z0-9-]*)$")
SELECTION = "selection"         # file name: the label, then a topic a line

Selection = collections.namedtuple("Selection", "label names")


def expression(pattern):
    """A regular expression for a pattern of paths."""
    return re.compile("[^/]*".join(map(re.escape, pattern.split("*"))) + r"\Z")


class Topic:
    """One file of BUILD/topics."""

    def __init__(self, path):
        number = NAME.match(path.name)
        if not number:
            raise Problem(f"BUILD/topics/{path.name}: not named NN-name")
        self.path = path
        self.number = int(number[1])
        self.name = number[2]
        lines = path.read_text().splitlines()
        self.heads = self.take_heads(lines)
        self.part = self.heads.get("Part")
        self.needs = self.heads.get("Needs", "").split()
        self.upstream = self.heads.get("Upstream")
        self.first, self.until = (self.releases(head) for head in ("From", "Until"))
        if "Files:" not in lines:
            raise Problem(f"BUILD/topics/{path.name}: has no paragraph 'Files:'")
        at = lines.index("Files:")
        self.message = "\n".join(lines[:at]).strip()
        self.title = self.message.partition("\n")[0]
        if not self.title:
            raise Problem(f"BUILD/topics/{path.name}: has no message")
        self.patterns = []
        for line in lines[at + 1:]:
            if not re.fullmatch(r"  \S+", line):
                raise Problem(f"BUILD/topics/{path.name}: expected a path "
                              f"behind two spaces, not {line!r}")
            self.patterns.append(line.strip())
        self.expressions = [expression(pattern) for pattern in self.patterns]

    def take_heads(self, lines):
        """Take the lines before the first empty one out: {head: value}."""
        heads = {}
        while lines and lines[0]:
            head, colon, value = lines.pop(0).partition(": ")
            if head not in HEADS or not colon or head in heads:
                raise Problem(f"BUILD/topics/{self.path.name}: expected "
                              + ", ".join(HEADS) + " before an empty line, "
                              f"each once, not {head!r}")
            heads[head] = value
        return heads

    def releases(self, head):
        """The releases that a head names, as (series, point release)."""
        found = self.heads.get(head, "").split()
        for release in found:
            if not re.fullmatch(r"\d+\.\d+\.\d+", release):
                raise Problem(f"BUILD/topics/{self.path.name}: {head} names "
                              f"releases like 11.8.7, not {release!r}")
        return [release.rsplit(".", 1) for release in found]

    def is_over(self, release):
        """Whether the topic has nothing to do in a release."""
        return bool(release) and (
            any(releases.has(f"{series}<{point}", release) for series, point in self.first)
            or any(releases.has(f"{series}>={point}", release) for series, point in self.until))

    def has(self, path):
        return any(each.match(path) for each in self.expressions)

    def add(self, path):
        """List one more new file."""
        with self.path.open("a") as stream:
            stream.write(f"  {path}\n")
        self.patterns.append(path)
        self.expressions.append(expression(path))


def read_topics(top):
    """The topics of a repository, in their order."""
    result = [Topic(path)
              for path in sorted((top / "BUILD" / "topics").glob("*"))
              if not path.name.endswith("~")]
    for one, other in zip(result, result[1:]):
        if one.number == other.number:
            raise Problem(f"BUILD/topics: {one.path.name} and "
                          f"{other.path.name} have the same number")
    names = [topic.name for topic in result]
    for name in set(names):
        if names.count(name) > 1:
            raise Problem(f"BUILD/topics: two topics have the name {name}")
    # An order in which each comes after what it needs has no cycle
    before = set()
    for topic in result:
        for name in topic.needs:
            if name not in before:
                raise Problem(
                    f"BUILD/topics/{topic.path.name}: it needs {name}, which "
                    + ("comes later" if name in names else "is no topic"))
        before.add(topic.name)
    parts = read_parts(top)
    for topic in result:
        if topic.part is not None and topic.part not in parts:
            raise Problem(f"BUILD/topics/{topic.path.name}: no part "
                          f"{topic.part} in BUILD/parts")
    return result


def read_parts(top):
    """{name: what it gives}, in the order of BUILD/parts."""
    result = {}
    path = top / "BUILD" / "parts"
    for line in path.read_text().splitlines() if path.exists() else ():
        name, _, text = line.partition(" ")
        if name and name != "#":
            result[name] = text.strip()
    return result


def closure(topics, names):
    """{topic: the one that needs it, or None if it is named}, in order: some
    topics with all that they need."""
    reasons = {}
    for topic in reversed(topics):      # the needs of a topic come before it
        if topic.name in names:
            reasons[topic.name] = None
        if topic.name in reasons:
            for need in topic.needs:
                reasons.setdefault(need, topic.name)
    return {topic.name: reasons[topic.name] for topic in topics if topic.name in reasons}


def dependents(topics, names):
    """{topic: the one that it needs, or None if it is named}, in order: some
    topics with all that cannot be without them."""
    result = {}
    for topic in topics:
        lost = [need for need in topic.needs if need in result]
        if topic.name in names:
            result[topic.name] = None
        elif lost:
            result[topic.name] = lost[0]
    return result


def owner(topics, path):
    """The one topic that lists a new file."""
    found = [topic for topic in topics if topic.has(path)]
    if not found:
        raise Problem(f"{path}: no file in BUILD/topics lists it")
    if len(found) > 1:
        raise Problem(f"{path}: more than one file in BUILD/topics lists "
                      "it: " + ", ".join(topic.path.name for topic in found))
    return found[0]


def problems(topics, paths):
    """Yield a sentence for each new file that is not in exactly one topic, and
    for each pattern that no file fits."""
    paths = sorted(paths)
    for path in paths:
        try:
            owner(topics, path)
        except Problem as error:
            yield str(error)
    for topic in topics:
        for pattern, each in zip(topic.patterns, topic.expressions):
            if not any(each.match(path) for path in paths):
                yield (f"BUILD/topics/{topic.path.name}: no file of the patch "
                       f"set fits {pattern}")


# ---------------------------------------------------------------- a selection

def known_name(option, name, known, numbered):
    """The name that a user means: 'open-index', or '30' or '30-open-index' of a
    topic in 'numbered'."""
    for topic in numbered:
        if name in (f"{topic.number:02}", topic.path.name):
            return topic.name
    if name in known:
        return name
    near = difflib.get_close_matches(name, known)
    raise Problem(
        f"{option}: there is no {name}; "
        + ("did you mean " + " or ".join(near) + "?" if near
           else "there are " + ", ".join(dict.fromkeys(known))))


def choose(topics, parts, asked_parts=(), asked_topics=(), without=(), unfit=()):
    """(Selection, sentences): what some options take, and what they do not say
    themselves.  'without' names topics or parts; a name that is both is the
    part.  'unfit' names topics that do not apply to the source."""
    names = [topic.name for topic in topics]
    asked_parts, asked_topics, without = (
        [known_name(option, name, known, numbered) for name in asked]
        for option, asked, known, numbered in (
            ("--part", asked_parts, list(parts), []),
            ("--topic", asked_topics, names, topics),
            ("--without", without, [*parts, *names], topics)))
    start = {topic.name for topic in topics
             if topic.part in asked_parts or topic.name in asked_topics}
    if not asked_parts and not asked_topics:
        start = set(names)
    lost = dependents(topics, {topic.name for topic in topics
                               if topic.part in without
                               or topic.name in without
                               and topic.name not in parts or topic.name in unfit})
    for name in asked_topics:
        if name in lost:
            raise Problem(f"--topic {name} cannot be taken, because it needs "
                          + (lost[name] or "itself"))
    taken = closure(topics, start - set(lost))
    sentences = [f"also taken, because {reason} needs it: {name}"
                 for name, reason in taken.items() if reason]
    sentences += [f"left out, because it needs {reason}: {name}"
                  for name, reason in lost.items() if reason and name in start]
    if not taken:
        raise Problem("nothing is left of the patch set")
    label = ".".join(
        [part for part in parts if part in asked_parts]
        + [f"topic-{topic.name}" for topic in topics if topic.name in asked_topics]
        + [f"without-{name}" for name in sorted(set(without))]
        + ["-".join(["unfit", *(f"{topic.number:02}" for topic in topics
                                if topic.name in unfit)])] * bool(unfit))
    return Selection(label, list(taken)), sentences


def read_selection(trees):
    """The Selection of a directory of trees, or None: everything."""
    path = trees / SELECTION
    if not path.exists():
        return None
    label, *names = path.read_text().split()
    return Selection(label, names)


def main():
    parser = argparse.ArgumentParser(
        description="Print the label of a selection of topics; with --write, write it into a "
                    "directory of trees, and say what is in it (called by BUILD/common.sh); "
                    "with --names, print the names of --topic alone (called by BUILD/test).")
    parser.add_argument("--top", type=pathlib.Path, required=True)
    parser.add_argument("--part", action="append", default=[])
    parser.add_argument("--topic", action="append", default=[])
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--unfit", action="append", default=[])
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--names", action="store_true")
    arguments = parser.parse_args()
    all_topics = read_topics(arguments.top)
    if arguments.names:
        known = [topic.name for topic in all_topics]
        print(*(known_name("--topic", name, known, all_topics) for name in arguments.topic))
        return
    selection, sentences = choose(all_topics, read_parts(arguments.top), arguments.part,
                                  arguments.topic, arguments.without, arguments.unfit)
    if not arguments.write:
        print(selection.label)
        return
    print(f"-- {len(selection.names)} of {len(all_topics)} topics: "
          + " ".join(selection.names))
    for sentence in sentences:
        print(f"   {sentence}")
    path = arguments.write / SELECTION
    text = "".join(f"{word}\n" for word in (selection.label, *selection.names))
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    common.end("topics", main)
