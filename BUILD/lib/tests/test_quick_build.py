# SPDX-License-Identifier: GPL-2.0-only
"""Tests of configure.cmake and quick_build.cmake, with a small source."""

import os
import re
import shutil
import sys
import unittest

from support import TOP, WorkTest, put

from common import answer

# Another one than that of this machine
CMAKE = os.environ.get("CMAKE", "cmake")
# Its target sql has the name and the headers of MariaDB's.  mariadb-admin comes
# last, so that only what runs at the end knows it
LISTS = """
cmake_minimum_required(VERSION 2.8...3.12)
project(small LANGUAGES CXX)
include(CheckIncludeFileCXX)
check_include_file_cxx(cstdio HAVE_CSTDIO)
add_subdirectory(sql)
add_executable(mariadb-admin admin.cc)
"""
SQL = """
project(small_sql LANGUAGES CXX)
include_directories(${CMAKE_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
set_source_files_properties(flags.cc PROPERTIES COMPILE_FLAGS -DFLAGS)
add_custom_command(OUTPUT generated.cc COMMAND touch generated.cc)
add_library(sql STATIC a.cc b.cc c.cc d.cc ../sql/e.cc flags.cc own.cc
            ${CMAKE_CURRENT_BINARY_DIR}/generated.cc)
add_library(ha_small MODULE a.cc)
"""


@unittest.skipUnless(shutil.which(CMAKE) and shutil.which("ninja")
                     and shutil.which("c++"), "needs cmake, ninja and c++")
class QuickBuildTest(WorkTest):
    def setUp(self):
        super().setUp()
        source = self.work / "stock/source"
        for name, text in (
                ("CMakeLists.txt", LISTS), ("sql/CMakeLists.txt", SQL),
                ("admin.cc", "int main() {}\n"),
                ("include/mariadb.h", "#include <stddef.h>\n"),
                ("sql/sql_class.h", "#include <mariadb.h>\n"),
                ("sql/own.cc", "/* SPDX-License-Identifier: x */\n"),
                *((f"sql/{name}.cc", "#include <mariadb.h>\n")
                  for name in ("a", "b", "c", "d", "e", "flags"))):
            put(source / name, text)

    def configure(self, variant="stock", edit=lambda text: text):
        """The build tree that configure.cmake has made."""
        quick_build = self.work / "quick_build.cmake"
        quick_build.write_text(edit(
            (TOP / "cmake/quick_build.cmake").read_text()))
        shutil.copy(TOP / "BUILD/lib/precompile.py", self.work)
        status, said = answer(
            [CMAKE, "-D", f"VARIANT={self.work / variant}", "-D", "TYPE=release",
             "-D", f"OPTIONS=-DCMAKE_PROJECT_INCLUDE={quick_build};"
             f"-DPRECOMPILE_PYTHON={sys.executable}",
             "-P", TOP / "cmake/configure.cmake"])
        self.assertEqual(status, 0, said)
        return self.work / variant / "release"

    def check(self, build):
        ninja = (build / "build.ninja").read_text()
        headers = next(build.rglob("sql.dir/**/cmake_pch.hxx")).read_text()
        self.assertEqual(re.findall(r"#include <(.*)>", headers),
                         ["mariadb.h", "sql_class.h"])
        with_headers = {
            match[1] for match in re.finditer(
                r"(?m)^build \S*sql\.dir/(\S+)\.cc\.o:.*\n(?:  .*\n)*", ninja)
            if "cmake_pch.hxx" in match[0]}
        self.assertEqual(with_headers, set("abcde"))
        needed = re.search(r"(?m)^build server_and_client: phony (.*)$", ninja)
        self.assertEqual(set(needed[1].split()),
                         {"mariadb-admin", "sql/libha_small.so"})

    def test_precompiled_headers_and_the_target(self):
        self.check(self.configure())

    def test_with_cmake_that_cannot_defer(self):
        def edit(text):
            self.assertIn("CMAKE_VERSION VERSION_LESS 3.19", text)
            return text.replace("CMAKE_VERSION VERSION_LESS 3.19", "TRUE")

        self.check(self.configure(edit=edit))

    def test_another_tree_has_the_answers(self):
        shutil.copytree(self.work / "stock/source", self.work / "patched/source")
        first = self.configure()
        self.assertFalse((first / "known-answers.cmake").exists())
        second = self.configure("patched")
        self.assertIn('set(HAVE_CSTDIO "1" ',
                      (second / "known-answers.cmake").read_text())

    def test_configured_tree_is_left_alone(self):
        first = (self.configure() / "build.ninja").stat().st_mtime_ns
        again = (self.configure() / "build.ninja").stat().st_mtime_ns
        self.assertEqual(first, again)
