#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Lay the patch set over MariaDB's source, and take edits back from there.

The repository mirrors MariaDB's tree (docs/DEVELOPING.md): a file of FOLDERS is a new one,
copied to the same place of the source, or the edits to one file of MariaDB's, NAME.patch,
behind a DEP-3 header.  REPLACED names the files of MariaDB's that are replaced whole.  Each
hunk, and each new file, belongs to one topic (hunks.py, topics.py); a topic that MariaDB
has from some release on is left out there.  only-SERIES/NAME takes the place of NAME for
that series alone; an empty file there means that the series has none.

  apply    brings the patched tree up to date.  Everything is computed before
           the first file is written, so a patch that does not apply leaves
           the tree as it was.  Only files whose content changes are written:
           a build afterwards recompiles what depends on them and no more.
           Edits made in the patched tree are never overwritten.
  refresh  writes edits made in the patched tree back into the repository, as
           hunks that fit the other releases, too, where such hunks exist, and
           warns of what then breaks a rule on another one.  Hunks keep
           their topics; a new one needs the environment's REFRESH_TOPIC.
           Hunks for other releases stay as they are.
  except   says in each hunk that this source does not have a place for that it
           is not for the releases in the environment's EXCEPT_RELEASES; refresh
           then writes what is in its place.
  survey   says of each patch whether it applies to a source that was not tested:
           unchanged, moved, or not at all.  It does not guess: a hunk whose
           lines occur twice, or in another order, does not apply, nor does a
           patch if MariaDB has changed code that the patch set replaces.  Then
           it says which parts (topics.py) can be built.
  misfits  prints the names of the topics that do not apply to this source, and
           on stderr why, and which others need them.
  check    verifies the rules above, and that MariaDB has not changed code that
           a patch disables, on each series whose source is there; it is part
           of BUILD/test unit.

apply also puts a checksum of what it lays over behind MariaDB's revision in
STAMPED, so @@version_source_revision tells which patch set a server was built
with.

A manifest in the patched tree's parent directory holds the version that the
tree is a copy of, and a checksum of every file as `apply` wrote it.  It tells
an edit in the tree from one in the repository.

Exit status: 0 done, 1 failed, 2 wrong usage.
"""

import argparse
import datetime
import filecmp
import hashlib
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

import common
import hunks
import releases
import topics
from common import Problem
from releases import release_of, series_of

FOLDERS = ("include", "libmysqld", "mysys", "sql", "storage", "mysql-test",
           "unittest", "plugin")
REPLACED = ("sql/table_cache.cc", "sql/table_cache.h")
STAMPED = "include/source_revision.h"
NOT_IN_A_SERVER = re.compile(r"(^|/)(mysql-test|unittest)/")
IGNORED = re.compile(r"(\.orig|\.rej|\.reject|~|\.pyc)$|(^|/)__pycache__(/|$)")
DISABLED = "Disabled-Code"      # a patch's field for disabled_code()
# A patch's field: it corrects one of Debian's patches
ONLY_DEBIAN = "Only-For: Debian"
# Checksums of MariaDB's files that are replaced whole, of the versions tested
REPLACED_SUMS = "BUILD/lib/replaced.sha256"
LICENSE = "SPDX-License-Identifier: GPL-2.0-only"
# File types that have no comments, or whose every byte is compared
NO_LICENSE = (".result", ".rdiff", ".json", ".svg", ".opt", ".cnf",
              ".combinations", ".sh.opt", ".gitignore")


# A line of the preprocessor that tests macros, and what CMake found on a machine
CONDITION = re.compile(rb"(?m)^[ \t]*#[ \t]*(?:el)?if\w*\b(?:.*\\\n)*.*")
FEATURE = re.compile(rb"\bHAVE_\w+")
FEATURE_DEFINED = re.compile(rb"(?m)^[ \t]*#[ \t]*(?:define|cmakedefine)[ \t]+(HAVE_\w+)")


UNCHANGED, MOVED, DOES_NOT_APPLY = "unchanged", "moved", "DOES NOT APPLY"


def digest(content):
    return None if content is None else hashlib.sha256(content).hexdigest()


def read(path):
    """A file's content, or None where there is no such file."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def files_below(top, folders=FOLDERS):
    """Relative paths (POSIX style) of the files below some folders of top."""
    for folder in folders:
        for directory, _, names in os.walk(top / folder):
            for name in names:
                path = pathlib.Path(directory, name) .relative_to(top).as_posix()
                if not IGNORED.search(path):
                    yield path


