#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
How do InnoDB's start, recovery and shutdown grow with the number of tables?

    start_many_tables.py --stock TREE --patched TREE --data DIR COUNT...

TREE is a directory with source/ and release/; DIR is for the data: four pages and a
.frm file a table, and a redo log of 1 GiB. For each COUNT the program creates tables
of one column, and then measures stock, patched, and stock again, on the same data:

start      a start after a clean shutdown
insert     one connection inserts a row into each table: a first touch, too
recovery   a start after kill -9: the redo log has records for each table
shutdown   it writes a page of each table

For a million tables: --page-size 4k for files of 16 KiB; --definitions and
--open-files so that neither the definitions nor the descriptors of all tables are
kept; --touched for how many tables get a row, which lie at equal distances.
"""

import argparse
import multiprocessing
import shutil
import sys
import time

sys.dont_write_bytecode = True
from benchlib import wire                                      # noqa: E402
from benchlib.program import resolved, run_program             # noqa: E402
from benchlib.servers import BenchError, Server, stop_all      # noqa: E402
from benchlib.usage import resident, usage                    # noqa: E402

DATABASE = "tc_start"
CREATING = 4                            # connections that create tables
SAY = 50000                             # tables between two lines of progress
BATCH = 50                              # statements on their way at a time


def server(options, variant, tables):
    """A server that makes no checkpoint before the kill."""
    definitions = options.definitions or tables + 400
    files = options.open_files or tables + 1000
    page = int(options.page_size[:-1]) << 10
    return Server(getattr(options, variant), options.data / f"start-{tables}", [
        f"--table-definition-cache={definitions}", "--table-open-cache=400",
        f"--innodb-open-files={files}", f"--open-files-limit={files + 2000}",
        f"--innodb-page-size={options.page_size}",
        f"--innodb-buffer-pool-size={(512 << 20) + 5 * page // 2 * tables}",
        "--innodb-log-file-size=1G", "--innodb-flush-log-at-trx-commit=2",
        "--innodb-buffer-pool-load-at-startup=0",
        "--innodb-buffer-pool-dump-at-shutdown=0",
        "--innodb-flush-method=fsync", "--innodb-stats-persistent=0"])


def execute_each(running, numbers, statement, say=False):
    session = wire.Connection(running.socket, DATABASE)
    for first in range(0, len(numbers), BATCH):
        batch = numbers[first:first + BATCH]
        if say and first % SAY == 0 and first:
            print(f"{first} of {len(numbers)} tables", file=sys.stderr, flush=True)
        session.send(*(statement.format(number) for number in batch))
        for _ in batch:
            session.skip_result()
    session.close()


def create(options, tables):
    """The tables, without a sync; the patched server creates them faster."""
    made = server(options, "patched", tables)
    made.create_datadir(f"--innodb-page-size={options.page_size}")
    made.start("--debug-no-sync", "--sync-frm=0", "--skip-innodb-doublewrite",
               "--innodb-flush-method=nosync")
    made.sql(f"CREATE DATABASE {DATABASE}")
    sessions = [multiprocessing.Process(
        target=execute_each,
        args=(made, range(first, tables, CREATING),
              "CREATE TABLE t{} (a INT PRIMARY KEY) ENGINE=InnoDB"))
        for first in range(CREATING)]
    for session in sessions:
        session.start()
    while any(session.is_alive() for session in sessions):
        sessions[0].join(10)
        print(f"{made.status('Com_create_table')} of {tables} tables",
              file=sys.stderr, flush=True)
    if any(session.exitcode for session in sessions):
        raise BenchError("a connection that creates tables failed")
    made.stop()


def measure(running, tables, touched, row):
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
    execute_each(running, [i * tables // touched for i in range(touched)],
                 f"INSERT INTO t{{}} VALUES ({row})", say=True)
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
        parser.add_argument(f"--{name}", required=True, help=text,
                            type=resolved)
    parser.add_argument("--page-size", default="16k", choices=("4k", "8k", "16k"),
                        help="innodb_page_size (default 16k)")
    parser.add_argument("--touched", type=int, default=0,
                        help="number of tables that get a row (default all)")
    parser.add_argument("--definitions", type=int, default=0,
                        help="table_definition_cache (default: for all tables)")
    parser.add_argument("--open-files", type=int, default=0,
                        help="innodb_open_files (default: for all tables)")
    options = parser.parse_args()
    print("| tables | server | step | s | s of CPU time | MiB |\n"
          "|---:|---|---|---:|---:|---:|")
    for tables in options.counts:
        place = options.data / f"start-{tables}"
        if place.exists():
            raise BenchError(f"{place} exists: another run uses it, or one was "
                             "killed; remove it, or name another --data")
        try:
            create(options, tables)
            for row, variant in enumerate(("stock", "patched", "stock")):
                measure(server(options, variant, tables), tables,
                        min(options.touched or tables, tables), row)
        finally:
            stop_all()
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    run_program(main)
