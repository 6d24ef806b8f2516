# SPDX-License-Identifier: GPL-2.0-only
"""Tests of BUILD/check, copied away from the repository, with a client that
gives recorded answers."""

import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import unittest

from support import TOP, WorkTest, put

from common import answer

RESULTS = TOP / "sql-bench/results/10.11"

# Reads statements, and answers from files in its directory
CLIENT = r"""#!/bin/bash
here=${0%/*}
printf '%s\n' "$@" > "$here/arguments"
if [ -e "$here/error" ]; then cat "$here/error" >&2; exit 1; fi
times=0
while IFS= read -r statement; do
  printf '%s\n' "$statement" >> "$here/statements"
  case $statement in
    'SHOW GLOBAL VARIABLES;') cat "$here/variables" ;;
    'SHOW GLOBAL STATUS;')    times=$((times + 1)); cat "$here/status$times" ;;
    'SELECT "end of answer";') echo 'end of answer' ;;
    'SELECT SLEEP'*)          echo 0 ;;
    'SELECT COUNT'*)          echo 1500 ;;
    *)                        echo "ERROR 1064: $statement" >&2 ;;
  esac
done
"""
VARIABLES = {
    "version": "10.11.18-MariaDB-0+deb12u1-log", "version_comment": "Debian 12",
    "version_source_revision": "0123abcd", "version_compile_machine": "x86_64",
    "plugin_dir": "/usr/lib/mysql/plugin/", "table_open_cache": "2000",
    "table_open_cache_instances": "8", "table_definition_cache": "400",
    "innodb_open_files": "2000", "innodb_buffer_pool_size": "134217728",
    "query_cache_type": "OFF", "query_cache_size": "1048576"}
STATUS = {
    "Uptime": "90000", "Questions": "100", "Connections": "10",
    "Open_tables": "2000", "Opened_tables": "5000",
    "Open_table_definitions": "400", "Opened_table_definitions": "400",
    "Open_files": "4000", "Innodb_num_open_files": "50",
    "Innodb_pages_read": "10", "Threads_connected": "5",
    "Qcache_queries_in_cache": "0", "Ssl_version": ""}


