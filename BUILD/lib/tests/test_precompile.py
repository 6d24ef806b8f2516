# SPDX-License-Identifier: GPL-2.0-only
"""Tests of precompile.py: which files may not use a precompiled header, which
may, and that the compiler agrees.
"""

import shutil
import subprocess
import sys
import unittest

from support import TOP, WorkTest, put


PROGRAM = TOP / "BUILD/lib" / "precompile.py"

HEADERS = {
    "basis.h": """\
#ifndef BASIS_INCLUDED
#define BASIS_INCLUDED
#ifdef WITH_MORE
enum basis_size { BASIS_SIZE= 2 };
#else
enum basis_size { BASIS_SIZE= 1 };
#endif
#endif
""",
    "class.h": """\
#ifndef CLASS_INCLUDED
#define CLASS_INCLUDED
/* What OTHER_MACRO does is no matter here */
#include <stddef.h>
#include "basis.h"
#define CLASS_MACRO 1
struct a_class { char c; long l; };
#endif
""",
    # Sets a macro for what it includes, as sql_plugin.h does
    "plugin.h": """\
#define WITH_MORE
#include "basis.h"
#undef WITH_MORE
""",
    "elsewhere.h": "#define ELSEWHERE 1\n",
    # Chooses what a header means that is included later, as
    # pfs_file_provider.h does for mysql_file.h
    "provider.h": "#define WITH_MORE 1\n",
}


class PrecompileTest(WorkTest):
    def setUp(self):
        super().setUp()
        for name, text in HEADERS.items():
            put(self.work / name, text)

    def run_on(self, text, header="class.h"):
        """(exit status, the reason why a source file is left out, if it is)"""
        source = self.work / "source.cc"
        put(source, text)
        done = subprocess.run(
            [sys.executable, TOP / "BUILD/lib/precompile.py", "--include", self.work,
             "--header", header, source], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.rstrip("\n").removeprefix(f"{source}\t")

    def test_files_that_mean_the_same(self):
        for text in (
                '#include "class.h"\n#define WITH_MORE\nint i= BASIS_SIZE;\n',
                '#include "elsewhere.h"\n#include <stdio.h>\n#include "class.h"\n',
                # What is not precompiled comes behind
                '#include "class.h"\n#include "provider.h"\n',
                '#include "class.h"\n#include "plugin.h"\n',
                '#include "class.h"\n#define _GNU_SOURCE\n#include <stdio.h>\n',
                # Only a comment names the macro, or defines it
                '#define OTHER_MACRO 1\n#include "class.h"\n',
                '/*\n#define WITH_MORE 1\n*/\n#include "class.h"\n',
                '#pragma GCC diagnostic ignored "-Wpragmas"\n#include "class.h"\n'):
            with self.subTest(text):
                self.assertEqual(self.run_on(text), (0, ""))

    def test_files_that_mean_something_else(self):
        for text, reason in (
                ('#define WITH_MORE 1\n', "basis.h depends on WITH_MORE"),
                ('#undef WITH_MORE\n', "basis.h depends on WITH_MORE"),
                # Of headers that are not precompiled
                ('#include "provider.h"\n', "basis.h depends on WITH_MORE"),
                ('#include "plugin.h"\n', "basis.h depends on WITH_MORE"),
                ('#include "elsewhere.h"\n#define WITH_MORE 1\n',
                 "basis.h depends on WITH_MORE"),
                ('#define _GNU_SOURCE\n', "stddef.h depends on _GNU_SOURCE"),
                ('#pragma pack(1)\n', "class.h depends on #pragma pack(1)")):
            with self.subTest(text):
                self.assertEqual(self.run_on(text + '#include "class.h"\n'), (0, reason))

    def test_macro_that_the_precompiled_header_sets_for_another_one(self):
        self.assertEqual(self.run_on('#include "class.h"\n', "plugin.h"),
                         (0, "basis.h depends on WITH_MORE"))

    def test_header_that_does_not_exist(self):
        self.assertEqual(self.run_on("", "none.h"), (1, ""))

    @unittest.skipUnless(shutil.which("g++"), "there is no g++")
    def test_compiler_agrees(self):
        """What is left out is another program with the header precompiled."""
        header = self.work / "class.h"

        def size(*arguments):
            output = self.work / "program"
            subprocess.run(["g++", "-I", self.work, *arguments, self.work / "source.cc",
                            "-o", output], check=True)
            return subprocess.run([output], check=False).returncode

        subprocess.run(["g++", "-I", self.work, "-x", "c++-header", header, "-o",
                        self.work / "class.h.gch"], check=True)
        for before in ("", '#include "elsewhere.h"\n', "#define WITH_MORE\n",
                       '#include "plugin.h"\n', "#define OTHER_MACRO\n"):
            with self.subTest(before=before):
                _, left_out = self.run_on(
                    before + '#include "class.h"\n'
                    "int main() { return 10 * sizeof(a_class) + BASIS_SIZE; }\n")
                precompiled = size("-include", header)
                (self.work / "class.h.gch").rename(self.work / "class.h.away")
                plain = size()
                (self.work / "class.h.away").rename(self.work / "class.h.gch")
                self.assertEqual(bool(left_out), plain != precompiled)
