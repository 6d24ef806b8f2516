#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Back up, restore, upgrade and go back with many tables.

--tables of them (two fifths MyISAM, 35 % InnoDB, a quarter Aria, three rows
each) in databases of 200.  CHECKSUM TABLE ... EXTENDED of all of them is taken
in the beginning, and has to be the same after each step:

  1. The patched server's data directory is started with the stock server, and
     with the patched one again.
  2. Each server is backed up twice, in turn, by its mariadb-backup, while
     clients write to a MyISAM and an InnoDB table and create tables.  The
     longest wait of each client is what the backup costs the users.
  3. The patched server's backup is prepared, copied back, and started with the
     patched and with the stock server; the stock server's with the patched one.
  4. mariadb-dump of both servers, which must not differ; the patched server's
     is restored into a stock server, whose data directory is then started with
     the patched one.

With --whole-trees, which has the build of the whole patch set, instead: a data
directory of the patched server, which has some parts of it, is started with the
whole one, with stock, and with both again.  Each has to find what the one before
it left, writes to tables of every engine, alters one, drops one and makes some.

With --from-trees, which has the builds of an older series, instead: a data
directory of its patched server is started with this series' patched server, and
mariadb-upgrade is run, twice.

Prints a line that begins with PASS or FAIL for each check, and the times.
Exit status: 0 all passed, 1 something failed, 2 wrong usage.
"""

import pathlib
import re
import shutil
import subprocess
import threading
import time

import outcome
import topology
from common import answer, run
from topology import Topology, say, timed

DATABASE_TABLES = 200
OPEN_FILES = 20000
OPEN_TABLES = 8000
# To fill a server that is shut down cleanly afterwards
UNSAFE = ("--debug-no-sync", "--skip-innodb-doublewrite", "--innodb-flush-log-at-trx-commit=0")
PROBES = {"MyISAM": "INSERT INTO probe.myisam VALUES (SYSDATE(6))",
          "InnoDB": "INSERT INTO probe.innodb VALUES (SYSDATE(6))",
          "CREATE": "CREATE OR REPLACE TABLE probe.made (i INT) ENGINE=MyISAM"}


def engine_of(number):
    """Of 20 tables 8 are MyISAM, 7 InnoDB and 5 Aria."""
    return ("MyISAM", "InnoDB", "Aria")[(number % 20 >= 8) + (number % 20 >= 15)]


def create(node, count):
    """Tables with keys, a text and three rows that differ from table to table."""
    text = ["SET sql_log_bin = 0, unique_checks = 1;"]
    for number in range(count):
        if number % DATABASE_TABLES == 0:
            text.append(f"CREATE DATABASE site{number // DATABASE_TABLES};"
                        f"USE site{number // DATABASE_TABLES};")
        text.append(
            f"CREATE TABLE t{number} (id INT PRIMARY KEY AUTO_INCREMENT, "
            "name VARCHAR(60), body TEXT, changed DATETIME, KEY (name)) "
            f"ENGINE={engine_of(number)};INSERT INTO t{number} (name, body, changed) VALUES "
            + ",".join(f"('n{number}_{row}', REPEAT('{row}é', {number % 90}), "
                       f"'2026-01-0{row} 01:02:03')" for row in (1, 2, 3)) + ";")
    node.sql("\n".join(text))


def changes(turn, count):
    """Writes to 20 tables, and DDL, in the last database; others each turn."""
    last = (count - 1) // DATABASE_TABLES
    first = last * DATABASE_TABLES + 20 * turn
    text = [f"SET sql_log_bin = 0; USE site{last};"]
    for number in range(first, min(first + 20, count)):
        text.append(
            f"UPDATE t{number} SET name = 'turn {turn}' WHERE id = 1;"
            f"DELETE FROM t{number} WHERE id = 2;"
            f"INSERT INTO t{number} (name) SELECT name FROM t{number};"
            f"CREATE TABLE made{number} LIKE t{number};"
            f"INSERT INTO made{number} SELECT * FROM t{number};"
            f"ALTER TABLE made{number} ADD KEY (changed), ADD more INT DEFAULT 7;"
            f"TRUNCATE t{number};"
            f"INSERT INTO t{number} (name, body) SELECT name, body FROM made{number};"
            f"RENAME TABLE made{number} TO kept{number};")
        if number % 3 == 0:
            text.append(f"DROP TABLE kept{number};")
        if number % 4 == 0:
            text.append(f"CREATE TRIGGER tr{number} BEFORE UPDATE ON t{number} "
                        "FOR EACH ROW SET NEW.body = 'by a trigger';"
                        f"UPDATE t{number} SET name = 'fires' WHERE id = 3;")
    return "\n".join(text)


def checksums(node):
    """{table: CHECKSUM TABLE ... EXTENDED}, by one client."""
    names = node.sql("SELECT table_schema, table_name FROM "
                     "information_schema.tables WHERE table_schema LIKE 'site%'")
    groups = {}
    for schema, name in names:
        groups.setdefault(schema, []).append(f"{schema}.{name}")
    rows = node.sql("".join(f"CHECKSUM TABLE {', '.join(tables)} EXTENDED;\n"
                            for tables in groups.values()))
    return dict((row[0], row[1]) for row in rows)


class Probe(threading.Thread):
    """A client that runs one statement over and over, and notes the longest
    time that one took."""

    def __init__(self, node, title):
        super().__init__(daemon=True)
        self.title = title
        self.longest = 0.0
        self.count = 0
        self.leave = False
        self.ended = False              # because a statement failed
        # The client prints a row for the SELECT after each statement. The probe
        # waits for that row, so it knows when the statement has ended
        self.client = subprocess.Popen(
            [str(node.build / "client" / "mariadb"), "--no-defaults",
             f"--socket={node.socket}", "--batch", "--unbuffered",
             "--skip-column-names"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self):
        while not self.leave:
            begin = time.monotonic()
            self.client.stdin.write(f"{PROBES[self.title]}; SELECT 1;\n")
            self.client.stdin.flush()
            if not self.client.stdout.readline():
                self.ended = not self.leave
                return
            self.longest = max(self.longest, time.monotonic() - begin)
            self.count += 1
            time.sleep(0.005)

    def finish(self):
        self.leave = True
        self.join(timeout=120)
        self.client.stdin.close()
        self.client.wait(timeout=60)
        return f"{self.title} {self.longest:.2f} s"


class Restore:
    """The steps, on the nodes of one Topology."""

    def __init__(self, test, tables, older):
        self.test = test
        self.tables = tables
        self.expected = {}
        self.main = self.node("main", older)

    def node(self, name, trees=None):
        node = self.test.node(name, [
            f"--open-files-limit={OPEN_FILES}",
            f"--table-open-cache={OPEN_TABLES}",
            f"--table-definition-cache={2 * OPEN_TABLES}",
            # The stock server multiplies by it
            "--table-open-cache-instances=1",
            "--innodb-buffer-pool-size=256M", "--sync-frm=0"], trees)
        node.use("patched")
        return node

    def same(self, title, node):
        with timed("checksums"):
            now = checksums(node)
        different = [f"{table}: {self.expected.get(table)}, {now.get(table)}"
                     for table in sorted(set(self.expected) | set(now))
                     if self.expected.get(table) != now.get(table)
                     or now.get(table) in (None, "NULL")]
        self.test.check(f"{title}: {len(now)} tables have the same checksums",
                        "; ".join(different[:5]))

    def start(self, node, variant, *options):
        node.use(variant)
        with timed(f"{node.name}: start of {variant}"):
            node.start(*options)

    @staticmethod
    def run_timed(title, command):
        """Run a program, and say how long it took; return what it prints."""
        with timed(title):
            return run(command, title)

    def populate(self):
        self.start(self.main, "patched", *UNSAFE)
        say(f"creating {self.tables} tables")
        with timed(f"creating {self.tables} tables, without syncs"):
            create(self.main, self.tables)
        self.expected = checksums(self.main)
        self.test.check(f"{self.tables} tables are there",
                        "" if len(self.expected) == self.tables else
                        f"{len(self.expected)} are")
        self.main.sql("CREATE DATABASE probe; "
                      "CREATE TABLE probe.myisam (t DATETIME(6)) ENGINE=MyISAM;"
                      "CREATE TABLE probe.innodb (t DATETIME(6)) ENGINE=InnoDB")

    def backup(self, target):
        """Of the main node, while clients write to it."""
        node = self.main
        shutil.rmtree(target, ignore_errors=True)
        checksums(node)                 # leaves as many open as the cache holds
        opened = node.value("Open_tables")
        probes = [Probe(node, title) for title in PROBES]
        for probe in probes:
            probe.start()
        try:
            log = self.run_timed(
                f"mariadb-backup --backup ({node.variant}, {opened} tables open)",
                [node.build / "extra/mariabackup/mariadb-backup", "--no-defaults",
                 "--backup", f"--target-dir={target}", f"--socket={node.socket}",
                 f"--open-files-limit={OPEN_FILES}"])
        finally:
            waits = [probe.finish() for probe in probes]
        say("longest wait: " + ", ".join(waits))
        self.test.check(f"{node.variant}: clients wrote during the whole backup",
                        "; ".join(f"{probe.title} ended after {probe.count} "
                                  "statements" for probe in probes if probe.ended))
        # The time under its locks
        moments = re.findall(r"(?m)^\[\d+\] \S+ (\d+):(\d+):(\d+) "
                             r"(Acquiring BACKUP LOCKS|BACKUP STAGE \w+"
                             r"|Executing BACKUP STAGE END)", log)
        say("its log: " + ", ".join(f"{hour}:{minute}:{second} {what}"
                                    for hour, minute, second, what in moments))

    def restored(self, variants, source):
        """Prepare a backup, copy it back, and start it with each variant."""
        program = self.main.build / "extra/mariabackup/mariadb-backup"
        self.run_timed("mariadb-backup --prepare",
                       [program, "--no-defaults", "--prepare", f"--target-dir={source}",
                        f"--open-files-limit={OPEN_FILES}"])
        node = self.node("restored")
        self.run_timed("mariadb-backup --copy-back",
                       [program, "--no-defaults", "--copy-back", f"--target-dir={source}",
                        f"--datadir={node.datadir}"])
        shutil.rmtree(source)
        for variant in variants:
            self.start(node, variant)
            self.same(f"{self.main.variant}'s backup, started with {variant}", node)
            node.stop()
        shutil.rmtree(node.datadir)

    def backups(self):
        """Both servers twice in turn; the last backup of each is restored."""
        target = self.test.work / "backup"
        for turn in (1, 2):
            for variant, starts in (("patched", ("patched", "stock")),
                                    ("stock", ("patched",))):
                self.start(self.main, variant)
                if turn == 1:
                    self.same(f"data directory started with {variant}", self.main)
                self.backup(target)
                self.main.stop()
                if turn == 2:
                    self.restored(starts, target)

    def exchange(self, whole):
        """What each of three servers writes, the next one reads."""
        part = self.test.trees
        self.main.stop()
        turns = [("whole", whole, "patched"), ("part", part, "patched"),
                 ("stock", part, "stock"), ("part", part, "patched"),
                 ("stock", part, "stock"), ("whole", whole, "patched"),
                 ("part", part, "patched")]
        before = "part"
        for number, (title, trees, variant) in enumerate(turns):
            self.main.trees = trees
            self.start(self.main, variant)
            self.same(f"{title} after {before}", self.main)
            self.test.check(f"{title} after {before}: CHECK TABLE finds no error",
                            "; ".join(topology.unsound(self.main)[:3]))
            self.main.sql(changes(number, self.tables))
            self.expected = checksums(self.main)
            self.main.stop()
            before = title

    def dump(self, node, target):
        databases = [row[0] for row in node.sql(
            "SELECT schema_name FROM information_schema.schemata "
            "WHERE schema_name LIKE 'site%' ORDER BY 1")]
        command = [node.build / "client/mariadb-dump", "--no-defaults",
                   f"--socket={node.socket}", "--skip-dump-date",
                   f"--result-file={target}", "--databases", *databases]
        self.run_timed(f"mariadb-dump ({node.variant})", command)

    def dumps(self):
        files = {}
        for variant in ("patched", "stock"):
            files[variant] = self.test.work / f"{variant}.sql"
            self.start(self.main, variant)
            self.dump(self.main, files[variant])
            self.main.stop()
        texts = [re.sub(r"(?m)^-- .*\n", "", path.read_text()) for path in files.values()]
        self.test.check("both servers' dumps are the same",
                        "" if texts[0] == texts[1] else "they differ")
        node = self.node("loaded")
        self.start(node, "stock", *UNSAFE)
        with timed("restoring the dump into stock, without syncs"):
            node.sql(texts[0])
        self.same("patched's dump, restored into stock", node)
        node.stop()
        self.start(node, "patched")
        self.same("that data directory, started with patched", node)
        node.stop()

    def upgrade(self):
        """A data directory of the older series' patched server."""
        self.main.stop()
        before = self.main.trees.name
        self.main.trees = self.test.trees
        self.start(self.main, "patched")
        program = [self.main.build / "client/mariadb-upgrade", "--no-defaults",
                   f"--socket={self.main.socket}"]
        for turn in ("mariadb-upgrade", "mariadb-upgrade --force"):
            text = self.run_timed(turn, [*program, *turn.split()[1:]])
            bad = re.findall(r"(?mi)^.*\b(?:error|corrupt|failed)\b.*$", text)
            self.test.check(f"{turn} of {before}'s data directory", "; ".join(bad[:5]))
            self.same(f"{before}'s data directory after {turn}", self.main)
        _, again = answer(program)
        self.test.check("a further mariadb-upgrade has nothing to do",
                        "" if "already upgraded" in again else again[-300:])
        self.main.stop()
        self.start(self.main, "patched")
        self.same("after a restart", self.main)
        self.main.stop()

    def run(self, older, whole):
        self.populate()
        if older:
            self.upgrade()
        elif whole:
            self.exchange(whole)
        else:
            self.main.stop()
            self.backups()
            self.dumps()
        for node in self.test.nodes:
            self.test.check(f"no error in the log of {node.name}", "; ".join(node.alarms()[:3]))


def main():
    arguments = topology.parse_arguments(
        "Back up, restore, upgrade and go back with many tables",
        ("--from-trees", pathlib.Path, None, "builds of an older series"),
        ("--whole-trees", pathlib.Path, None, "the build of the whole patch set"),
        ("--tables", int, 2000, "how many tables"))
    with Topology(arguments.trees) as test:
        Restore(test, arguments.tables, arguments.from_trees).run(
            arguments.from_trees, arguments.whole_trees)
    return 1 if test.failures else 0


if __name__ == "__main__":
    outcome.run(main, "upgrade")
