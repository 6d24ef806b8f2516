#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
How do InnoDB's start, recovery and shutdown grow with the number of tables?

    start_many_tables.py --stock TREE --patched TREE --data DIR COUNT...

TREE is a directory with source/ and release/; DIR is for the data, 64 KiB a table
and a redo log of 1 GiB. For each COUNT the program creates tables of one column, and
then measures stock, patched, and stock again, on the same data:

start      a start after a clean shutdown
insert     one connection inserts a row into each table: a first touch, too
recovery   a start after kill -9: the redo log has records for each table
shutdown   it writes a page of each table
"""

import argparse
import pathlib
import shutil
import time

from benchlib import wire
from benchlib.servers import Server
from benchlib.usage import resident, usage

DATABASE = "tc_start"
BATCH = 50                              # statements on their way at a time


def server(options, variant, tables):
    """A server that has all tables open, and makes no checkpoint before the kill."""
    return Server(getattr(options, variant), options.data / f"start-{tables}", [
        f"--table-definition-cache={tables + 400}", "--table-open-cache=400",
        f"--innodb-open-files={tables + 1000}", "--open-files-limit=1048576",
        f"--innodb-buffer-pool-size={(512 << 20) + 40960 * tables}",
        "--innodb-log-file-size=1G", "--innodb-flush-log-at-trx-commit=2",
        "--innodb-buffer-pool-load-at-startup=0",
        "--innodb-buffer-pool-dump-at-shutdown=0",
        "--innodb-flush-method=fsync", "--innodb-stats-persistent=0"])


def execute_each(running, tables, statement):
    session = wire.Connection(running.socket, DATABASE)
    for first in range(0, tables, BATCH):
        texts = [statement.format(number)
                 for number in range(first, min(first + BATCH, tables))]
        session.send(*texts)
        for _ in texts:
            session.skip_result()
    session.close()


def create(options, tables):
    made = server(options, "stock", tables)
    made.start("--debug-no-sync", "--sync-frm=0", "--skip-innodb-doublewrite")
    made.sql(f"CREATE DATABASE {DATABASE}")
    execute_each(made, tables,
                 "CREATE TABLE t{} (a INT PRIMARY KEY) ENGINE=InnoDB")
    made.stop()


def measure(running, tables, row):
    """Print a line a step: seconds, of CPU time, and MiB in memory."""
    def report(step, began, cpu):
        alive = running.process is not None
        print(f"| {tables} | {running.variant} | {step} "
              f"| {time.monotonic() - began:.2f} | "
              + (f"{usage(running.process.pid)[0] - cpu:.2f} "
                 f"| {resident(running.process.pid) >> 20} |"
                 if alive else "| |"), flush=True)

    began = time.monotonic()
    running.start()
    report("start", began, 0)
    began, cpu = time.monotonic(), usage(running.process.pid)[0]
    execute_each(running, tables, f"INSERT INTO t{{}} VALUES ({row})")
    report("insert", began, cpu)
    running.kill()
    began = time.monotonic()
    running.start()
    report("recovery", began, 0)
    began = time.monotonic()
    running.stop()
    report("shutdown", began, 0)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", metavar="COUNT", type=int, nargs="+")
    for name, text in (("stock", "tree of the stock server"),
                       ("patched", "tree of the patched server"),
                       ("data", "directory for the data")):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True,
                            help=text)
    options = parser.parse_args()
    print("| tables | server | step | s | s of CPU time | MiB |\n"
          "|---:|---|---|---:|---:|---:|")
    for tables in options.counts:
        create(options, tables)
        for row, variant in enumerate(("stock", "patched", "stock")):
            measure(server(options, variant, tables), tables, row)
        shutil.rmtree(options.data / f"start-{tables}")


if __name__ == "__main__":
    main()
