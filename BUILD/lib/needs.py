# SPDX-License-Identifier: GPL-2.0-only
"""Find what each topic uses of the others.

A topic needs another one if it includes a new file of that one, or uses a name
that MariaDB's source does not have and that one of the other's headers, or the
other's edit of the same file, brings.  Of several topics with a name, the first
brings it, since each topic builds without the later ones.

This finds no need of a field or function whose name MariaDB's source has
elsewhere, nor one of behaviour: BUILD/test parts compiles and tests.
"""

import collections
import pathlib
import re

import hunks
import overlay
import topics

CODE = (".h", ".c", ".cc", ".ic", ".cpp", ".txt", ".cmake", ".yy")
HEADERS = (".h", ".ic")
WORD = re.compile(r"[A-Za-z_]\w{3,}")
# Code for which the preprocessor first asks whether another topic is there needs nothing
OPTIONAL = re.compile(r"(?s)#\s*if(?:def TDC_KNOWS_SCANS\b| __has_include\()"
                      r".*?#\s*(?:else|endif)")
# Two topics use such a name for things of their own
COINCIDENCES = {"MAX_PAUSE", "REPLACED_CODE", "block_of", "make_room", "make_way",
                "must_end", "slot_of"}


def code(text):
    """C or C++ without comments and what is optional."""
    return OPTIONAL.sub(" ", re.sub(r"(?s)/\*.*?\*/|//[^\n]*", " ", text))


def words_of_stock(source):
    """The names in MariaDB's code."""
    found = set()
    word = re.compile(WORD.pattern.encode())
    for folder in (*overlay.FOLDERS, "strings", "tpool", "vio", "wsrep-lib"):
        for path in (source / folder).rglob("*"):
            if path.suffix in CODE and path.is_file():
                found.update(word.findall(path.read_bytes()))
    return {name.decode() for name in found}


def added(top, base, all_topics):
    """Yield (topic, file in MariaDB's tree, code) of what topics bring."""
    for name, path in overlay.sources(top, base).items():
        text = path.read_bytes().decode("latin-1")
        if not name.removesuffix(".patch").endswith(CODE):
            continue
        if not name.endswith(".patch"):
            yield topics.owner(all_topics, name).name, name, code(text)
            continue
        mine = collections.defaultdict(list)
        for hunk in hunks.read_hunks(overlay.split_patch(text)[1]):
            if hunks.is_for(hunk.topic, base):
                mine[hunks.name_of(hunk.topic)] += [
                    line[1:] for line in hunk.lines if line[0] == "+"]
        for topic, lines in mine.items():
            yield topic, name.removesuffix(".patch"), code("".join(lines))


def find(top, base, source, all_topics):
    """{topic: {other topic: [what it uses of that one]}}."""
    result = collections.defaultdict(lambda: collections.defaultdict(list))
    uses = collections.defaultdict(lambda: collections.defaultdict(set))
    owners = {pathlib.PurePath(name).name: topics.owner(all_topics, name).name
              for name in overlay.sources(top, base)
              if name.endswith(CODE) and name not in overlay.REPLACED}
    for topic, file, text in added(top, base, all_topics):
        for path in re.findall(r'#\s*include\s*["<]([^">]+)[">]', text):
            owner = owners.get(pathlib.PurePath(path).name, topic)
            if owner != topic:
                result[topic][owner].append(f"{file} includes {path}")
        if not file.endswith(".txt"):
            text = re.sub(r'"(\\.|[^"\\\n])*"', " ", text)
        for name in set(WORD.findall(text)):
            uses[name][topic].add(file)
    known = words_of_stock(source) | COINCIDENCES
    order = {topic.name: number for number, topic in enumerate(all_topics)}
    for name, users in uses.items():
        if name in known:
            continue
        first = min(users, key=order.get)
        shared = any(file.endswith(HEADERS) for file in users[first])
        for topic, files in users.items():
            if topic != first and (shared or files & users[first]):
                result[topic][first].append(f"{min(files)} uses {name}")
    return result


def undeclared(top, base, source, all_topics):
    """Yield a sentence for each need that no topic declares."""
    for topic, others in find(top, base, source, all_topics).items():
        have = topics.closure(all_topics, {topic})
        for other, reasons in others.items():
            if other not in have:
                yield (f"{topic} needs {other}: " + "; ".join(sorted(reasons)[:4]))
