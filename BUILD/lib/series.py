#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Write the patch set as a series of patches, one a topic.

The repository keeps one .patch for each file of MariaDB's.  A maintainer or a
packager wants one for each change instead, in an order: the topics (topics.py).
Stage 0 is MariaDB's source.  Stage N has the hunks and the new files of the
first N topics, without the code of MariaDB's that they replace (hunks.py).
Patch N is the difference of two stages, with three lines of context.

git makes the patches, from a repository of its own that holds only the files
concerned: git am takes them, and so do git apply, patch, quilt and dpkg-source.
The same input gives the same patches, byte for byte.

With --git the stages become commits in a checkout of MariaDB's that the user has,
on a new branch: on its HEAD, which stays as it is, like its index and files.

If the trees have a selection (topics.py), the series has these topics only.

Exit status: 0 done, 1 failed, 2 wrong usage.
"""

import argparse
import copy
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import common
import fetch_source
import hunks
import overlay
import topics
from common import Problem

say = functools.partial(print, "-- series:", flush=True)

PATCH_SET = "Table-cache patch set for MariaDB"


def patch_name(topic):
    return f"table-cache-{topic.number:02}-{topic.name}.patch"


@functools.cache
def last_change(top, *paths):
    """Who changed one of these files last, as git fast-import reads that:
    NAME <EMAIL> TIME +0000."""
    found = Git(top)("log", "-1", "--format=%an <%ae> %ct +0000", "--", *map(str, paths))
    return found.decode(errors="replace").strip() or f"{PATCH_SET} <unknown> 0 +0000"


class Maker:
    """The stages of the source."""

    def __init__(self, top, trees, base):
        self.top = top
        self.stock = trees / "stock"
        self.trees = trees
        self.base = base
        self.overlay = overlay.Overlay(top, self.stock, trees / "patched")
        self.version = self.overlay.version
        self.topics = [topic for topic in self.overlay.topics
                       if self.overlay.names is None or topic.name in self.overlay.names]
        self.files = self.overlay.sources()
        # {topic: {path in the source: new file}}
        self.new_files = {topic.name: {} for topic in self.topics}
        # {path in the source: (MariaDB's lines, edits)}
        self.edited = {}
        self.read_files()

    def read_files(self):
        problems = []
        new, patches = self.overlay.new_and_edited()
        for name, file in new.items():
            try:
                mine = topics.owner(self.topics, name)
                self.new_files[mine.name][name] = overlay.read(file)
            except Problem as error:
                problems.append(str(error))
        for patch in patches:
            try:
                lines, edits = self.overlay.edits(patch)
            except Problem as error:
                problems.append(str(error))
                continue
            for topic in sorted({hunks.name_of(edit.topic) for edit in edits}):
                if topic not in self.new_files:
                    problems.append(f"{patch.name}: a hunk of {topic!r}, which is no "
                                    "topic of BUILD/topics")
            self.edited[patch.path] = (lines, edits)
        if problems:
            raise Problem("\n".join(problems))

    def of(self, names):
        """The same for some of the topics."""
        other = copy.copy(self)
        other.topics = [topic for topic in self.topics if topic.name in names]
        other.edited = {path: (lines, mine)
                        for path, (lines, edits) in self.edited.items()
                        for mine in [[edit for edit in edits if hunks.name_of(
                            edit.topic) in names]] if mine}
        return other

    def original(self, path):
        return overlay.read(self.stock / "source" / path)

    def content(self, path, names):
        """MariaDB's file with the edits of some topics."""
        lines, edits = self.edited[path]
        return hunks.content_of(hunks.without_replaced(hunks.apply_edits(
            [edit for edit in edits if hunks.name_of(edit.topic) in names], lines)))

    def paths_of(self, topic):
        """What a topic changes, in the source."""
        return sorted({*self.new_files[topic.name],
                       *(path for path, (_, edits) in self.edited.items()
                         if any(hunks.name_of(edit.topic) == topic.name for edit in edits))})

    def stages(self):
        """Yield (topic, {path in the source: content}) in order, with all files
        that differ from MariaDB's so far; topics without changes are left out."""
        state = {}
        names = set()
        for topic in self.topics:
            names.add(topic.name)
            paths = self.paths_of(topic)
            if not paths:
                say(f"{topic.name}: MariaDB {self.base} does not need it")
                continue
            for path in paths:
                if path in self.new_files[topic.name]:
                    state[path] = self.new_files[topic.name][path]
                else:
                    state[path] = self.content(path, names)
            yield topic, dict(state)

    def whole(self):
        """{path: content}: what the series must give in the end."""
        # All hunks of a file may be of other releases, or of other topics
        wanted = {path: content
                  for path, content in self.overlay.wanted().items()
                  if content != self.original(path)}
        return {path: content if path in self.files else
                hunks.content_of(hunks.without_replaced(hunks.lines_of(content)))
                for path, content in wanted.items()}

    def author(self, topic):
        """The one who changed one of a topic's files last."""
        return last_change(self.top, topic.path, *(
            self.files.get(path) or self.files[path + ".patch"]
            for path in self.paths_of(topic)))

    def commit(self, git, stages, parent, branch, committer=None):
        """Commit the stages on top of a commit, as a new branch.  Without a
        committer it is the author."""
        stream, before = [], {}

        def data(content):
            stream.append(b"data %d\n%s\n" % (len(content), content))

        for topic, state in stages:
            author = self.author(topic)
            stream.append(f"commit refs/heads/{branch}\nauthor {author}\n"
                          f"committer {committer or author}\n".encode())
            data((topic.message + "\n").encode())
            if not before:
                stream.append(f"from {parent}\n".encode())
            for path, content in state.items():
                if before.get(path) != content:
                    mode = 755 if self.overlay.executable(path) else 644
                    stream.append(f"M 100{mode} inline {path}\n".encode())
                    data(content)
            before = state
        git("fast-import", "--quiet", "--done", input=b"".join(stream) + b"done\n")

    def make(self, output):
        """Write the series; return the names of the patches."""
        stages = self.checked_stages()
        paths = sorted({path for _, state in stages for path in state})
        with tempfile.TemporaryDirectory(prefix="series-") as work:
            work = pathlib.Path(work)
            git = self.repository(work, paths)
            made = work / "patches"
            self.write_patches(git, stages, "patched", made)
            names = []
            for patch, (topic, _) in zip(sorted(made.iterdir()), stages):
                if topic.number < topics.ALONE:
                    git("apply", "--check", str(patch))
                names.append(patch_name(topic))
                patch.rename(made / names[-1])
            (made / "series").write_text("".join(f"{name}\n" for name in names))
            replace_directory(output, made)
        return names

    def repository(self, work, paths):
        """A git repository with MariaDB's files of these paths, on which the user's
        settings have no influence."""
        identity = {"HOME": str(work), "GIT_CONFIG_NOSYSTEM": "1"}
        for role in ("AUTHOR", "COMMITTER"):
            identity[f"GIT_{role}_NAME"] = PATCH_SET
            identity[f"GIT_{role}_EMAIL"] = "unknown"
            identity[f"GIT_{role}_DATE"] = "@0 +0000"
        git = Git(work / "repository", identity)
        git.where.mkdir()
        git("init", "-q", "-b", "stock")
        git("config", "core.autocrlf", "false")
        for path in paths:
            content = self.original(path)
            if content is not None:
                overlay.write(git.where / path, content, os.access(
                    self.stock / "source" / path, os.X_OK))
        git("add", "-f", "--all", ".")
        git("commit", "-q", "--allow-empty", "-m", f"MariaDB {self.version}")
        return git

    def write_patches(self, git, stages, branch, directory):
        """Commit stages on top of 'stock', and write a patch for each."""
        self.commit(git, stages, git.commit_of("stock"), branch)
        git("format-patch", "-q", "--zero-commit", "--no-signature", "--no-renames",
            "--full-index", "--output-directory", str(directory), f"stock..{branch}")

    def checked_stages(self):
        stages = list(self.stages())
        if not stages:
            raise Problem(f"MariaDB {self.version} needs none of these topics")
        if self.whole() != stages[-1][1]:
            raise Problem("the last stage is not the patched tree")
        return stages