def has_debian_patches(version):
    """Whether a version is Debian's, like 1:11.8.6-0+deb13u1."""
    return "-" in version


OWN_FOLDER = re.compile(r"only-(\d+\.\d+)(?:-from-(\d+))?(?:-before-(\d+))?")


def range_of_folder(name):
    """10.11>=9<16 of only-10.11-from-9-before-16; None if it is no such name."""
    match = OWN_FOLDER.fullmatch(name)
    return match and (match[1] + (f">={match[2]}" if match[2] else "")
                      + (f"<{match[3]}" if match[3] else ""))


def own_folders(top, release):
    """The directories only-... for a release, the widest range first."""
    ranges = {range_of_folder(path.name): path for path in top.glob("only-*")}
    return [ranges[each] for each in
            reversed(releases.with_release(filter(None, ranges), release))]


def sources(top, release, debian=True):
    """{name: path} of the patch set's files for a release or series, by the
    name that each has in the shared folders.  'debian': the source has
    Debian's patches."""
    result = {name: top / name for name in files_below(top)}
    for own in own_folders(top, release):
        for name in files_below(own):
            result[name] = own / name
            if (not result[name].stat().st_size
                    or not debian and name.endswith(".patch")
                    and f"\n{ONLY_DEBIAN}\n".encode() in read(result[name])):
                del result[name]
    return result


def of_topics(files, all_topics, names):
    """Those of some files that some topics need, all if that is None."""
    if names is None:
        return files
    result = {}
    for name, path in files.items():
        if not name.endswith(".patch"):
            mine = topics.owner(all_topics, name).name in names
        else:
            _, difference = split_patch(read(path).decode("latin-1"))
            mine = any(hunks.name_of(hunk.topic) in names
                       for hunk in hunks.read_hunks(difference))
        if mine:
            result[name] = path
    return result


def write(path, content, executable):
    """Replace a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".overlay-", dir=path.parent)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    os.chmod(temporary, 0o755 if executable else 0o644)
    os.replace(temporary, path)


def copy_source(source, target):
    """Copy a tree; an interrupted copy leaves nothing of that name."""
    temporary = target.with_name(".source-copy")
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(source, temporary, symlinks=True)
    temporary.rename(target)


# ------------------------------------------------------------------ patches

def split_patch(text):
    """Split a .patch into its header and its diff."""
    at = re.search(r"(?m)^--- ", text)
    if not at:
        raise Problem("no '--- ' line: not a unified diff")
    return text[:at.start()], text[at.start():]


class Patch:
    """A .patch of the repository: the edits of one file of MariaDB's."""

    def __init__(self, name, file):
        self.name = name
        self.file = file
        self.path = name.removesuffix(".patch")
        try:
            self.header, self.difference = split_patch(read(file).decode("latin-1"))
        except Problem as error:
            raise Problem(f"{name}: {error}") from error


def disabled_code(difference, original, release, names=None):
    """A checksum of MariaDB's lines that a patch has disabled (hunks.py), None
    if there are none.

    Such code has moved elsewhere.  The patch quotes only its first and last
    line, so it applies all the same when another release changes the rest.
    """
    lines = hunks.lines_of(original)
    # The others make no difference, and may not apply
    marks = [hunk for hunk in hunks.read_hunks(difference)
             if any(line[0] == "+" and hunks.conditional(line[1:]) for line in hunk.lines)]
    edits = hunks.locate(marks, lines, release, names)
    found = [" " + row.text for row, replaced
             in hunks.replaced_rows(hunks.rows_of(edits, lines)) if replaced and row.tag == " "]
    return digest("".join(found).encode())[:16] if found else None


def disabled_sums(header):
    """The checksums by disabled_code() that a patch's header has, of all releases; some are
    behind the name of a release and an equals sign."""
    field = re.search(rf"(?m)^{DISABLED}: (.*)", header)
    return set(re.findall(r"\b[0-9a-f]{16}\b", field[1])) if field else set()


def carried(top, series):
    """The other releases of a series for which the patch set has variants."""
    text = read(top / f"cmake/base-{series}.cmake") or b""
    found = re.search(r"(?m)^set\(BASE_ALSO ([^)]*)\)", text.decode())
    return [release_of(version) for version in found[1].split()] if found else []


# -------------------------------------------------------------------- trees

