#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Write the patch set as a series of patches, one a capability.

The repository keeps one .patch for each file of MariaDB's.  Packagers want
one for each capability instead, in an order.  series.map says which files
belong to which.  A series is made from states of the source: state 0 is
MariaDB's own, state N has the files of the first N capabilities.  Patch N is
the difference of two states, so the series as a whole gives the patched tree.

Where two capabilities edit the same file, the earlier patch has that file as
it was in a commit before the later one landed ('at REVISION' in the map).

git makes the patches, from a repository of its own that holds only the files
concerned: git am takes them, and so do quilt and dpkg-source.  The same input
gives the same patches, byte for byte.

Exit status: 0 done, 1 failed, 2 wrong usage.
"""

import argparse
import datetime
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types

import overlay
import run_tests

PATCH_SET = "Table-cache patch set for MariaDB"
TITLE = re.compile(r"Title: (\S.*)")
SECTION = re.compile(r"\[([a-z][a-z0-9-]*)\]$")


class SeriesError(Exception):
    """An error, in words for the user at the terminal."""


def say(text):
    print(f"-- series: {text}", flush=True)


class Capability:
    """A section of series.map."""

    def __init__(self, name):
        self.name = name
        self.title = ""
        self.description = []
        self.patterns = []              # [(pattern, revision or None)]


def read_map(path):
    """The capabilities, in their order."""
    result = []
    in_header = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.name}:{number}"
        if line.startswith("#"):
            continue
        match = SECTION.match(line)
        if match:
            if match[1] in [section.name for section in result]:
                raise SeriesError(f"{where}: section {line} is there twice")
            result.append(Capability(match[1]))
            in_header = True
        elif not line.strip():
            in_header = in_header and not (result and result[-1].title)
        elif not result:
            raise SeriesError(f"{where}: expected a section like [name]")
        elif in_header:
            section = result[-1]
            match = TITLE.match(line)
            if match and not section.title:
                section.title = match[1]
            elif section.title and line.startswith(" "):
                section.description.append("" if line == " ." else line[1:])
            else:
                raise SeriesError(f"{where}: expected 'Title: ...', and lines "
                                  "that begin with a space")
        else:
            match = re.fullmatch(r"(\S+)(?: at ([0-9a-f]{7,40}))?", line)
            if not match:
                raise SeriesError(f"{where}: expected PATTERN or PATTERN at "
                                  "REVISION")
            result[-1].patterns.append((match[1], match[2]))
    for section in result:
        if not section.title or not section.patterns:
            raise SeriesError(f"{path.name}: section [{section.name}] has no "
                              "title or no patterns")
    if not result:
        raise SeriesError(f"{path.name}: has no sections")
    return result


def longest(patterns, path):
    """Length of the longest pattern that fits a path; 0 if none does."""
    return max((len(pattern) for pattern in patterns
                if fnmatch.fnmatchcase(path, pattern)), default=0)


def assign(capabilities, paths):
    """{path: index of the capability that brings its last form}.

    Raises SeriesError that names every path without one, or with several.
    """
    owners = {}
    problems = []
    for path in paths:
        lengths = [longest([pattern for pattern, revision in section.patterns
                            if not revision], path)
                   for section in capabilities]
        best = max(lengths)
        if not best:
            problems.append(f"{path}: no capability in series.map has it")
        elif lengths.count(best) > 1:
            names = [section.name for section, length
                     in zip(capabilities, lengths) if length == best]
            problems.append(f"{path}: equally long patterns in series.map "
                            f"give it to {' and '.join(names)}")
        else:
            owners[path] = lengths.index(best)
    if problems:
        raise SeriesError("\n".join(problems))
    return owners


class Maker:
    def __init__(self, top, trees, base):
        self.top = top
        self.stock = trees / "stock"
        self.trees = trees
        self.base = base
        self.capabilities = read_map(top / "BUILD/lib/series.map")
        self.files = overlay.sources(top, base)
        self.paths = sorted(self.files)
        self.owners = assign(self.capabilities, self.paths)
        self.whole = {}                 # {path in the source: content}
        version = overlay.read(self.stock / "version")
        self.version = version.decode().strip() if version else "?"

    def git(self, *words, where=None, env=None):
        done = subprocess.run(["git", *words], cwd=where or self.top,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, **(env or {})))
        if done.returncode:
            raise SeriesError(f"git {' '.join(words)[:200]} failed:\n"
                              + done.stderr.decode(errors="replace")[-2000:])
        return done.stdout

    def files_at(self, revision):
        """Paths of the patch set's files in a commit."""
        try:
            listed = self.git("ls-tree", "-r", "--name-only", revision,
                              *overlay.FOLDERS).decode()
        except SeriesError as error:
            raise SeriesError(
                f"commit {revision}, from which series.map takes an earlier "
                "form of some files, is not in this clone; fetch the whole "
                "history (git fetch --unshallow)") from error
        return listed.split("\n")[:-1]

    def taken(self, index):
        """{path in the repository: content} that a capability brings."""
        section = self.capabilities[index]
        result = {}
        for path in self.paths:
            if self.owners[path] == index:
                result[path] = overlay.read(self.files[path])
        for revision in sorted({revision for _, revision in section.patterns
                                if revision}):
            patterns = [pattern for pattern, other in section.patterns
                        if other == revision]
            plain = [pattern for other in self.capabilities
                     for pattern, at in other.patterns if not at]
            for path in self.files_at(revision):
                length = longest(patterns, path)
                if length and length >= longest(plain, path):
                    result[path] = self.git("show", f"{revision}:{path}")
        return result

    def original(self, path):
        return overlay.read(self.stock / "source" / path)

    def states(self):
        """Yield (capability, {path in the source: content}) in order; the
        paths are those of all files that differ from MariaDB's so far."""
        state = {}
        for index, section in enumerate(self.capabilities):
            for name, content in sorted(self.taken(index).items()):
                if not name.endswith(".patch"):
                    state[name] = content
                    continue
                path = name[:-len(".patch")]
                original = self.original(path)
                if original is None:
                    raise SeriesError(f"{name}: MariaDB {self.version} has no "
                                      f"file {path}")
                _, difference = overlay.split_patch(content.decode("latin-1"))
                state[path] = overlay.apply_patch(
                    f"[{section.name}] {name}", difference.encode("latin-1"),
                    original, self.version)
            yield section, dict(state)

    def message(self, section, date):
        """A commit message whose last paragraph is the rest of a DEP-3
        header; its first part are the mail's From and Subject."""
        return "\n".join([
            section.title, "", *section.description, "",
            f"Origin: other, the patch set '{PATCH_SET}'",
            "Forwarded: no", f"Applies-To: mariadb {self.version}",
            f"Last-Update: {date}", ""])

    def last_change(self, section):
        """Time (UTC) and author of the last change of a capability's files."""
        mine = [str(self.files[path]) for path in self.paths
                if self.capabilities[self.owners[path]] is section]
        mine = mine or ["BUILD/lib/series.map"]
        last = self.git("log", "-1", "--format=%ct%n%an%n%ae", "--",
                        *mine).decode().splitlines()
        stamp, name, email = last if last else ("0", PATCH_SET, "unknown")
        return (datetime.datetime.fromtimestamp(int(stamp),
                                                datetime.timezone.utc),
                name, email)

    def make(self, output):
        """Write the series; return the names of the patches."""
        states = list(self.states())
        # The whole patch set as it is now; a user may edit it meanwhile
        self.whole = states[-1][1]
        paths = sorted({path for _, state in states for path in state})
        with tempfile.TemporaryDirectory(prefix="series-") as work:
            work = pathlib.Path(work)
            identity = {"HOME": str(work), "GIT_CONFIG_NOSYSTEM": "1"}
            for role in ("AUTHOR", "COMMITTER"):
                identity[f"GIT_{role}_NAME"] = PATCH_SET
                identity[f"GIT_{role}_EMAIL"] = "unknown"
                identity[f"GIT_{role}_DATE"] = "@0 +0000"
            repository = work / "repository"
            repository.mkdir()

            def git(*words):
                return self.git(*words, where=repository, env=identity)

            git("init", "-q", "-b", "series")
            git("config", "core.autocrlf", "false")
            for path in paths:
                content = self.original(path)
                if content is not None:
                    overlay.write(repository / path, content, os.access(
                        self.stock / "source" / path, os.X_OK))
            git("add", "-f", "--all", ".")
            git("commit", "-q", "--allow-empty", "-m", f"MariaDB {self.version}")
            wanted = overlay.Overlay(self.top, self.stock,
                                     self.trees / "patched").wanted()
            if wanted != self.whole:
                wrong = sorted(path for path in set(wanted) | set(self.whole)
                               if wanted.get(path) != self.whole.get(path))
                raise SeriesError("the series does not give the patched tree; "
                                  "these files differ:\n  "
                                  + "\n  ".join(wrong))
            before = {}
            for section, state in states:
                if state == before:
                    say(f"{section.name}: this version of the patch set "
                        "does not have it")
                    continue
                for path, content in state.items():
                    if before.get(path) != content:
                        executable = any(
                            os.access(file, os.X_OK) for file in
                            (self.files.get(path, self.top / path),
                             self.stock / "source" / path))
                        overlay.write(repository / path, content, executable)
                moment, name, email = self.last_change(section)
                for role in ("AUTHOR", "COMMITTER"):
                    identity[f"GIT_{role}_NAME"] = name
                    identity[f"GIT_{role}_EMAIL"] = email
                    identity[f"GIT_{role}_DATE"] = (
                        f"@{int(moment.timestamp())} +0000")
                git("add", "-f", "--all", ".")
                git("commit", "-q", "--cleanup=verbatim", "-m",
                    self.message(section, moment.date().isoformat()))
                git("tag", section.name)
                before = state
            made = work / "patches"
            made.mkdir()
            git("format-patch", "-q", "--root", "--zero-commit",
                "--no-signature", "--no-renames", "--full-index",
                "--output-directory", str(made), "series~"
                + str(len(git("tag").split())) + "..series")
            names = []
            tags = [section.name for section, _ in states
                    if section.name.encode() in git("tag").split()]
            for number, (patch, name) in enumerate(
                    zip(sorted(made.iterdir()), tags), 1):
                names.append(f"table-cache-{number:02}-{name}.patch")
                patch.rename(made / names[-1])
            (made / "series").write_text("".join(f"{name}\n"
                                                 for name in names))
            # In one step, so that an interrupted run leaves the former one
            output.parent.mkdir(parents=True, exist_ok=True)
            new = output.with_name(output.name + ".new")
            shutil.rmtree(new, ignore_errors=True)
            shutil.copytree(made, new)
            if output.exists():
                others = files_of_others(output)
                if others:
                    shutil.rmtree(new)
                    raise SeriesError(
                        f"{output} would be replaced as a whole, and holds "
                        f"{others[0]}, which is not of a series written "
                        "before; write this one elsewhere and copy it")
                shutil.rmtree(output)
            new.rename(output)
        return names


