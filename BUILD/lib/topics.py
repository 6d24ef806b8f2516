#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The topics of the patch set: which change belongs to which patch.

A topic is one change that a maintainer of MariaDB can read, test and merge by
itself, after the topics before it.  BUILD/topics has a file for each,
NN-NAME, where NN is its place in the order.  The file is the commit message,
as MariaDB's developers write them, and a last paragraph that lists the new
files of the topic:

    SPDX-License-Identifier: GPL-2.0-only

    MDEV-12345 What changes, in one line

    Why, how it was measured, which tests there are.

    Files:
      sql/new_file.cc
      mysql-test/suite/table_cache/*/new_*

Paths are those of MariaDB's tree; * stands for any characters but a slash.
Topics below ALONE are MariaDB's own errors and weaknesses: the patch of each
applies to MariaDB's source without the others.

Each new file of the patch set belongs to exactly one topic.  An edit of a file
of MariaDB's is a hunk of FILE.patch, which names its topic after the second
@@ of its first line (hunks.py).
"""

import re

ALONE = 30                      # topics of lower numbers need no other one
NAME = re.compile(r"(\d\d)-([a-z][a-z0-9-]*)$")


class TopicError(Exception):
    """An error, in words for the user at the terminal."""


def expression(pattern):
    """A regular expression for a pattern of paths."""
    return re.compile("[^/]*".join(map(re.escape, pattern.split("*"))) + r"\Z")


class Topic:
    """One file of BUILD/topics."""

    def __init__(self, path):
        number = NAME.match(path.name)
        if not number:
            raise TopicError(f"BUILD/topics/{path.name}: not named NN-name")
        self.path = path
        self.number = int(number[1])
        self.name = number[2]
        lines = path.read_text().splitlines()
        if "Files:" not in lines:
            raise TopicError(f"BUILD/topics/{path.name}: has no paragraph "
                             "'Files:'")
        at = lines.index("Files:")
        message = [line for line in lines[:at]
                   if not line.startswith("SPDX-License-Identifier:")]
        self.message = "\n".join(message).strip()
        self.title = self.message.partition("\n")[0]
        if not self.title:
            raise TopicError(f"BUILD/topics/{path.name}: has no message")
        self.patterns = []
        for line in lines[at + 1:]:
            if not re.fullmatch(r"  \S+", line):
                raise TopicError(f"BUILD/topics/{path.name}: expected a path "
                                 f"behind two spaces, not {line!r}")
            self.patterns.append(line.strip())
        self.expressions = [expression(pattern) for pattern in self.patterns]

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
            raise TopicError(f"BUILD/topics: {one.path.name} and "
                             f"{other.path.name} have the same number")
    names = [topic.name for topic in result]
    for name in set(names):
        if names.count(name) > 1:
            raise TopicError(f"BUILD/topics: two topics have the name {name}")
    return result


def owner(topics, path):
    """The one topic that lists a new file."""
    found = [topic for topic in topics if topic.has(path)]
    if not found:
        raise TopicError(f"{path}: no file in BUILD/topics lists it")
    if len(found) > 1:
        raise TopicError(f"{path}: more than one file in BUILD/topics lists "
                         "it: " + ", ".join(topic.path.name for topic in found))
    return found[0]


def problems(topics, paths):
    """Yield a sentence for each new file that is not in exactly one topic, and
    for each pattern that no file fits."""
    paths = sorted(paths)
    for path in paths:
        try:
            owner(topics, path)
        except TopicError as error:
            yield str(error)
    for topic in topics:
        for pattern, each in zip(topic.patterns, topic.expressions):
            if not any(each.match(path) for path in paths):
                yield (f"BUILD/topics/{topic.path.name}: no file of the patch "
                       f"set fits {pattern}")
