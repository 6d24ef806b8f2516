#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Edits of one file of MariaDB's, each of which belongs to a topic.

FILE.patch is a unified diff of FILE.  The second @@ of each hunk is followed by
the topic that it belongs to:

    @@ -10,2 +10,3 @@ innodb-loading
     a line of MariaDB's
    +a new line
     another one

A hunk for some releases alone says so after its topic, one that is not for some
of them likewise (releases.py has the ranges):

    NAME only 11.8              NAME except 10.11<16
    NAME only 10.11<16 11.8     NAME only 10.11 except 10.11<16

A hunk is located by the lines that it quotes, which must occur exactly once in
MariaDB's file.  All hunks refer to that file as it is without the others: so
any of them can be left out, hunks of different topics may quote the same lines,
and may insert at the same place.  There, what the first of them in FILE.patch
inserts comes first.  No two hunks remove the same line.

What follows is in three forms:

    Hunk   a hunk of a .patch: its first line, the topic that this names, and the
           others
    Edit   lines [start, end) of MariaDB's file are replaced by new ones; its
           topic is as in the hunk, with the releases
    Row    a line of the result or of MariaDB's file: ' ' both have it, '-' it
           has been removed, '+' it is new; and the topic of the latter two

MariaDB's code that has been replaced is disabled, not removed, for a .patch
quotes no more of MariaDB's than it needs:

    #ifdef REPLACED_CODE /* see new_file.cc */
    ...
    #endif

No build defines the name.  Removing what is between such lines, and the lines,
gives the same program.
"""

import collections
import re
import subprocess
import tempfile

import releases
from common import Problem

REPLACED = "REPLACED_CODE"
FEW = 8                         # lines of context that are likely to stay
MAX_CONTEXT = 12                # lines; more means that a hunk is misplaced

Hunk = collections.namedtuple("Hunk", "head topic lines")
Edit = collections.namedtuple("Edit", "start end new topic")
Row = collections.namedtuple("Row", "tag text topic")


def lines_of(content):
    text = content if isinstance(content, str) else content.decode("latin-1")
    # Not splitlines(), to which a form feed ends a line
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def content_of(lines):
    return "".join(lines).encode("latin-1")


# ------------------------------------------------------------------ reading

HEAD = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)\n?")


def read_hunks(difference):
    """The hunks of a unified diff of one file."""
    hunks = []
    left = [0, 0]               # lines of the old and new file in this hunk
    for number, line in enumerate(lines_of(difference)):
        if left != [0, 0]:
            if line[0] not in " -+":
                raise Problem(f"hunk {len(hunks)}: a line begins with "
                              f"{line[0]!r}, or its header counts wrong")
            left[0] -= line[0] in " -"
            left[1] -= line[0] in " +"
            hunks[-1].lines.append(line)
            continue
        match = HEAD.fullmatch(line)
        if match:
            left = [1 if match[group] is None else int(match[group]) for group in (2, 4)]
            hunks.append(Hunk(line, match[5].strip(), []))
        elif number > 1:
            raise Problem(f"line {number + 1} of the diff is no hunk: {line.rstrip()!r}")
    if left != [0, 0]:
        raise Problem(f"hunk {len(hunks)} is shorter than its header says")
    return hunks


def name_of(topic):
    """The topic's name, without the releases."""
    return topic.partition(" ")[0]


def ranges_of(topic):
    """The ranges of releases behind the topic's name: (only, except)."""
    only, excepted, words = [], [], None
    for word in topic.split()[1:]:
        if word in ("only", "except"):
            words = only if word == "only" else excepted
        elif words is None:
            raise Problem(f"{topic!r}: expected 'only' or 'except' behind the topic")
        else:
            words.append(word)
    return only, excepted


def is_for_release(topic, release):
    """Whether a hunk with this head is for a release, like 10.11.14, or a
    series; all are if that is None."""
    only, excepted = ranges_of(topic)
    try:
        return release is None or (
            (not only or any(releases.has(each, release) for each in only))
            and not any(releases.has(each, release) for each in excepted))
    except Problem as error:
        raise Problem(f"{topic!r}: {error}") from error