def files_of_others(directory):
    """The names in a directory that no series written by this script has."""
    return sorted(path.name for path in directory.iterdir()
                  if path.name != "series" and not re.fullmatch(
                      r"table-cache-\d\d-.*\.patch", path.name))


# ------------------------------------------------------------ trying them out

def run(command, where, env=None):
    done = subprocess.run(command, cwd=where, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False,
                          env=dict(os.environ, **(env or {})))
    if done.returncode:
        raise SeriesError(f"{' '.join(map(str, command))} failed:\n"
                          + done.stdout[-3000:])
    return done.stdout


def touched(patches):
    """Paths that a directory of patches changes or makes."""
    paths = set()
    for patch in patches.glob("*.patch"):
        paths.update(re.findall(r"(?m)^\+\+\+ b/(\S+)$",
                                patch.read_text(errors="replace")))
    return paths


class Trial:
    """The series, applied with quilt to the unpacked source package."""

    def __init__(self, maker, patches, names):
        self.maker = maker
        self.patches = patches
        self.names = names
        self.tree = maker.trees / "series"
        self.source = self.tree / "source"

    def unpack(self):
        """A copy of the source as dpkg-source unpacks it, with the series in
        debian/patches."""
        stock = self.maker.stock / "source"
        debian = self.source / "debian" / "patches"
        paths = touched(self.patches)
        if debian.is_dir():
            paths |= touched(debian)
        say("copying the unpacked source package")
        shutil.rmtree(self.source, ignore_errors=True)
        self.tree.mkdir(parents=True, exist_ok=True)
        shutil.copytree(stock, self.source, symlinks=True)
        # A file that was patched in the former run, and is not now, has to
        # look new to ninja, though it is older
        for path in paths:
            if (self.source / path).is_file():
                os.utime(self.source / path)
        debian.mkdir(parents=True, exist_ok=True)
        for name in self.names:
            shutil.copyfile(self.patches / name, debian / name)
        with open(debian / "series", "a", encoding="utf-8") as series:
            series.write("".join(f"{name}\n" for name in self.names))

    def push(self, name=None):
        """Apply all patches, or those up to one.  quilt ignores the user's
        settings, and no fuzz is allowed, as with dpkg-source."""
        run(["quilt", "--quiltrc=-", "push", "--fuzz=0",
             *([name] if name else ["-a"])], self.source,
            {"QUILT_PATCHES": "debian/patches", "LC_ALL": "C"})

    def compare(self):
        """The result is the patched tree, file by file."""
        patched = self.maker.whole
        stock = self.maker.stock / "source"
        wrong = []
        for path in sorted(set(patched) | touched(self.patches)):
            want = patched.get(path, overlay.read(stock / path))
            if overlay.read(self.source / path) != want:
                wrong.append(path)
        if wrong:
            raise SeriesError("the series does not give the patched tree; "
                              "these files differ:\n  " + "\n  ".join(wrong))
        return len(patched)

    def apply_with_git(self):
        """git am, in a repository of the files concerned."""
        with tempfile.TemporaryDirectory(prefix="series-") as work:
            work = pathlib.Path(work)
            env = {"HOME": str(work), "GIT_CONFIG_NOSYSTEM": "1"}
            for role in ("AUTHOR", "COMMITTER"):
                env[f"GIT_{role}_NAME"] = env[f"GIT_{role}_EMAIL"] = "trial"
            repository = work / "repository"
            repository.mkdir()
            for path in touched(self.patches):
                content = self.maker.original(path)
                if content is not None:
                    overlay.write(repository / path, content, False)
            run(["git", "init", "-q"], repository, env)
            run(["git", "add", "-f", "--all", "."], repository, env)
            run(["git", "commit", "-q", "-m", "stock"], repository, env)
            run(["git", "am", "-q", "--keep-cr",
                 *[self.patches / name for name in self.names]], repository,
                env)
            for path in touched(self.patches):
                if (overlay.read(repository / path)
                        != overlay.read(self.source / path)):
                    raise SeriesError(f"git am and quilt differ in {path}")

    def apply_all(self):
        self.unpack()
        self.push()
        count = self.compare()
        say(f"quilt applies {len(self.names)} patches without fuzz; all "
            f"{count} files are those of the patched source")
        self.apply_with_git()
        say("git am gives the same")

    # ---------------------------------------------------------------- build

    def build_and_test(self, last_only):
        """Build and test after each patch; return the number of failures."""
        self.unpack()
        all_results = []
        runner = run_tests.Runner(types.SimpleNamespace(
            top=self.maker.top, trees=self.maker.trees, variant="series",
            seconds=0), [])
        build = self.tree / "release"
        applied = set()
        for name in self.names:
            applied |= set(re.findall(
                r"(?m)^\+\+\+ b/(\S+)$",
                (self.patches / name).read_text(errors="replace")))
            if last_only and name != self.names[-1]:
                continue
            self.push(name)
            say(f"building with the patches up to {name}")
            script = self.maker.top / "cmake"
            status = run_tests.stream(
                ["cmake", "-D", f"TREES={self.maker.trees}",
                 "-D", f"BASE={self.maker.base}", "-D", "TREE=series",
                 "-D", "TYPE=release", "-P", str(script / "build_tree.cmake")],
                self.maker.top)
            if status:
                raise SeriesError(f"the source with the patches up to {name} "
                                  "does not build")
            title = name[:-len(".patch")]
            results = run_tests.Results(title)
            all_results.append(results)
            self.unit_tests(build, applied, results)
            suites = self.suites(applied)
            if suites:
                outcome = runner.mtr(",".join(suites), "release")
                results.outcome.update(outcome.outcome)
                results.retried |= outcome.retried
            if not results.outcome:
                results.add("no tests", "failed")
        self.compare()
        return runner.summary(all_results)

    @staticmethod
    def suites(applied):
        """The mtr suites that some patches bring or extend."""
        found = set()
        for path in applied:
            match = re.match(r"(?:mysql-test/suite|plugin/\w+/mysql-test)/"
                             r"(\w+)/(?:t/)?\w+\.test$", path)
            if match and match[1] != "sys_vars":
                found.add(match[1])
        return sorted(found)

    @staticmethod
    def unit_tests(build, applied, results):
        names = sorted(pathlib.PurePath(path).name.rsplit("-t.", 1)[0]
                       for path in applied
                       if re.search(r"-t\.(c|cc)$", path))
        if not names:
            return
        run_tests.header("unit tests: " + " ".join(names))
        for name in names:
            report = run_tests.stream(
                ["ctest", "--output-on-failure", "--no-tests=error", "-R",
                 f"^{name}$"], build)
            results.add(name, "failed" if report else "passed")