class Git:
    """git in a directory, with an environment."""

    def __init__(self, where, environment=None):
        self.where, self.environment = where, environment or {}

    def __call__(self, *words, **options):
        if "input" not in options:
            options["stdin"] = subprocess.DEVNULL
        done = subprocess.run(
            ["git", *words], cwd=self.where, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, check=False,
            env={**os.environ, **self.environment}, **options)
        if done.returncode:
            raise Problem(f"git {' '.join(words)[:200]} failed:\n"
                          + done.stderr.decode(errors="replace")[-2000:])
        return done.stdout

    def commit_of(self, name):
        return self("rev-parse", "--verify", name + "^{commit}").decode().strip()


class Checkout:
    """A git repository of MariaDB's that gets the series as a branch."""

    def __init__(self, directory, work):
        """'work' is an empty directory for what is needed meanwhile."""
        self.trees = work
        self.git = Git(directory, {"GIT_INDEX_FILE": str(work / "index")})
        self.head = self.git.commit_of("HEAD")
        self.git("read-tree", self.head)

    def take_files(self, top):
        """Copy the files concerned to where a fetched source would be; return
        the release series."""
        names = {name.removesuffix(".patch") for name in
                 (*overlay.files_below(top), *(
                     name for own in top.glob("only-*") for name in overlay.files_below(own)))}
        listed = self.git("ls-files", "-z").decode("utf-8", "surrogateescape")
        wanted = {"VERSION", overlay.STAMPED, *names} & set(listed.split("\0"))
        source = self.trees / "stock" / "source"
        self.git("checkout-index", f"--prefix={source}/", "-z", "--stdin",
                 input="\0".join(sorted(wanted)).encode())
        if "VERSION" not in wanted:
            raise Problem(f"{self.git.where} has no file VERSION at its "
                          "top: it is not a MariaDB source")
        version = fetch_source.upstream_version(source)
        (self.trees / "stock" / "version").write_text(f"{version}\n")
        return overlay.series_of(version)

    def add_branch(self, maker, branch):
        """Returns the number of commits."""
        if self.git("branch", "--list", branch):
            raise Problem(f"{self.git.where} has a branch {branch} already; "
                          "choose another name by --branch, or delete it")
        stages = maker.checked_stages()
        try:
            committer = self.git("var", "GIT_COMMITTER_IDENT").decode().strip()
        except Problem:             # git does not know the user's name
            committer = None
        maker.commit(self.git, stages, self.head, branch, committer)
        return len(stages)