class CheckTest(WorkTest):
    def setUp(self):
        super().setUp()
        self.programs = self.work / "bin"
        # Many files, so in memory where that can be
        memory = tempfile.TemporaryDirectory(
            dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(memory.cleanup)
        self.data = pathlib.Path(memory.name, "data")
        put(self.data / "mysql/user.MAI")
        shutil.copy(TOP / "BUILD/check", self.work / "check")
        self.program("mariadb", CLIENT)
        # A process that BUILD/check takes for the server
        shutil.copy(shutil.which("sleep"), self.work / "mariadbd")
        server = subprocess.Popen([self.work / "mariadbd", "600"])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        (self.data / "pid").write_text(f"{server.pid}\n")
        # The name of a process is the old one until exec()
        while pathlib.Path(f"/proc/{server.pid}/comm").read_text() != "mariadbd\n":
            pass

    def program(self, name, text):
        put(self.programs / name, text)
        (self.programs / name).chmod(0o755)

    def tables(self, *suffixes, count=600, database="shop"):
        (self.data / database).mkdir(exist_ok=True)
        for number in range(count):
            for suffix in suffixes:
                (self.data / database / f"t{number}{suffix}").touch()

    def run_check(self, *words, variables=(), **after):
        """Its status, and its output in one line; 'after' is the status after a
        minute."""
        for name, found in (
                ("variables", {**VARIABLES, "datadir": f"{self.data}/",
                               "pid_file": str(self.data / "pid"),
                               **dict(variables)}),
                ("status1", {**STATUS, **{name: value for name, value
                                          in after.items() if name not in STATUS}}),
                ("status2", {**STATUS, **after})):
            (self.programs / name).write_text("".join(
                f"{key}\t{value}\n" for key, value in found.items()))
        status, said = answer([self.work / "check", *words],
                              env={"PATH": f"{self.programs}:/usr/bin:/bin"})
        self.assertNotRegex(said, r"line \d+|1064")
        return status, re.sub(r"\s+", " ", said)

    def verdict(self, **how):
        status, said = self.run_check(**how)
        self.assertEqual(status, 0, said)
        return said


class VerdictTest(CheckTest):
    def says(self, has, has_not=(), **how):
        said = self.verdict(**how)
        for text in has:
            self.assertIn(text, said)
        for text in has_not:
            self.assertNotIn(text, said)

    def test_myisam_tables(self):
        self.tables(".frm", ".MYI", ".MYD")
        self.says(                      # opened again and again
            ["600 MyISAM, 0 Aria, 0 InnoDB, 0 others",
             # 120,000 opens of 28 + 109 / 2 us
             "Yes. MyISAM and Aria: about 120,000 tables opened in 60 s "
             "cost about 9.8 s of CPU time", "1.4 times the pages",
             "BUILD/package", "this host's version, 10.11.18-0+deb12u1.",
             "table_open_cache = 1000 table_definition_cache = 1060 "
             "open_files_limit = 5000", "LimitNOFILE=5000"],
            Opened_tables="125000", Open_tables="500")
        self.says(                      # that stay open
            ["No. MyISAM and Aria: about 10 tables", "Nothing: there is little to gain"],
            ["To build"], Opened_tables="5010")
        self.says(["For about 100 % of the time one connection"], Opened_tables="1900000")
        self.says(["started 5 minutes ago"], Uptime="300")
        # 10,000 open ones take 17 KiB less each
        self.says(["Memory: the 10,000 tables that are open now take about 166 MiB less"],
                  Open_tables="10000")
        self.says(["No. MyISAM and Aria"], ["Memory: the"], Open_tables="5000")
        self.assertRegex(self.verdict(Opened_tables="900000"),
                         r"With all 1,000 tables open they take up to about \d+ MiB of the")

    def test_innodb_tables(self):
        self.tables(".frm", ".ibd")
        self.says(                      # whose definitions do not fit
            ["InnoDB: perhaps. 9,000 definitions",
             "First, on the unpatched server table_definition_cache=1100"], ["Yes"],
            Opened_tables="65000", Opened_table_definitions="9400")
        self.says(                      # whose files do not fit
            ["more tables than innodb_open_files", "innodb_open_files=660"],
            variables={"innodb_open_files": "500"}, Innodb_pages_read="100000")
        self.says(                      # that fit
            ["InnoDB: no gain now. After a restart, the first uses of all 600 tables "
             "take about 1 s of CPU time less", "Nothing: there is little to gain"],
            ["BUILD/package"], variables={"table_definition_cache": "3000"})
        self.tables(".frm", ".ibd", count=5000)
        self.says(                      # that many statements use after a restart
            ["the first uses of all 5,000 tables", "BUILD/package"], ["little to gain"],
            variables={"table_definition_cache": "6000", "innodb_open_files": "6000"})

    def test_few_tables(self):
        self.tables(".frm", ".MYI", count=40)
        self.says(["No. With 40 tables there is nothing to gain."])
        self.says(["Query cache: yes, if you want to keep it. It has 650,000 results."],
                  variables={"query_cache_type": "ON", "query_cache_size": str(1 << 30)},
                  Qcache_queries_in_cache="650000")

    def test_patched_server(self):
        self.says(["This server has the patch set."], ["unpatched"],
                  variables={"version_source_revision": "0123+table-cache.4567"},
                  Table_open_cache_evictions="7", Table_open_cache_hits="970",
                  Table_open_cache_misses="30")

    def test_release(self):
        self.tables(".frm", ".MYI")
        tried = ["BUILD/series --check", "BUILD/package --tarball"]
        for version, has, has_not in (
                ("10.11.11-MariaDB-0+deb12u1", ["Update to MariaDB 10.11.18 first"],
                 ["BUILD/package"]),
                ("10.11.13-MariaDB-0ubuntu0.24.04.1", ["Update to MariaDB 10.11.18 first"],
                 ["BUILD/package"]),
                ("11.8.3-MariaDB-ubu2404", ["Update to MariaDB 11.8.6 first"],
                 ["BUILD/package"]),
                ("10.11.14-MariaDB-0+deb12u2",
                 ["was tested on 10.11.18. What fits", *tried], []),
                ("11.8.9-MariaDB-0+deb13u1", ["was tested on 11.8.6. What fits", *tried],
                 []),
                ("10.6.22-MariaDB-ubu2204", ["and this is 10.6"], []),
                ("11.4.8-MariaDB", ["and this is 11.4"], []),
                ("10.11.9-5-MariaDB-enterprise", ["MariaDB Enterprise"], []),
                ("8.0.36-0ubuntu0", ["No. The patch set is for MariaDB"], [])):
            with self.subTest(version):
                self.says(has, has_not, variables={"version": version}, Opened_tables="900000")

    def test_releases_are_those_of_the_build(self):
        text = (self.work / "check").read_text()
        for series in ("10.11", "11.8"):
            base = (TOP / f"cmake/base-{series}.cmake").read_text()
            points = [int(point) for point in re.findall(
                rf"BASE_(?:PINNED|ALSO) 1:{re.escape(series)}\.(\d+)", base)]
            name = series.replace(".", "_")
            for setting, point in (("OLDEST", min(points)),
                                   ("TESTED", max(points))):
                self.assertRegex(text, rf"\b{setting}_{name}={point}\b")

    def test_more_tables_than_memory(self):
        self.tables(".frm", ".MYI", count=3)
        for number in range(3):
            for part in range(400):
                (self.data / f"shop/p{number}#P#p{part}.MYI").touch()
        said = self.verdict()
        self.assertIn("6 MyISAM", said)         # not 1203


class OriginTest(CheckTest):
    def test_where_the_server_is_from(self):
        self.tables(".frm", ".MYI")
        self.program("dpkg-query", "#!/bin/sh\nexit 1\n")
        rpm = "/usr/lib64/mysql/plugin/"
        for version, plugins, package, what in (
                ("10.11.18-MariaDB-0+deb12u1", "", "", "Debian 12's"),
                ("11.8.6-MariaDB-0+deb13u1 from Debian", "", "", "Debian 13's"),
                ("10.11.16-MariaDB-0ubuntu0.24.04.1", "", "", "Ubuntu's"),
                ("10.11.14-MariaDB-deb12-log", "", "", "MariaDB.org's .deb package"),
                ("11.8.6-MariaDB-ubu2404", "", "", "MariaDB.org's .deb package"),
                ("10.11.15-MariaDB-1:10.11.15+maria~deb11", "", "",
                 "MariaDB.org's .deb package"),
                ("10.11.14-MariaDB", rpm, "MariaDB-server 10.11.14-1.el9", "MariaDB.org's RPM"),
                ("10.11.14-MariaDB", rpm, "mariadb-server 10.11.10-1.el9_5",
                 "the distribution's RPM"),
                ("10.11.14-MariaDB", rpm, "", "MariaDB.org's RPM, by its paths"),
                ("10.11.14-MariaDB", "/usr/lib64/mariadb/plugin/", "",
                 "the distribution's RPM, by its paths"),
                ("10.11.14-MariaDB", "/usr/local/mysql/lib/plugin/", "",
                 "a binary archive or an own build")):
            with self.subTest(version=version, plugins=plugins, package=package):
                self.program("rpm", f"#!/bin/sh\necho '{package}'\n")
                said = self.verdict(variables={"version": version, "plugin_dir": plugins},
                                    Opened_tables="125000")
                number = version.partition("-")[0]
                self.assertIn(f"Server {number}, {what}" + f" ({package})" * bool(package)
                              + ", x86_64", said)
                debian = "Debian" in what
                self.assertEqual("BUILD/package, on another machine" in said, debian)
                self.assertIn("BUILD/package --tarball", said)
                for text in (f"BUILD/series --source mariadb-{number}.tar.gz",
                             "nothing was tried on such a system"):
                    self.assertEqual(text in said, not debian)

    def test_the_tarball_needs_a_new_glibc(self):
        real = shutil.which("getconf")
        for version, runs in (("2.28", False), ("2.31", True), ("2.34", True)):
            self.program("getconf", "#!/bin/sh\n[ $1 = GNU_LIBC_VERSION ] ||"
                         f" exec {real} \"$@\"\necho glibc {version}\n")
            self.tables(".frm", ".MYI")
            said = self.verdict(variables={"version": "10.11.14-MariaDB"},
                                Opened_tables="125000")
            self.assertEqual("BUILD/package --tarball" in said, runs)
            self.assertEqual("cannot run here" in said, not runs)
            self.assertIn(version, said)
            self.assertIn("BUILD/series --source", said)


class UseTest(CheckTest):
    def test_it_only_reads(self):
        self.tables(".frm", ".ibd")
        before = sorted(self.data.rglob("*"))
        self.verdict()
        for statement in (self.programs / "statements").read_text().splitlines():
            self.assertRegex(statement, r"^(SHOW GLOBAL (VARIABLES|STATUS)|"
                             r'SELECT (SLEEP\(60\)|"end of answer"));$')
        self.assertEqual(sorted(self.data.rglob("*")), before)

    def test_from_outside_it_says_less(self):
        self.tables(".frm", ".MYI")
        (self.data / "pid").write_text("0\n")
        said = self.verdict(Opened_tables="65000")
        self.assertIn("from outside", said)
        self.assertIn("1,500, of unknown engines", said)
        self.assertIn("Unknown for MyISAM and Aria", said)
        self.assertNotIn("Yes", said)

    def test_options(self):
        status, _ = self.run_check("--socket=/a b", "--seconds", "2", "-u", "me")
        self.assertEqual(status, 0)
        self.assertEqual((self.programs / "arguments").read_text().split("\n")[:3],
                         ["--socket=/a b", "-u", "me"])
        self.assertIn("SELECT SLEEP(2);", (self.programs / "statements").read_text())
        status, said = self.run_check("--help")
        self.assertEqual(status, 0)
        self.assertTrue(said.startswith("Usage: check"))

    def test_no_connection_is_an_error(self):
        (self.programs / "error").write_text("ERROR 2002: no socket\n")
        status, said = self.run_check()
        self.assertEqual(status, 1)
        self.assertIn("ERROR 2002: no socket", said)
        self.assertIn("--socket=FILE", said)

    def test_wrong_usage(self):
        for words in (["--seconds"], ["--seconds=0"], ["--seconds", "1m"],
                      ["host"], ["-u"]):
            status, said = self.run_check(*words)
            self.assertEqual(status, 2, said)


class FigureTest(unittest.TestCase):
    """The figures in the script are those of the benchmarks."""

    def setUp(self):
        self.text = (TOP / "BUILD/check").read_text()

    def figure(self, name):
        return re.search(rf"\b{name}='?([^'\s]+(?: to [^'\s]+)?)", self.text)[1]

    def cells(self, name):
        found = json.loads((RESULTS / f"{name}.json").read_text())["cells"]
        return {cell["label"]: cell for cell in found}

    def test_cost_of_an_open(self):
        cells = self.cells("open-tables")

        def saved(engine, cache):
            details = cells[f"{engine}, 16 threads, table_open_cache={cache}"]["details"]
            cost = {name: statistics.median(each["cpu_us"] for each in details[name])
                    for name in ("stock", "patched")}
            opens = statistics.median(each["opens"] for each in details["stock"])
            return (cost["stock"] - cost["patched"]) / opens

        for engine in ("myisam", "aria"):
            base = int(self.figure(f"SAVED_{engine.upper()}"))
            each = int(self.figure(f"SAVED_{engine.upper()}_1000"))
            self.assertAlmostEqual(base / saved(engine, 64), 1, delta=0.1)
            self.assertAlmostEqual((base + 8.192 * each) / saved(engine, 8192), 1, delta=0.1)

    def test_memory_of_an_open_table(self):
        text = (TOP / "docs/SIZING.md").read_text()
        rows = {"MYISAM": r"like WordPress's twelve, MyISAM", "ARIA": "the same, Aria",
                "INNODB": "the same, InnoDB"}
        for engine, row in rows.items():
            patched, stock = re.search(rf"\| {row} \| (.*?) \| (.*?) \|", text).groups()
            # InnoDB: 42.4, of which 23.4 are pages
            less = [float(cell.split(",")[0]) - float((re.findall(
                r"which ([\d.]+)", cell) or [0])[0]) for cell in (stock, patched)]
            self.assertAlmostEqual(int(self.figure(f"LESS_{engine}")), less[0] - less[1],
                                   delta=1, msg=engine)

    def test_cost_of_a_first_use(self):
        values = self.cells("cold-open")[
            "16 connections: us of the server's CPU time a table"]["values"]
        self.assertAlmostEqual(
            int(self.figure("SAVED_FIRST_USE")),
            statistics.median(values["stock"]) - statistics.median(values["patched"]), delta=1)

    def test_pages_of_the_farm(self):
        cells = self.cells("farm")
        for engine in ("myisam", "aria"):
            name = f"FARM_{engine.upper()}"
            values = cells[f"{engine}, table_open_cache=2000: pages/s"]["values"]
            found = statistics.median(
                patched / stock for stock, patched in zip(values["stock"], values["patched"]))
            self.assertAlmostEqual(float(self.figure(name)), found, delta=0.06, msg=name)
