# SPDX-License-Identifier: GPL-2.0-only
"""The runs of 'BUILD/test all', and the records of what passed.

BUILD/lib/tested.tsv is what --record of BUILD/test writes: a line for each series and
command, of the last time.  pages.py writes docs/TESTED.md from it.
"""

import pathlib
import re
import subprocess

DOCUMENTS = ("**/*.md", "docs/**", "sql-bench/results/**")
SECONDS = 60                    # of each stress program
# Of all, those that fail soonest first
RUNS = ("unit:release", "suite:release", "suite:debug", "default:release", "debug-only:debug",
        "stress:debug", "stress:asan", "stress:tsan", "series:release", "series:debug")

INCLUDES = re.compile(r"^\s*(?:--\s*)?source\s+([^\s;]+)", re.M)
# What a suite.pm says if mtr is to run the suite though nobody names it
IS_DEFAULT = re.compile(r"^\s*sub\s+is_default\s*\{(?!\s*0\b)", re.M)


def default_suites(source):
    """The suites that mtr runs if nobody names one, without those of the patch
    set. mtr skips the tests of plugins that are not built."""
    text = (source / "mysql-test/mariadb-test-run.pl").read_text(
        encoding="utf-8", errors="replace")
    listed = re.search(r"@DEFAULT_SUITES\s*=\s*qw\(([^)]*)\)", text)
    if not listed:
        raise ValueError(f"{source}/mysql-test/mariadb-test-run.pl lists no default suites")
    found = listed[1].split()
    for kind in ("plugin", "storage"):
        for path in sorted(source.glob(f"{kind}/*/mysql-test/**/suite.pm")):
            plugin, _, *words = path.relative_to(source / kind).parts[:-1]
            name = "/".join(words)
            if (not plugin.startswith("table_cache")
                    and IS_DEFAULT.search(path.read_text(encoding="utf-8", errors="replace"))
                    # Else it is an overlay of a suite that is listed
                    and not (source / "mysql-test/suite" / name).exists()
                    and not (source / "mysql-test" / name).exists()):
                found.append(name)
    return list(dict.fromkeys(found))


def debug_tests(source):
    """The tests of the default suites that mtr skips on a release build, as
    SUITE.TEST. They, or files that they include, source have_debug.inc or
    have_debug_sync.inc."""
    top = source / "mysql-test"
    seen = {}                   # {file: whether it needs a debug build}

    def needs_debug(file, folder):
        if file not in seen:
            seen[file] = False          # should it include itself
            words = INCLUDES.findall(file.read_text(encoding="utf-8", errors="replace"))
            seen[file] = any(
                pathlib.PurePosixPath(word).name in ("have_debug.inc", "have_debug_sync.inc")
                or any(needs_debug(path, folder) for path in
                       [(start / word).resolve() for start in (file.parent, folder, top)]
                       if path.is_file()) for word in words)
        return seen[file]

    found = []
    for name in default_suites(source):
        name = name.rstrip("-")
        for folder in (top / name, top / "suite" / name,
                       *sorted(source.glob(f"plugin/*/mysql-test/{name}")),
                       *sorted(source.glob(f"storage/*/mysql-test/{name}"))):
            files = {*folder.glob("*.test"), *folder.glob("t/*.test")}
            found += [f"{name}.{file.stem}" for file in sorted(files)
                      if needs_debug(file.resolve(), folder)]
    return list(dict.fromkeys(found))


RECORDS = "BUILD/lib/tested.tsv"
FIELDS = ("MariaDB", "command", "passed", "failed", "skipped", "revision")


def read_records(top):
    """The lines of RECORDS, as tuples of FIELDS."""
    file = pathlib.Path(top, RECORDS)
    lines = file.read_text().splitlines() if file.exists() else []
    return [tuple(line.split("\t")) for line in lines if line[:1] not in ("#", "")]


def record(top, version, command, counts, revision):
    """Put what a command has found in the place of its record of this release."""
    kept = [one for one in read_records(top) if one[:2] != (version, command)]
    kept.append((version, command, *map(str, counts), revision))
    kept.sort(key=lambda one: (list(map(int, re.findall(r"\d+", one[0]))), one[1]))
    pathlib.Path(top, RECORDS).write_text(
        "# SPDX-License-Identifier: GPL-2.0-only\n#\n"
        f"# What 'BUILD/test ... --record' found: {', '.join(FIELDS)}\n"
        + "".join("\t".join(one) + "\n" for one in kept))


def revision(top, unread=()):
    """The last commit that changed more than documents and files that are not read (git's
    patterns), with '-dirty' if the others differ from it; "unknown" outside of a clone."""
    which = ["--", ".", *(f":(exclude,top,glob){name}" for name in
                          (*DOCUMENTS, "BUILD/lib/tested*", *unread))]

    def said(*words):
        return subprocess.run(["git", "-C", str(top), *words, *which], check=False,
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout.strip()
    found = said("log", "-1", "--format=%h")
    return found + "-dirty" * bool(found and said("diff", "HEAD", "--name-only")) or "unknown"


def version_of(trees):
    """MariaDB's release that is built in a directory of trees, as 10.11.18."""
    file = pathlib.Path(trees) / "stock" / "version"
    text = file.read_text() if file.exists() else ""
    found = re.search(r"\d+\.\d+\.\d+", text)
    return found[0] if found else pathlib.Path(trees).name
