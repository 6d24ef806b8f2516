# SPDX-License-Identifier: GPL-2.0-only
"""Tests of cache_line_check.py."""

import pathlib
import re
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "BUILD/lib"))
import cache_line_check  # noqa: E402
import overlay  # noqa: E402

INCLUDE = re.compile(r'(?m)^#\s*include\s+["<](?:[^">]*/)?([^"/>]+)[">]')


class FilesTest(unittest.TestCase):
    def test_every_header_that_has_the_size_is_compiled(self):
        files = {name: (TOP / name).read_text(errors="replace")
                 for name in overlay.files_below(TOP)
                 if name.endswith((".c", ".cc", ".h", ".ic"))}
        by_name = {pathlib.PurePath(name).name: name for name in files}
        todo, compiled = list(cache_line_check.FILES), set()
        while todo:
            name = todo.pop()
            if name not in compiled:
                compiled.add(name)
                todo += [by_name[header] for header
                         in INCLUDE.findall(files[name]) if header in by_name]
        headers = {name for name, text in files.items()
                   if cache_line_check.SIZE in text and name.endswith(".h")}
        self.assertIn("sql/table_cache_core.h", headers)
        self.assertEqual(headers - compiled, set())


if __name__ == "__main__":
    unittest.main()