def main():
    parser = argparse.ArgumentParser(
        description="Write the patch set as a series (called by BUILD/series).")
    parser.add_argument("--top", type=pathlib.Path, required=True)
    parser.add_argument("--trees", type=pathlib.Path, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--try", dest="attempt", action="store_true")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--last", action="store_true")
    arguments = parser.parse_args()
    trees = arguments.trees.resolve()
    maker = Maker(arguments.top.resolve(), trees, arguments.base)
    if arguments.check:
        say(f"each of {len(maker.paths)} files has its patch")
        return 0
    output = (arguments.output or trees / "series" / "patches").resolve()
    names = maker.make(output)
    say(f"{len(names)} patches for MariaDB {maker.version} in {output}")
    for name in names:
        lines = (output / name).read_text(errors="replace").splitlines()
        added = sum(line[:1] == "+" and line[:4] != "+++ " for line in lines)
        removed = sum(line[:1] == "-" and line[:3] != "---" for line in lines)
        print(f"   {name}: {added} lines added, {removed} removed")
    trial = Trial(maker, output, names)
    if arguments.attempt:
        trial.apply_all()
    if arguments.build:
        return 1 if trial.build_and_test(arguments.last) else 0
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (SeriesError, overlay.OverlayError) as error:
        for line in str(error).splitlines():
            print(f"-- series: error: {line}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(1)
