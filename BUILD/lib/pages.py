#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Write what documents say of parts, topics and files from these themselves.

A document has a line '<!-- pages.py: KIND PART -->', and a line '<!-- end -->'; this
program writes what is between:

  parts         the table of all parts
  topics PART   the topics of a part, its size, and what MariaDB's developers have done
  tested        what BUILD/test --record has kept
  files PART    its new files, by the first sentence of each, and MariaDB's that it edits

BUILD/refresh calls it.  Numbers of lines are rounded to hundreds, so that an edit does
not change them each time.
"""

import argparse
import pathlib
import re

import common
import everything
import hunks
import overlay
import topics
from common import Problem

BASE = "10.11"                  # the series whose files are counted
BLOCK = re.compile(r"(?ms)^(<!-- pages\.py: ([a-z]+)(?: ([a-z-]+))? -->\n).*?"
                   r"^(<!-- end -->)$")
OF_TESTS = re.compile(r"(^|/)(mysql-test|unittest)/")
DOCUMENTS = ("*.md", "docs/*.md", "docs/parts/*.md")
HEAD = 160                      # characters of a file's first sentence


def documents(top):
    """The documents, as paths."""
    return sorted(path for pattern in DOCUMENTS for path in top.glob(pattern))


def own_files(top, all_topics, names):
    """{path in MariaDB's tree: file} of the server's source that topics bring."""
    files = overlay.of_topics(overlay.sources(top, BASE), all_topics, names)
    return {name: path for name, path in files.items() if not OF_TESTS.search(name)}


def size(top, all_topics, names):
    """Lines of server source that some topics bring, and how many files of
    MariaDB's they edit."""
    lines = edited = 0
    for name, path in own_files(top, all_topics, names).items():
        if name.endswith(".patch"):
            edited += 1
            _, difference = overlay.split_patch(path.read_text(errors="replace"))
            lines += sum(line[0] == "+" for hunk in hunks.read_hunks(difference)
                         if hunks.name_of(hunk.topic) in names for line in hunk.lines)
        else:
            lines += path.read_text(errors="replace").count("\n")
    return lines, edited


def rounded(lines):
    return f"{max(round(lines, -2), 100):,}"


def first_sentence(text):
    """What the comment at the head of a source file begins with."""
    text = re.sub(r"/\*{5,}/", "", text)         # a line of stars
    for comment in re.findall(r"(?s)/\*+(.*?)\*/", text):
        for paragraph in re.split(r"\n[ *]*\n", comment):
            found = re.sub(r"@file\b(?: [\w/]+\.(?:cc?|h|inl|ic)\b)?"
                           r"|SPDX-License-Identifier:.*", " ", paragraph)
            found = " ".join(found.replace("\n *", "\n").split())
            if not found or found.startswith(("Parts of this file", "Copyright", "See ")):
                continue
            found = re.split(r"(?<=[a-z)\d'\"])\.(?= |$)", found)[0].rstrip(".:")
            found = re.sub(r"[;.] see \S+$", "", found)
            if len(found) > HEAD:
                found = found[:HEAD].rpartition(" ")[0] + " ..."
            return found.replace("|", "\\|")
    return ""


class Pages:
    """What the blocks are made of."""

    def __init__(self, top):
        self.top = top
        self.topics = topics.read_topics(top)
        self.parts = topics.read_parts(top)

    def names(self, part):
        return {topic.name for topic in self.topics if topic.part == part}

    def with_it(self, part):
        """The topics of other parts that a part takes with it."""
        own = self.names(part)
        return set(topics.closure(self.topics, own)) - own

    def size(self, names):
        return size(self.top, self.topics, names)

    def block_parts(self, folder):
        """The table of all parts, with links to the pages in a directory; lines: its
        own, and those of the topics that it takes with it."""
        lines = ["| part | what it gives | lines |", "|---|---|---:|"]
        for part, gives in self.parts.items():
            own, others = self.names(part), self.with_it(part)
            needed = f" + {rounded(self.size(others)[0])}" if others else ""
            lines.append(f"| [{part}]({folder}{part}.md) | {gives} | "
                         f"{rounded(self.size(own)[0])}{needed} |")
        return lines

    def block_topics(self, part):
        own, others = self.names(part), self.with_it(part)
        lines, edited = self.size(own)
        result = [f"{len(own)} topic{'s' * (len(own) > 1)}, {rounded(lines)} lines of "
                  f"the server's source, edits in {edited or 'none'} of MariaDB's files."]
        if others:
            result[0] += " It takes with it " + ", ".join(
                f"`{topic.name}`" for topic in self.topics
                if topic.name in others) + (f": {rounded(self.size(others)[0])} lines.")
        result += ["", "| topic | what it does |", "|---|---|"]
        known = []
        for topic in self.topics:
            if topic.name in own:
                link = f"[{topic.path.name}](../../BUILD/topics/{topic.path.name})"
                result.append(f"| {link} | {topic.title} |")
                if topic.upstream:
                    known.append(f"- {topic.name}: {topic.upstream}.")
        return result + ["", "Status upstream: not offered yet."
                         + " What MariaDB's developers have done:" * bool(known),
                         *([""] if known else []), *known]

    def block_files(self, part):
        own = self.names(part)
        new, edited = {}, []
        for name, path in own_files(self.top, self.topics, own).items():
            if name.endswith(".patch"):
                edited.append(name.removesuffix(".patch"))
            else:
                stem = name.rpartition(".")[0]
                # A header and its source may be in two directories
                key = re.sub(r"^(include|mysys)/|(?<=innobase/)\w+/", "", stem)
                new.setdefault(key, []).append((name, path))
        lines = []
        for found in new.values():
            # The longest head: the other file may refer to it
            head = max((first_sentence(path.read_text(errors="replace"))
                        for _, path in found), key=len)
            names = [name for name, _ in sorted(found)]
            if len({name.rpartition("/")[0] for name in names}) == 1:
                names[1:] = [pathlib.PurePath(name).name for name in names[1:]]
            if not names[0].endswith((".txt", ".cmake")):
                lines.append(f"- {', '.join(f'`{name}`' for name in names)}: {head}.")
        folders = {}
        for name in sorted(edited):
            folder, _, file = name.rpartition("/")
            if file != "CMakeLists.txt":
                folders.setdefault(folder, []).append(f"`{file}`")
        if folders:
            lines += ["- Edited: " + "; ".join(
                f"`{folder}` {', '.join(files)}" for folder, files in folders.items()) + "."]
        return lines

    def block_tested(self):
        """What ran, newest series last."""
        return ["| MariaDB | `BUILD/test` | passed | failed | skipped | revision |",
                "|---|---|---:|---:|---:|---|",
                *("| {0} | `{1}` | {2} | {3} | {4} | {5} |".format(*one)
                  for one in everything.read_records(self.top))]

    def block(self, kind, part, folder):
        if kind == "parts":
            return self.block_parts(folder)
        if kind == "tested":
            return self.block_tested()
        if part not in self.parts:
            raise Problem(f"pages.py: no part {part}")
        return {"topics": self.block_topics, "files": self.block_files}[kind](part)

    def text(self, path):
        """The text of a document with its blocks as they should be."""
        folder = "docs/parts/" if path.parent == self.top else "parts/"

        def written(match):
            return "".join([match[1], *(f"{line}\n" for line in self.block(
                match[2], match[3], folder)), match[4]])
        return BLOCK.sub(written, path.read_text())


def write(top):
    """Write the blocks of all documents; say of which."""
    pages = Pages(top)
    for path in documents(top):
        text = pages.text(path)
        if text != path.read_text():
            path.write_text(text)
            print(f"-- pages: wrote {path.relative_to(top)}")


def main():
    parser = argparse.ArgumentParser(
        description="Write what documents say of parts, topics, files and tests.")
    parser.add_argument("--top", type=pathlib.Path, default=common.TOP)
    write(parser.parse_args().top.resolve())


if __name__ == "__main__":
    main()