def is_for(topic, release, names=None):
    """Whether a hunk with this head is for a release, and of one of some topics, if
    any are named."""
    return (names is None or name_of(topic) in names) and is_for_release(topic, release)


def is_variant(topic):
    """Whether a hunk with this head is for a part of a series alone."""
    return any(not re.fullmatch(r"[\d.]+", each) for each in ranges_of(topic)[0])


def places(block, lines):
    """Where a block of lines occurs in a file: indexes of its first line."""
    if not block:
        return []
    size = len(block)
    return [at for at in range(len(lines) - size + 1)
            if lines[at] == block[0] and lines[at:at + size] == block]


def found(hunks, lines, release=None, names=None):
    """Yield (number, hunk, places) of the hunks for a release, and of some topics only,
    if any are named: where the lines that a hunk quotes occur in the file, from 0."""
    for number, hunk in enumerate(hunks, 1):
        if is_for(hunk.topic, release, names):
            yield number, hunk, places([line[1:] for line in hunk.lines
                                        if line[0] in " -"], lines)


def named_line(hunk):
    """The line of MariaDB's file that a hunk names, from 1."""
    return int(HEAD.fullmatch(hunk.head)[1])


def locate(hunks, lines, release=None, names=None):
    """The edits of the hunks that found() takes, in the order in which they apply."""
    edits = []
    problems = []
    for number, hunk, where in found(hunks, lines, release, names):
        if len(where) != 1:
            problems.append(f"hunk {number} ({hunk.topic or 'no topic'}) is found "
                            f"{len(where)} times")
            continue
        at = where[0]
        start, new = at, []
        for line in [*hunk.lines, " "]:
            if line[0] == "-":
                at += 1
            elif line[0] == "+":
                new.append(line[1:])
            else:
                if new or at > start:
                    edits.append(Edit(start, at, new, hunk.topic))
                at += 1
                start, new = at, []
    if problems:
        raise Problem("; ".join(problems))
    return in_order(edits)


def in_order(edits):
    # At one place: first what is inserted, in the order of the file
    edits = sorted(edits, key=lambda edit: (edit.start, edit.end > edit.start))
    for one, other in zip(edits, edits[1:]):
        if other.start < one.end:
            raise Problem(f"two hunks change line {other.start + 1} of "
                          f"MariaDB's file ({one.topic}, {other.topic})")
    return edits


# ----------------------------------------------------------------- applying

def apply_edits(edits, lines):
    return [row.text for row in rows_of(edits, lines) if row.tag != "-"]


def rows_of(edits, lines):
    """All lines of MariaDB's file and of the result."""
    rows = []
    at = 0
    for edit in edits:
        rows += [Row(" ", line, None) for line in lines[at:edit.start]]
        rows += [Row("-", line, edit.topic) for line in lines[edit.start:edit.end]]
        rows += [Row("+", line, edit.topic) for line in edit.new]
        at = edit.end
    return rows + [Row(" ", line, None) for line in lines[at:]]


def edits_of(rows):
    """The opposite of rows_of()."""
    edits = []
    at = 0
    index = 0
    while index < len(rows):
        if rows[index].tag == " ":
            at += 1
            index += 1
            continue
        topic = rows[index].topic
        old, new = [], []
        while (index < len(rows) and rows[index].tag != " " and rows[index].topic == topic):
            (old if rows[index].tag == "-" else new).append(rows[index].text)
            index += 1
        start, end = at, at + len(old)
        at = end
        # Lines that are as they were
        while start < end and new and old[-1] == new[-1]:
            end -= 1
            old.pop()
            new.pop()
        while start < end and new and old[0] == new[0]:
            start += 1
            old.pop(0)
            new.pop(0)
        if new or end > start:
            edits.append(Edit(start, end, new, topic))
    return in_order(edits)


# ------------------------------------------------------------------ writing

