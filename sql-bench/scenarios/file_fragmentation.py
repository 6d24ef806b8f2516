# SPDX-License-Identifier: GPL-2.0-only
"""MySQL file system fragmentation benchmarks: many files that grow at once."""

import os
import pathlib
import re
import shutil
import subprocess

from benchlib import sysbench
from benchlib.scenario import TABLE_BYTES, Option, Scenario, engines, integers
from benchlib.servers import BenchError, create_tables

CONNECTIONS = 4
BYTES = 1000                    # of a row
DATA_FILES = {"myisam": "MYD", "aria": "MAD", "innodb": "ibd"}
INSERT, EXTENT, SCAN = ("rows/s inserted", "KiB in an extent",
                        "rows/s scanned, cold")


class FileFragmentation(Scenario):
    name = "file-fragmentation"
    title = "Rows inserted at random into one table and into many"
    source = "MySQL file system fragmentation benchmarks"
    question = (
        "What do many files that grow at the same time cost: when they are "
        "written, in their layout on disk, and when they are read again?")
    method = (
        f"{CONNECTIONS} connections insert rows of {BYTES} bytes into new tables at "
        "random, with table_open_cache=64. Then the server stops, filefrag counts "
        "the extents of the files, and the files leave the page cache. After a "
        "start all tables are read, one after the other.")
    caveat = (
        "The layout depends on the file system, and on how full that is. Only the "
        "files' pages leave the page cache, not the directory entries, and the "
        "disk's own cache may still have the files. In the original benchmark the "
        "data grew beyond memory.")
    unit = "as named"
    together = 3

    counts = Option("frag-tables", "numbers of tables", "1,10,100,1000,10000", "1,100",
                    integers)
    rows = Option("frag-rows", "rows in all tables together", 20000, 5000)
    engines = Option("frag-engines", "engines", "myisam,aria,innodb", kind=engines)

    @staticmethod
    def filefrag():
        path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
        return shutil.which("filefrag", path=path)

    @classmethod
    def check(cls, options):
        sysbench.require()
        if not cls.filefrag():
            raise BenchError("filefrag is missing; apt-get install e2fsprogs")

    @classmethod
    def disk(cls, options):
        return (3 * cls.rows(options) * BYTES + (1 << 30)
                + 2 * TABLE_BYTES["innodb"] * max(cls.counts(options)))

    @staticmethod
    def server_options(options):
        # Creating the tables is not measured
        return ["--table-open-cache=64",
                "--table-definition-cache=40000",
                "--open-files-limit=1048576", "--sync-frm=0",
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-flush-method=O_DIRECT",
                "--innodb-buffer-pool-size=128M"]

    @classmethod
    def cells(cls, options):
        return [{"label": f"{what}, {engine}, {count} "
                          f"table{'s' * (count > 1)}",
                 "what": what, "engine": engine, "tables": count}
                for engine in cls.engines(options)
                for count in cls.counts(options)
                for what in (INSERT, EXTENT, SCAN)]

    @classmethod
    def measure(cls, server, cell, options):
        database = "tc_fragments"
        if cell["what"] == INSERT:
            server.sql(f"DROP DATABASE IF EXISTS {database}")
            create_tables(server, database, cell["engine"], cell["tables"],
                          lambda *_: None, "a INT, b TEXT")
            return sysbench.run(server, "insert_rows", database, CONNECTIONS,
                                events=cls.rows(options), bytes=BYTES,
                                tables=cell["tables"])["rate"]
        files = sorted((server.datadir / database).glob(
            "*." + DATA_FILES[cell["engine"]]))
        if cell["what"] == EXTENT:
            server.stop()           # writes all that is to be written
            os.sync()
            extents = cls.extents(files)
            size = sum(file.stat().st_blocks for file in files) * 512
            server.start()
            return {"value": size / 1024 / extents,
                    "extents_in_a_file": extents / len(files)}
        server.stop()
        os.sync()
        for file in files:
            forget(file)
        server.start()
        seconds = server.timed("".join(
            f"SELECT COUNT(b) FROM t{number};\n"
            for number in range(1, cell["tables"] + 1)), database)
        server.sql(f"DROP DATABASE {database}")
        return cls.rows(options) / seconds

    @classmethod
    def extents(cls, files):
        total = 0
        for first in range(0, len(files), 500):
            done = subprocess.run(
                [cls.filefrag(), *files[first:first + 500]],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                check=False)
            if done.returncode:
                raise BenchError("filefrag failed, maybe the file system "
                                 f"cannot tell extents:\n{done.stdout[-500:]}")
            total += sum(map(int, re.findall(r"(?m): (\d+) extents? found$",
                                             done.stdout)))
        return max(total, 1)


def forget(file: pathlib.Path):
    """Take a file that was synced out of the page cache."""
    descriptor = os.open(file, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
