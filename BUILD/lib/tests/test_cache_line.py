# SPDX-License-Identifier: GPL-2.0-only
"""Tests of what abi_check.py compiles with each size of a cache line."""

import pathlib
import re
import unittest

from support import TOP

import abi_check
import overlay

INCLUDE = re.compile(r'(?m)^#\s*include\s+["<](?:[^">]*/)?([^"/>]+)[">]')


class FilesTest(unittest.TestCase):
    def test_every_header_that_has_the_size_is_compiled(self):
        files = {name: (TOP / name).read_text(errors="replace")
                 for name in overlay.files_below(TOP)
                 if name.endswith((".c", ".cc", ".h", ".ic"))}
        by_name = {pathlib.PurePath(name).name: name for name in files}
        todo, compiled = list(abi_check.FILES), set()
        while todo:
            name = todo.pop()
            if name not in compiled:
                compiled.add(name)
                todo += [by_name[header] for header
                         in INCLUDE.findall(files[name]) if header in by_name]
        headers = {name for name, text in files.items()
                   if abi_check.SIZE in text and name.endswith(".h")}
        self.assertIn("sql/table_cache_core.h", headers)
        self.assertEqual(headers - compiled, set())
