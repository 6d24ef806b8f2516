# SPDX-License-Identifier: GPL-2.0-only
"""Tests of precompile.py: which files may not use a precompiled header, which
may, and that the compiler agrees.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
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


class PrecompileTest(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.folder = pathlib.Path(work.name)
        for name, text in HEADERS.items():
            (self.folder / name).write_text(text)

    def run_on(self, text, *, header="class.h", status=0):
        """The reason why a source file is left out; '' if it is not."""
        source = self.folder / "source.cc"
        source.write_text(text)
        done = subprocess.run(
            [sys.executable, str(PROGRAM), "--include", str(self.folder),
             "--header", header, str(source)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        if not done.stdout:
            return ""
        path, _, reason = done.stdout.rstrip("\n").partition("\t")
        self.assertEqual(path, str(source))
        return reason

    def test_plain_file_is_not_left_out(self):
        self.assertEqual(self.run_on(
            '#include "class.h"\n#define WITH_MORE\nint i= BASIS_SIZE;\n'), "")

    def test_file_that_includes_other_headers_first_is_not_left_out(self):
        self.assertEqual(self.run_on(
            '#include "elsewhere.h"\n#include <stdio.h>\n'
            '#include "class.h"\n'), "")

    def test_macro_before_the_header(self):
        self.assertEqual(self.run_on(
            '#define WITH_MORE 1\n#include "class.h"\n'),
            "basis.h depends on WITH_MORE")

    def test_macro_of_a_header_that_is_not_precompiled(self):
        self.assertEqual(self.run_on(
            '#include "provider.h"\n#include "class.h"\n'),
            "basis.h depends on WITH_MORE")

    def test_header_that_is_not_precompiled_behind_the_others(self):
        self.assertEqual(self.run_on(
            '#include "class.h"\n#include "provider.h"\n'), "")

    def test_macro_between_headers(self):
        self.assertEqual(self.run_on(
            '#include "elsewhere.h"\n#define WITH_MORE 1\n'
            '#include "class.h"\n'), "basis.h depends on WITH_MORE")

    def test_macro_that_is_undefined_before_the_header(self):
        self.assertEqual(self.run_on(
            '#undef WITH_MORE\n#include "class.h"\n'),
            "basis.h depends on WITH_MORE")

    def test_macro_that_a_header_sets_for_another_one(self):
        self.assertEqual(self.run_on(
            '#include "plugin.h"\n#include "class.h"\n'),
            "basis.h depends on WITH_MORE")

    def test_macro_that_the_precompiled_header_sets_for_another_one(self):
        self.assertEqual(self.run_on('#include "class.h"\n',
                                     header="plugin.h"),
                         "basis.h depends on WITH_MORE")

    def test_order_of_both_as_in_the_precompiled_header(self):
        self.assertEqual(self.run_on(
            '#include "class.h"\n#include "plugin.h"\n'), "")

    def test_macro_that_only_a_comment_names(self):
        self.assertEqual(self.run_on(
            '#define OTHER_MACRO 1\n#include "class.h"\n'), "")

    def test_macro_in_a_comment(self):
        self.assertEqual(self.run_on(
            '/*\n#define WITH_MORE 1\n*/\n#include "class.h"\n'), "")

    def test_macro_of_the_system(self):
        self.assertEqual(self.run_on(
            '#define _GNU_SOURCE\n#include "class.h"\n'),
            "stddef.h depends on _GNU_SOURCE")

    def test_macro_of_the_system_behind_the_header(self):
        self.assertEqual(self.run_on(
            '#include "class.h"\n#define _GNU_SOURCE\n#include <stdio.h>\n'),
            "")

    def test_pragma(self):
        self.assertEqual(self.run_on(
            '#pragma pack(1)\n#include "class.h"\n'),
            "class.h depends on #pragma pack(1)")

    def test_pragma_about_warnings(self):
        self.assertEqual(self.run_on(
            '#pragma GCC diagnostic ignored "-Wpragmas"\n'
            '#include "class.h"\n'), "")

    def test_header_that_does_not_exist(self):
        self.run_on("", header="none.h", status=1)

    @unittest.skipUnless(shutil.which("g++"), "there is no g++")
    def test_compiler_agrees(self):
        """What is left out is another program with the header precompiled."""
        def size(*arguments):
            output = self.folder / "program"
            subprocess.run(["g++", "-I", str(self.folder), *arguments,
                            str(self.folder / "source.cc"), "-o",
                            str(output)], check=True)
            return subprocess.run([str(output)], check=False).returncode

        body = "int main() { return 10 * sizeof(a_class) + BASIS_SIZE; }\n"
        subprocess.run(["g++", "-I", str(self.folder), "-x", "c++-header",
                        str(self.folder / "class.h"), "-o",
                        str(self.folder / "class.h.gch")], check=True)
        for before in ("", '#include "elsewhere.h"\n', "#define WITH_MORE\n",
                       '#include "plugin.h"\n', "#define OTHER_MACRO\n"):
            with self.subTest(before=before):
                left_out = self.run_on(before + '#include "class.h"\n' + body)
                precompiled = size("-include", str(self.folder / "class.h"))
                (self.folder / "class.h.gch").rename(
                    self.folder / "class.h.away")
                plain = size()
                (self.folder / "class.h.away").rename(
                    self.folder / "class.h.gch")
                self.assertEqual(bool(left_out), plain != precompiled)


if __name__ == "__main__":
    unittest.main()