class Overlay:
    """The repository, the stock tree and the patched tree."""

    def __init__(self, top, stock, patched, out=None):
        """'out' is a directory with SERIES/stock of other series, and with
        source/SERIES/stock of other releases."""
        self.top = top
        self.stock = stock / "source"
        self.patched = patched / "source"
        self.manifest_path = patched / "manifest.json"
        version = read(stock / "version")
        self.version = version.decode().strip() if version else "?"
        self.release = release_of(self.version)
        self.series = series_of(self.version)
        if not self.stock.is_dir():
            raise Problem(f"{self.stock}: no source there; fetch it first")
        self.topics = topics.read_topics(top)
        self.others = []
        self.debian = has_debian_patches(self.version)
        # Names of the topics that this release needs, and of these the ones to
        # lay over; None for all
        over = {each.name for each in self.topics if each.is_over(self.release)}
        self.present = {each.name for each in self.topics} - over if over else None
        self.selection = topics.read_selection(patched.parent)
        self.names = set(self.selection.names) - over if self.selection else self.present
        for path in sorted((*out.glob("*/stock/source"),
                            *out.glob("source/*/stock/source"))) if out else ():
            other = Overlay(top, path.parent, path.parents[1] / "patched")
            if (other.release not in ("", self.release,
                                      *(each.release for each in self.others))
                    and (path.is_relative_to(out / "source")
                         <= (other.release in carried(top, other.series)))):
                self.others.append(other)

    def manifest(self):
        """The version that the patched tree is a copy of, and {path: digest}
        of what was laid over it."""
        content = read(self.manifest_path)
        entries = json.loads(content) if content else {}
        return entries.get("version"), entries.get("files", {})

    def save_manifest(self, files):
        write(self.manifest_path, json.dumps({"version": self.version, "files": files},
                                             indent=0, sort_keys=True).encode(), False)

    def sources(self):
        """sources() for this source, of the topics to lay over."""
        return of_topics(sources(self.top, self.release, self.debian), self.topics, self.names)

    def new_and_edited(self):
        """What sources() has, in order: {name: new file}, and the patches."""
        new, patches = {}, []
        for name, file in sorted(self.sources().items()):
            if name.endswith(".patch"):
                patches.append(Patch(name, file))
            else:
                new[name] = file
        return new, patches

    def original(self, patch):
        """MariaDB's file that a patch is for."""
        content = read(self.stock / patch.path)
        if content is None:
            raise Problem(f"{patch.name}: MariaDB {self.version} has no file {patch.path}")
        return content

    def wanted(self):
        """{path: content} of every file that differs from MariaDB's."""
        new, patches = self.new_and_edited()
        result = {name: read(file) for name, file in new.items()}
        failures = []
        for patch in patches:
            try:
                result[patch.path] = self.patched_content(patch)
            except Problem as error:
                failures.append(str(error))
        if failures:
            raise Problem("\n".join(failures))
        return result

    def edits(self, patch):
        """The lines of MariaDB's file, and what a patch makes of them."""
        lines = hunks.lines_of(self.original(patch))
        try:
            return lines, hunks.locate(hunks.read_hunks(patch.difference), lines,
                                       self.release or None, self.names)
        except Problem as error:
            raise Problem(f"{patch.name} does not apply to MariaDB {self.version}: "
                          f"{error}") from error

    def patched_content(self, patch):
        lines, edits = self.edits(patch)
        return hunks.content_of(hunks.apply_edits(edits, lines))

    def stamped(self, wanted):
        """Add STAMPED to what wanted() returns.

        The files of tests do not count: a change of those alone makes no other
        server, and no file is compiled again.
        """
        original = read(self.stock / STAMPED)
        if original is None:
            return wanted
        files = "".join(f"{path} {digest(content)}\n"
                        for path, content in sorted(wanted.items())
                        if not NOT_IN_A_SERVER.search(path))
        label = f"{self.selection.label}." if self.selection else ""
        stamp = f"+table-cache.{label}{digest(files.encode())[:12]}"
        return {**wanted, STAMPED: re.sub(
            rb'(?m)^(#define SOURCE_REVISION ".*)"$',
            lambda match: match[1] + stamp.encode() + b'"', original)}

    def executable(self, path):
        for file in (self.source_of(path), self.stock / path):
            if file.is_file():
                return os.access(file, os.X_OK)
        return False

    def source_of(self, name):
        """Where the repository has, or would get, a file for this series."""
        for own in reversed(own_folders(self.top, self.release)):
            if (own / name).is_file():
                return own / name
        return self.top / name

    def apply(self, discard):
        wanted = self.stamped(self.wanted())
        version, before = self.manifest()
        if self.patched.is_dir() and (
                version != self.version or read(self.patched / ".fetched")
                != read(self.stock / ".fetched")):
            kept = self.patched.with_name(f"source-{version or 'unknown'}")
            shutil.rmtree(kept, ignore_errors=True)
            self.patched.rename(kept)
            print(f"-- overlay: the source is another one now; the tree patched "
                  f"before is kept as {kept}")
        if not self.patched.is_dir():
            before = {}
            print(f"-- overlay: copying the source of {self.version}", flush=True)
            self.save_manifest({})
            copy_source(self.stock, self.patched)
        changes = {}
        edited = []
        for path in sorted(set(wanted) | set(before)):
            current = read(self.patched / path)
            original = read(self.stock / path)
            target = wanted.get(path, original)
            if current == target:
                continue
            if digest(current) != before.get(path, digest(original)):
                edited.append(path)
            changes[path] = target
        if edited and not discard:
            raise Problem(
                "edited in the patched tree, and would be overwritten:\n  "
                + "\n  ".join(edited)
                + ("\nBUILD/refresh takes the edits over; "
                   "BUILD/refresh --discard drops them" if not self.selection else
                   "\nEdits are taken over from the tree of all topics only: "
                   "make them there, and remove these files"))
        for path, content in changes.items():
            if content is None:
                (self.patched / path).unlink(missing_ok=True)
            else:
                write(self.patched / path, content, self.executable(path))
        entries = {path: digest(content) for path, content in wanted.items()}
        if entries != before:
            self.save_manifest(entries)
        print(f"-- overlay: {len(wanted)} files of the patch set, "
              f"{len(changes)} brought up to date", flush=True)

    def refresh(self, topic=None):
        """Take edits over; 'topic' is the name of the topic of what is new."""
        known = [each.name for each in self.topics]
        if topic and hunks.name_of(topic) not in known:
            raise Problem(f"there is no topic {topic}; BUILD/topics has " + ", ".join(known))
        if not self.patched.is_dir():
            raise Problem("there is no patched tree yet: build first")
        if self.selection:
            raise Problem("this tree has some of the topics only; edit the one that has all")
        wanted = self.wanted()
        version, before = self.manifest()
        if version != self.version:
            raise Problem(f"the patched tree is of MariaDB {version}, the "
                          f"stock source of {self.version}: build first")
        current = {}
        for path in set(files_below(self.patched)) | set(wanted):
            mine = self.patched / path
            his = self.stock / path
            if path not in wanted and same_file(mine, his):
                continue
            current[path] = read(mine)
        conflicts = []
        todo = []
        for path, content in sorted(current.items()):
            original = read(self.stock / path)
            target = wanted.get(path, original)
            if content == target:
                continue
            written = before.get(path, digest(original))
            if digest(content) == written:
                continue                # the repository is ahead: apply's work
            if digest(target) != written:
                conflicts.append(path)
            todo.append((path, content, original))
        if conflicts:
            raise Problem("edited both in the repository and in the "
                          "patched tree:\n  " + "\n  ".join(conflicts))
        reworded = {path for path in self.to_be_reworded() if current[path] == wanted[path]}
        todo += [(path, current[path], read(self.stock / path)) for path in sorted(reworded)]
        failures = []
        for path, content, original in todo:
            try:
                self.take_over(path, content, original, topic, path in reworded)
            except Problem as error:
                failures.append(f"{path}: {error}")
        if failures:
            raise Problem("\n".join(failures))
        # The tree's present file: the repository may be ahead of it
        wanted = self.wanted()
        entries = {}
        for path in set(wanted) | set(before):
            content = read(self.patched / path)
            if path in wanted or content != read(self.stock / path):
                entries[path] = digest(content)
        self.save_manifest(entries)
        print(f"-- refresh: {len(todo)} files taken over", flush=True)
        mine = set(self.check_sources())
        for other in self.others:
            for problem in sorted(set(other.check_sources()) - mine):
                print(f"-- refresh: warning: {other.release}: {problem}", file=sys.stderr)
        for problem in self.check_topics():
            print(f"-- refresh: warning: {problem}", file=sys.stderr)

    def make_exceptions(self, excepted):
        """Say in the head of each hunk that does not apply to this source that
        it is not for these releases."""
        if not releases.has(excepted, self.release):
            raise Problem(f"this is MariaDB {self.release}, which is not in {excepted}")
        count = 0
        for patch in self.new_and_edited()[1]:
            original = read(self.stock / patch.path)
            if original is None:
                continue
            missing = {number: hunk for number, hunk, places in hunks.found(
                hunks.read_hunks(patch.difference), hunks.lines_of(original),
                self.release, self.names) if len(places) != 1}
            for number, hunk in missing.items():
                print(f"   {patch.name}: hunk {number} ({hunk.topic})\n"
                      + "".join(f"      {line}" for line in hunk.lines))
            if missing:
                write(patch.file, (patch.header + hunks.except_hunks(
                    patch.difference, missing, excepted)).encode("latin-1"), False)
            count += len(missing)
        print(f"-- except: {count} hunks are not for {excepted} now")

    def to_be_reworded(self):
        """MariaDB's files whose patch does not apply to another release that
        shares it: it was written when the source of that was not there.  If it
        applies, its hunks stay as they are, however somebody has cut them."""
        for patch in self.new_and_edited()[1]:
            if self.applies(patch) and not all(
                    other.applies(patch) for other in self.sharing(patch.name, patch.path)):
                yield patch.path

    def applies(self, patch):
        try:
            self.patched_content(patch)
            return True
        except Problem:
            return False                # check_sources() says so

    def sharing(self, name, path):
        """The other releases that have the same patch, and the file."""
        return [other for other in self.others
                if other.source_of(name) == self.source_of(name)
                and (other.stock / path).is_file()]

    def takes(self, head):
        """Whether a hunk with this head is laid over this source."""
        return hunks.is_for(head, self.release, self.names)

    def disabled(self, difference, path):
        """disabled_code() on this source; None if the patch does not apply."""
        try:
            return disabled_code(difference, read(self.stock / path), self.release, self.names)
        except Problem:
            return None                 # check_sources() says so

    def take_over(self, path, content, original, topic, reword):
        """Bring one edit of the patched tree into the repository.  'topic' is
        the name of the topic of what is new, or None.  'reword': choose the
        context of all hunks anew."""
        if original is None or path in REPLACED:
            target = self.source_of(path)
            if content is None or content == original:
                target.unlink(missing_ok=True)
                print(f"   removed {path}")
            else:
                write(target, content, os.access(self.patched / path, os.X_OK))
                print(f"   wrote {path}")
                if topic and not any(each.has(path) for each in self.topics):
                    mine, = (each for each in self.topics if each.name == hunks.name_of(topic))
                    mine.add(path)
                    print(f"   listed it in BUILD/topics/{mine.path.name}")
            return
        target = self.source_of(path + ".patch")
        if content is None:
            raise Problem(f"{path}: a file of MariaDB's cannot be removed")
        existing = read(target)
        if content == original and not (existing and hunks.select(
                split_patch(existing.decode("latin-1"))[1], lambda head: not self.takes(head))):
            target.unlink(missing_ok=True)
            print(f"   removed {path}.patch")
            return
        lines = hunks.lines_of(original)
        edits, before, written, kept, sums = [], None, [], "", set()
        others = self.sharing(path + ".patch", path)
        if existing:
            header, difference = split_patch(existing.decode("latin-1"))
            sums = disabled_sums(header) - {each.disabled(difference, path)
                                            for each in (self, *others)}
            written = hunks.read_hunks(difference)
            edits = hunks.locate(written, lines, self.release, self.names)
            before = hunks.edits_of(hunks.rows_of(edits, lines))
            kept = hunks.select(difference, lambda head: not self.takes(head))
        else:
            header = (f"{LICENSE}\nDescription: TODO\n"
                      "Forwarded: no\nLast-Update: TODO\n\n")
        edits, new_places = hunks.rebase(edits, lines, hunks.lines_of(content), topic)
        files = [(other.release, hunks.lines_of(read(other.stock / path))) for other in others]

        def split(edits):
            """The edits for a part of a series, and all others."""
            return ([edit for edit in edits if hunks.is_variant(edit.topic)],
                    [edit for edit in edits if not hunks.is_variant(edit.topic)])

        variants, shared = split(edits)
        if before is not None and split(before)[1] == shared and not reword:
            # Keep even the line numbers, which may be those of another release
            difference = split_patch(existing.decode("latin-1"))[1]
            difference = (difference[:difference.index("@@")]
                          + hunks.select(difference, lambda head: not (
                              self.takes(head) and hunks.is_variant(head))))
        else:
            difference = hunks.write_hunks(path, shared, lines, files,
                                           [] if reword else written) + kept
        difference += hunks.select(hunks.write_hunks(path, variants, lines, files))
        today = datetime.date.today().isoformat()
        header = re.sub(r"(?m)^Last-Update: .*$", f"Last-Update: {today}", header)
        header = re.sub(rf"(?m)^{DISABLED}: .*\n", "", header)
        sums.add(disabled_code(difference, original, self.release, self.names))
        sums.update(other.disabled(difference, path) for other in others)
        sums.discard(None)
        if sums:
            header = header.rstrip("\n") + f"\n{DISABLED}: {' '.join(sorted(sums))}\n\n"
        write(target, (header + difference).encode("latin-1"), False)
        print(f"   wrote {path}.patch" + "".join(f"\n      line {line}: a new hunk of {name}"
                                                 for line, name in new_places))

    # ------------------------------------------------------------ surveying

    def survey_all(self):
        """Yield (file, topic, sentence, lines) for each hunk, and for each other
        file that does not fit: 'sentence' says why it does not apply, or is
        None; by so many lines it has moved."""
        known = (self.top / REPLACED_SUMS).read_text().split()
        new, patches = self.new_and_edited()
        for patch in patches:
            for found in self.survey_hunks(patch):
                yield patch.name, *found
        for name in new:
            original = read(self.stock / name)
            sentence = None
            if name in REPLACED and digest(original) not in known:
                sentence = ("MariaDB has changed this file, which the patch set replaces: "
                            f"make the change in ours, then add the checksum to {REPLACED_SUMS}")
            elif name not in REPLACED and original is not None:
                sentence = "MariaDB has a file of that name"
            if sentence:
                yield name, next((each.name for each in self.topics
                                  if each.has(name)), "no topic"), sentence, 0

    def survey_hunks(self, patch):
        """Yield what survey_all() says of the hunks of one patch."""
        original = read(self.stock / patch.path)
        lines = hunks.lines_of(original or b"")
        last = {}
        replacing = {}          # topics that replace code, as keys
        for number, hunk, places in hunks.found(
                hunks.read_hunks(patch.difference), lines, self.release, self.names):
            topic = hunks.name_of(hunk.topic)
            what = f"hunk {number} ({hunk.topic or 'no topic'})"
            if any(line[0] == "+" and hunks.is_replaced(line[1:]) for line in hunk.lines):
                replacing[topic] = None
            if original is None:
                yield topic, f"MariaDB {self.version} has no file {patch.path}", 0
                continue
            if len(places) != 1:
                yield topic, f"{what} is found {len(places)} times", 0
                continue
            # Those of some releases are after the others
            kind = hunk.topic.partition(" ")[2]
            before = places[0] < last.get(kind, 0)
            last[kind] = places[0]
            yield (topic, f"{what} is found, but before the one that it was "
                   "behind" if before else None, places[0] + 1 - hunks.named_line(hunk))
        if not replacing or original is None:
            return
        sentence = None
        try:
            disabled = disabled_code(patch.difference, original, self.release, self.present)
            if disabled and disabled not in disabled_sums(patch.header):
                sentence = ("it is found, but MariaDB has changed code that the "
                            "patch set replaces: make the change where that "
                            "code is now (docs/DEVELOPING.md, A new MariaDB release)")
        except Problem:
            sentence = ("MariaDB's code that the patch set replaces here cannot "
                        "be compared, because not all of its ends are found")
        for topic in replacing if sentence else ():
            yield topic, sentence, 0

    def survey(self):
        """Yield (name, state, sentence) for each patch, and for each other file
        that does not fit: UNCHANGED, MOVED or DOES_NOT_APPLY."""
        files = {}
        for name, _, sentence, shift in self.survey_all():
            files.setdefault(name, []).append((sentence, shift))
        for name, found in files.items():
            problems = dict.fromkeys(sentence for sentence, _ in found if sentence)
            moved = [shift for _, shift in found if shift]
            if problems:
                yield name, DOES_NOT_APPLY, "; ".join(problems)
            elif not moved:
                yield name, UNCHANGED, ""
            else:
                yield (name, MOVED, f"{len(moved)} of {len(found)} hunks, by "
                       + (f"{min(moved):+d} to {max(moved):+d} lines"
                          if min(moved) < max(moved) else f"{moved[0]:+d} lines"))

    def misfits(self):
        """{topic: why it does not apply}, in order."""
        found = {}
        for name, topic, sentence, _ in self.survey_all():
            if sentence:
                found.setdefault(topic, f"{name}: {sentence}")
        return {topic.name: found[topic.name] for topic in self.topics if topic.name in found}

    def survey_parts(self):
        """Yield (part, topics that do not apply and that it needs, topics of it that are
        not selected) for each part of which a topic is selected."""
        bad = self.misfits()
        here = [topic for topic in self.topics
                if self.names is None or topic.name in self.names]
        for part in topics.read_parts(self.top):
            names = [topic.name for topic in here if topic.part == part]
            if names:
                yield (part, [name for name in topics.closure(here, names) if name in bad],
                       [topic.name for topic in self.topics
                        if topic.part == part and topic.name not in names
                        and topic.name in (self.present or [topic.name])])

    # ------------------------------------------------------------- checking

    def check(self):
        """Yield a sentence for each rule that the repository breaks."""
        listed = common.run(["git", "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], cwd=self.top, stderr=None)
        for path in listed.split("\0"):
            content = read(self.top / path) if path else None
            if (content and not path.endswith(NO_LICENSE)
                    and LICENSE.encode() not in content[:400]):
                yield f"{path}: no line '{LICENSE}' near its top"
        for own in sorted(self.top.glob("only-*/**/*")):
            path = own.relative_to(self.top).as_posix()
            folder, _, name = path.partition("/")
            if not own.is_file():
                continue
            series = series_of(range_of_folder(folder) or "")
            if (not name.startswith(tuple(f"{folder}/" for folder in FOLDERS))
                    or not (self.top / f"cmake/base-{series}.cmake").is_file()):
                yield f"{path}: is for no series, or no tree"
            elif read(own) == read(self.top / name):
                yield f"{path}: is a copy of {name}"
        for each in (self, *self.others):
            for problem in each.check_sources():
                yield f"{each.release}: {problem}"
        yield from self.check_topics()

    def check_topics(self):
        """Yield a sentence for each new file without a topic, or with several.

        Files of all series count, whether their source is there or not.
        """
        names = set(files_below(self.top))
        for base in self.top.glob("only-*"):
            names.update(files_below(base))
        yield from topics.problems(self.topics,
                                   {name for name in names if not name.endswith(".patch")})

    def check_sources(self):
        """Yield a sentence for each rule broken on this source."""
        stock = {}              # {file name: [path]}
        for path in files_below(self.stock):
            stock.setdefault(pathlib.PurePath(path).name, []).append(path)
        names, patches = self.new_and_edited()
        for patch in patches:
            yield from self.check_patch(patch)
        for name, file in names.items():
            content = read(file)
            if name not in REPLACED and read(self.stock / name) is not None:
                yield f"{name}: MariaDB has a file of that name"
            result = re.sub(r"/t/([^/]+)\.test$", r"/r/\1.result", name)
            if result not in names:
                yield f"{name}: has no {result}, without which mtr lets it pass"
            if content and any(read(self.stock / path) == content for path in
                               stock.get(pathlib.PurePath(name).name, ())):
                yield f"{name}: is a copy of a file of MariaDB's"
        yield from self.check_features(self.sources())

    def check_features(self, names):
        """Yield a sentence for each HAVE_... that a new file tests, and that
        nothing defines in this series: what depends on it would be left out."""
        code = {name: read(path) for name, path in sorted(names.items())
                if name.endswith((".c", ".cc", ".h", ".ic", ".cmake.patch",
                                  ".txt.patch", ".h.patch"))}
        defined = set()
        for path in (self.stock / "config.h.cmake",
                     *(self.stock / "include").rglob("*.h"),
                     *(self.stock / "mysys").glob("*.h")):
            defined.update(FEATURE_DEFINED.findall(read(path) or b""))
        for name, content in code.items():
            content = content.replace(b"\n+", b"\n")  # lines that a patch adds
            defined.update(FEATURE_DEFINED.findall(content))
            if name.endswith((".cmake.patch", ".txt.patch")):
                defined.update(FEATURE.findall(content))
        for name, content in code.items():
            if name.endswith(".patch"):
                continue
            tested = {feature for line in CONDITION.findall(content)
                      for feature in FEATURE.findall(line)}
            for feature in sorted(tested - defined):
                yield (f"{name}: tests {feature.decode()}, which this series does not define")

    def check_patch(self, patch):
        name, path = patch.name, patch.path
        header, difference = patch.header, patch.difference
        for field in ("Description", "Forwarded", "Last-Update"):
            if not re.search(rf"(?m)^{field}: (?!TODO)\S", header):
                yield f"{name}: no '{field}:' in its header (DEP-3)"
        touched = re.findall(r"(?m)^(?:---|\+\+\+) [ab]/(\S+)", difference)
        if touched != [path, path]:
            yield f"{name}: touches {sorted(set(touched))}, not just {path}"
        known = [each.name for each in self.topics]
        try:
            for number, hunk in enumerate(hunks.read_hunks(difference), 1):
                if hunks.name_of(hunk.topic) not in known:
                    yield (f"{name}: hunk {number} names no topic of "
                           f"BUILD/topics: {hunk.topic!r}")
            self.patched_content(patch)
            disabled = disabled_code(difference, self.original(patch), self.release, self.names)
        except Problem as error:
            yield str(error)
            return
        sums = disabled_sums(header)
        if disabled and disabled not in sums:
            yield (f"{name}: the code that it disables by #ifdef {hunks.REPLACED} is not what "
                   f"it was: make MariaDB {self.version}'s change where that code is now, then "
                   f"write into the patch's header: {DISABLED}: "
                   + " ".join(sorted({*sums, disabled})))


def print_survey(overlay):
    """Print what survey() and survey_parts() say; fail if a patch does not
    apply."""
    found = list(overlay.survey())
    count = {state: sum(each[1] == state for each in found)
             for state in (UNCHANGED, MOVED, DOES_NOT_APPLY)}
    print(f"-- patches on MariaDB {overlay.version}: {count[UNCHANGED]} apply "
          f"unchanged, {count[MOVED]} moved, {count[DOES_NOT_APPLY]} not at all")
    for name, state, sentence in found:
        if state != UNCHANGED:
            print(f"   {state}: {name}: {sentence}")
    for line in table_of_parts(overlay.survey_parts()):
        print(line)
    sys.stdout.flush()
    if count[DOES_NOT_APPLY]:
        raise Problem("the patch set does not fit this source; nothing was patched")


def table_of_parts(parts):
    """Lines that say of each part what survey_parts() has found."""
    for part, missing, left in parts:
        state = "can be built on this source"
        if left:
            state += ", without " + (", ".join(left) if len(left) < 4 else
                                     f"{len(left)} of its topics")
        if missing:
            state = "cannot be built, because this does not apply: " + ", ".join(missing)
        yield f"   {part:14}{state}"


def print_misfits(overlay):
    """Print the topics that do not apply; on stderr, what --what-fits leaves out
    and why."""
    found = overlay.misfits()
    for name, reason in topics.dependents(overlay.topics, found).items():
        print(f"-- left out: {name}, because "
              + (f"it needs {reason}" if reason else found[name]), file=sys.stderr)
    print("\n".join(found))


def same_file(a, b):
    """Whether two files are alike; a copy keeps its original's time."""
    try:
        return filecmp.cmp(a, b)
    except OSError:
        return a.is_symlink() and b.is_symlink()


def main():
    parser = argparse.ArgumentParser(
        description="Lay the patch set over MariaDB's source, take edits "
                    "back, or check the patch set's rules.")
    parser.add_argument("action", choices=("apply", "refresh", "except",
                                           "check", "survey", "misfits"))
    parser.add_argument("--top", type=pathlib.Path, required=True, help="the repository")
    parser.add_argument("--stock", type=pathlib.Path, required=True,
                        help="directory with MariaDB's source/ and version")
    parser.add_argument("--patched", type=pathlib.Path, required=True,
                        help="directory of the patched source/")
    parser.add_argument("--out", type=pathlib.Path,
                        help="directory with SERIES/stock of other series")
    parser.add_argument("--discard", action="store_true",
                        help="with apply: overwrite edits in the patched tree")
    arguments = parser.parse_args()
    overlay = Overlay(arguments.top, arguments.stock, arguments.patched, arguments.out)
    if arguments.action == "apply":
        overlay.apply(arguments.discard)
    elif arguments.action == "refresh":
        overlay.refresh(os.environ.get("REFRESH_TOPIC"))
    elif arguments.action == "except":
        overlay.make_exceptions(os.environ.get("EXCEPT_RELEASES", ""))
    elif arguments.action == "survey":
        print_survey(overlay)
    elif arguments.action == "misfits":
        print_misfits(overlay)
    else:
        problems = list(overlay.check())
        if problems:
            raise Problem("\n".join(problems))
        versions = [each.version for each in (overlay, *overlay.others)]
        print("-- check: the patch set keeps its rules on MariaDB " + " and ".join(versions))


if __name__ == "__main__":
    common.end("overlay", main)