def replace_directory(output, made):
    """In one step, so that an interrupted run leaves the former series."""
    output.parent.mkdir(parents=True, exist_ok=True)
    new = output.with_name(output.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(made, new)
    if output.exists():
        others = files_of_others(output)
        if others:
            shutil.rmtree(new)
            raise Problem(
                f"{output} would be replaced as a whole, and holds {others[0]}, which is not "
                "of a series written before; write this one elsewhere and copy it")
        shutil.rmtree(output)
    new.rename(output)


def files_of_others(directory):
    """The names in a directory that no series written by this script has."""
    return sorted(path.name for path in directory.iterdir()
                  if path.name != "series" and not re.fullmatch(
                      r"table-cache-\d\d-.*\.patch", path.name))


def check(maker):
    with tempfile.TemporaryDirectory(prefix="series-") as work:
        names = maker.make(pathlib.Path(work, "patches"))
    say(f"{len(maker.files)} files of the patch set give {len(names)} patches "
        f"for MariaDB {maker.version}")


def write_branch(top, trees, directory, branch):
    selection = topics.read_selection(trees)
    label = f"-{selection.label}" if selection else ""
    with tempfile.TemporaryDirectory(prefix="series-") as work:
        work = pathlib.Path(work)
        checkout = Checkout(directory, work)
        if selection:
            shutil.copyfile(trees / topics.SELECTION, work / topics.SELECTION)
        base = checkout.take_files(top)
        overlay.print_survey(overlay.Overlay(top, work / "stock", work / "patched"))
        branch = branch or f"table-cache{label}"
        count = checkout.add_branch(Maker(top, work, base), branch)
    say(f"branch {branch} in {directory}: {count} commits, one a topic, on "
        f"{checkout.head[:12]}")


def main():
    parser = argparse.ArgumentParser(
        description="Write the patch set as a series (called by BUILD/series).")
    parser.add_argument("--top", type=pathlib.Path, required=True)
    parser.add_argument("--trees", type=pathlib.Path, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--git", type=pathlib.Path)
    parser.add_argument("--branch")
    arguments = parser.parse_args()
    trees = arguments.trees.resolve()
    if arguments.git:
        write_branch(arguments.top.resolve(), trees, arguments.git.resolve(), arguments.branch)
        return 0
    maker = Maker(arguments.top.resolve(), trees, arguments.base)
    if arguments.check:
        check(maker)
        for other in sorted(trees.parent.glob("*/stock/version")):
            base = other.parents[1].name
            if (base != arguments.base and (maker.top / f"cmake/base-{base}.cmake").is_file()):
                check(Maker(maker.top, other.parents[1], base))
        return 0
    output = (arguments.output or trees / "series" / "patches").resolve()
    names = maker.make(output)
    say(f"{len(names)} patches for MariaDB {maker.version} in {output}")
    for name in names:
        print(f"   {name}")
    return 0


if __name__ == "__main__":
    common.end("series", main)