def choose_context(start, end, can_be_alone, files):
    """How many lines before and after an edit locate it in each file: the
    fewest, as many on each side where FEW do, as GNU patch wants it."""
    lines = files[0]

    def block(before, after):
        return lines[max(start - before, 0):min(end + after, len(lines))]

    sizes = range(MAX_CONTEXT + 1)
    choices = sorted(((before, after) for before in sizes for after in sizes),
                     key=lambda size: (sum(size) > FEW, size[0] != size[1],
                                       0 in size, sum(size)))
    for wanted in (files, files[:1]):
        for before, after in choices:
            if before + after == 0 and not can_be_alone:
                continue
            if all(len(places(block(before, after), each)) == 1 for each in wanted):
                return max(start - before, 0), min(end + after, len(lines))
    raise Problem(f"the edit at line {start + 1} cannot be told apart by "
                  f"{MAX_CONTEXT} lines around")


def contexts(written, lines):
    """[(its edits, first line, last line)] of hunks that are found in a file once."""
    return [(locate([hunk], lines), where[0],
             where[0] + sum(line[0] in " -" for line in hunk.lines))
            for _, hunk, where in found(written, lines) if len(where) == 1]


def write_hunks(path, edits, lines, others=(), written=()):
    """A unified diff with the least context that locates each hunk.

    'others' are the same file in other releases, as (release, lines).  A hunk
    is worded so that it is located in those that it is for, too, if there is
    such a wording.  One of the hunks 'written' before, of which no edit has changed,
    keeps its context: it may be what locates the hunk in a release that is not at hand.
    """
    known = contexts(written, lines)
    groups = []                 # [edits, first line, last line]
    pending = [[edit] for edit in in_order(edits)]
    while pending:
        group = pending.pop(0)
        removes = any(edit.end > edit.start for edit in group)
        files = [lines, *(other for release, other in others
                          if is_for_release(group[0].topic, release))]
        first, last = next((
            (first, last) for whole, first, last in known
            if all(edit in whole for edit in group) and all(edit in edits for edit in whole)
            and all(len(places(lines[first:last], each)) == 1 for each in files)),
            None) or choose_context(group[0].start, group[-1].end, removes, files)
        before = groups[-1] if groups else None
        if (before and before[0][0].topic == group[0].topic and first < before[2]):
            groups.pop()
            pending.insert(0, before[0] + group)
        else:
            groups.append((group, first, last))

    out = [f"--- a/{path}\n", f"+++ b/{path}\n"]
    shift = 0
    for group, first, last in groups:
        body = []
        at = first
        for edit in group:
            body += [" " + line for line in lines[at:edit.start]]
            body += ["-" + line for line in lines[edit.start:edit.end]]
            body += ["+" + line for line in edit.new]
            at = edit.end
        body += [" " + line for line in lines[at:last]]
        size = sum(line[0] in " +" for line in body)
        topic = group[0].topic
        out.append(f"@@ -{first + 1},{last - first} +{first + 1 + shift},{size} @@"
                   + (f" {topic}\n" if topic else "\n"))
        out += body
        shift += size - (last - first)
    return "".join(out)


def text_of(hunks):
    return "".join(line for hunk in hunks for line in (hunk.head, *hunk.lines))


def select(difference, wanted=lambda topic: True):
    """The text of the hunks whose heads 'wanted' takes: a function of what is
    behind the second @@."""
    return text_of(hunk for hunk in read_hunks(difference) if wanted(hunk.topic))


def except_hunks(difference, numbers, excepted):
    """Say in the heads of some hunks, which count from 1, that they are not for
    a range of releases."""
    hunks = read_hunks(difference)
    for number in numbers:
        hunk = hunks[number - 1]
        word = " " if ranges_of(hunk.topic)[1] else " except "
        hunks[number - 1] = hunk._replace(head=hunk.head.rstrip("\n") + word + excepted + "\n")
    return difference[:difference.index("@@")] + text_of(hunks)


