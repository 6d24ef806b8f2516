#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Say which source files may not use a precompiled header.

A compiler reads a precompiled header before the first line of a source file.
That gives what including its headers in their places gives, unless a macro
has another meaning there.  sql_lex.h, for example, shows more to a file that
defines MYSQL_LEX first, and sql_plugin.h sets a macro for a header that it
includes.

So this program goes through the source file and the headers that it includes,
in the compiler's order, and through the precompiled ones likewise.  It looks
for a header H that is in both, and for a macro whose name is in H.  There are
two cases:

  1. A file that includes H, directly or not, defines the macro before that.
  2. A header that is not precompiled, and that the source file includes before
     H, defines the macro: so pfs.cc chooses by pfs_file_provider.h which
     functions mysql_file.h calls.

If the macro differs, the program prints the source file, with the reason behind
a tab.

Conditions (#if) are not evaluated: every #include and #define counts.
Headers of the system are not read; names that begin with an underscore count
as used by all of them.

Exit status: 0 done, 1 failed, 2 wrong usage.
"""

import argparse
import pathlib
import re
import sys

COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.DOTALL)
DIRECTIVE = re.compile(
    r"^[ \t]*#[ \t]*(include|define|undef|pragma)\b[ \t]*(.*)$", re.MULTILINE)
INCLUDED = re.compile(r'(["<])([^">]+)[">]')
NAME = re.compile(r"[A-Za-z_]\w*")
# Others concern warnings, or other compilers
PRAGMA = re.compile(r"pack\b|GCC\s+(?!diagnostic\b|system_header\b)")


class File:
    """The lines that matter in a source file or header."""

    def __init__(self, path):
        self.path = path
        self.directives = []        # (what, name, File if one is included)
        self.names = frozenset()    # all that are in it, if it is a header


class Reader:
    """The files of a compilation, each read once."""

    def __init__(self, directories):
        self.directories = directories
        self.files = {}

    def find(self, quote, name, from_directory):
        """The File that #include finds; None for one of the system's."""
        places = list(self.directories)
        if quote == '"':
            places.insert(0, from_directory)
        for directory in places:
            path = directory / name
            if path.is_file():
                return self.file(path.resolve())
        return None

    def file(self, path):
        if path in self.files:
            return self.files[path]
        file = self.files[path] = File(path)
        text = COMMENT_OR_STRING.sub(lambda match: match[1] or " ",
                                     path.read_text(errors="replace"))
        if path.suffix not in (".cc", ".cpp"):
            file.names = frozenset(NAME.findall(text))
        for what, rest in DIRECTIVE.findall(text):
            if what == "include":
                if match := INCLUDED.match(rest):
                    file.directives.append(
                        (what, match[2], self.find(match[1], match[2], path.parent)))
            elif what == "pragma":
                if PRAGMA.match(rest):
                    file.directives.append((what, rest, None))
            elif match := NAME.match(rest):
                file.directives.append((what, match[0], None))
        # Lines after a source file's last #include are of no interest
        while (not file.names and file.directives and file.directives[-1][0] != "include"):
            file.directives.pop()
        return file


class Walk:
    """The headers in the order in which the compiler first reads them."""

    def __init__(self, file, precompiled=None):
        """precompiled: the Walk through the precompiled headers, if the file is
        a source file."""
        self.precompiled = precompiled
        self.pragma = None          # of the source file, so far
        self.others = set()         # macros of headers that are not precompiled
        self.reserved = set()       # names that the source file sets, so far
        self.found = {}             # header: what it may depend on
        self.through(file, precompiled is not None, set())

    def through(self, file, is_source, macros):
        """Follow a file; macros are set by those that include it."""
        macros = set(macros)
        other = not is_source and self.precompiled and file not in self.precompiled.found
        for what, name, included in file.directives:
            if what == "pragma":
                if is_source:
                    self.pragma = self.pragma or f"#pragma {name}"
            elif what == "define" or what == "undef" and is_source:
                macros.add(name)
                if other:
                    self.others.add(name)
                if is_source and name.startswith("_"):
                    self.reserved.add(name)
            elif what == "undef":
                macros.discard(name)
            elif (included or name) not in self.found:
                depends = ((macros | self.others) & included.names if included
                           else set(self.reserved))
                if self.pragma:
                    depends.add(self.pragma)
                self.found[included or name] = depends
                if included:
                    self.through(included, False, macros)


def objection(precompiled, walk):
    """Why a source file may not use the precompiled header, or None."""
    for header, depends in walk.found.items():
        differ = depends ^ precompiled.found.get(header, depends)
        if differ:
            name = header if isinstance(header, str) else header.path.name
            return f"{name} depends on {', '.join(sorted(differ))}"
    return None


def main():
    parser = argparse.ArgumentParser(
        description="Say which source files may not use a precompiled header.")
    parser.add_argument("--include", action="append", default=[],
                        type=pathlib.Path, metavar="DIR",
                        help="directory with headers, in the compiler's order")
    parser.add_argument("--header", action="append", required=True,
                        help="a header that is precompiled")
    parser.add_argument("sources", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    reader = Reader(arguments.include)
    headers = File(None)
    for name in arguments.header:
        header = reader.find("<", name, None)
        if header is None:
            raise FileNotFoundError(f"there is no header {name}")
        headers.directives.append(("include", name, header))
    precompiled = Walk(headers)
    for path in arguments.sources:
        reason = objection(precompiled, Walk(reader.file(path.resolve()), precompiled))
        if reason:
            print(f"{path}\t{reason}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(f"precompile: error: {error}", file=sys.stderr)
        sys.exit(1)