def compare(old, new):
    """Yield (start, end, first, last): lines [start, end) of the old file are
    lines [first, last) of the new one."""
    with tempfile.NamedTemporaryFile() as stream:
        stream.write(content_of(old))
        stream.flush()
        done = subprocess.run(["diff", "-U0", stream.name, "-"], input=content_of(new),
                              stdout=subprocess.PIPE, check=False)
    if done.returncode > 1:
        raise Problem("diff failed")
    for match in re.finditer(r"(?m)^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@",
                             done.stdout.decode("latin-1")):
        start, size, first, count = (1 if value is None else int(value)
                                     for value in match.groups())
        start -= 1 if size else 0
        first -= 1 if count else 0
        yield start, start + size, first, first + count


# --------------------------------------------------------------- refreshing

def rebase(edits, original, content, asked=None):
    """The edits that make 'content' of the original: those that there were,
    as far as they are still there, and what has changed since.

    A change within a topic's edit, or at its edge, belongs to that topic.  A
    change elsewhere belongs to the topic 'asked'; so does one at an edge, if a
    topic is asked for.  Returns the edits and the new places:
    [(line, topic)].
    """
    rows = rows_of(edits, original)
    for lines in (original, content):
        if lines and not lines[-1].endswith("\n"):
            raise Problem("no newline at the end of the file")
    shown = [index for index, row in enumerate(rows) if row.tag != "-"]
    shown.append(len(rows))
    result = []
    done = 0                    # rows before this one are in the result
    new_places = []
    missing = []
    before = [rows[index].text for index in shown[:-1]]
    for start, end, first, last in compare(before, content):
        # Rows [begin, stop) are what changes
        begin = shown[start]
        stop = shown[end - 1] + 1 if end > start else begin
        inside = {row.topic for row in rows[begin:stop] if row.tag != " "}
        around = {row.topic for row in (rows[max(begin - 1, 0):begin] + rows[stop:stop + 1])
                  if row.tag != " "}
        if len(inside) == 1 and asked not in inside:
            topic, = inside
        elif asked:
            topic = asked
        elif not inside and len(around) == 1:
            topic, = around
        else:
            topic = None
            missing.append(first + 1)
        if topic not in inside | around:
            new_places.append((first + 1, topic))
        result += rows[done:begin]
        for row in rows[begin:stop]:
            if row.tag == " ":
                result.append(Row("-", row.text, topic))
            elif row.tag == "-":
                result.append(row)
        result += [Row("+", line, topic) for line in content[first:last]]
        done = stop
    if missing:
        raise Problem("to which topic do these edits belong: line "
                      + ", ".join(map(str, missing))
                      + "?  BUILD/refresh --topic NAME says it; a new topic needs a file "
                        "in BUILD/topics")
    edits = edits_of(result + rows[done:])
    if apply_edits(edits, original) != content:
        raise Problem("the hunks would not give the edited file")
    return edits, new_places


# ------------------------------------------------------------ replaced code

def conditional(line):
    """Which part of a conditional a line is: if, else or endif, or None."""
    word = re.match(r"\s*#\s*(if|else|elif|endif)", line)
    return word and word[1].replace("elif", "else")


def is_replaced(line):
    return bool(re.match(rf"\s*#\s*ifdef\s+{REPLACED}\b", line))


def replaced_rows(rows):
    """Yield the rows of the result, each with whether it is one of MariaDB's
    lines that are replaced, or of the conditional around them."""
    depth = 0                   # of #if in #if
    for row in rows:
        if row.tag == "-":
            continue
        if not depth:
            depth = int(row.tag == "+" and is_replaced(row.text))
            yield row, bool(depth)
            continue
        word = conditional(row.text)
        depth += (word == "if") - (word == "endif")
        if word == "else" and depth == 1:
            raise Problem(f"#else of a #ifdef {REPLACED}")
        yield row, True
    if depth:
        raise Problem(f"no #endif behind #ifdef {REPLACED}")


def without_replaced(lines):
    """A file without the code that has been replaced.

    Where such code had an empty line on each side, one of them goes, too.
    """
    result = []
    was_replaced = False
    for row, replaced in replaced_rows([Row("+", line, None) for line in lines]):
        if not replaced and not (was_replaced and not row.text.strip()
                                 and result and not result[-1].strip()):
            result.append(row.text)
            was_replaced = False
        elif replaced:
            was_replaced = True
    return result
