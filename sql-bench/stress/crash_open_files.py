#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
kill -9, again and again, of a server with many more tables than open files.

Each round, connections insert rows into tables chosen at random, change and delete
their own, and create, rename, truncate and drop a few tables, until the server is killed.
With innodb_flush_log_at_trx_commit=1 what a connection was told is committed has to
be there after the recovery, and CHECK TABLE has to find every table sound. Rounds
differ in innodb_open_files, at run time and for the recovery, and in whether there is
a doublewrite buffer. (kill -9 does not lose what the operating system has, so this
shows nothing about syncs.)

With --backup, mariadb-backup takes a backup of each round before the server is killed.
It is prepared, and a server on it has to find every table sound.

It starts the server itself, in a data directory of its own. Exit status 0 means that
all was well.
"""

import multiprocessing
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
sys.dont_write_bytecode = True
from benchlib import stress, wire                       # noqa: E402
from benchlib.servers import Server                     # noqa: E402

DATABASE = "crashfiles"
LIMITS = (20, 40, 100)


def work(pipe, socket, number, tables, seed, last):
    """Until the server is gone: write. Answer with the rows that are committed for
    certain, {(table, a): b}, those that may be either way, and the last a."""
    rng = random.Random(f"{seed}/{number}")
    rows, unsure = {}, set()
    a = last

    def change(key, statement):
        """Whether it is committed; the server gone raises something else."""
        unsure.add(key)
        try:
            connection.query(statement)
        except wire.Error:
            unsure.discard(key)         # A deadlock: rolled back
            return False
        unsure.discard(key)
        return True

    try:
        connection = wire.Connection(socket, DATABASE)
        connection.query("SET SESSION lock_wait_timeout = 3")
        while True:
            table = f"t{rng.randrange(tables)}"
            choice = rng.random()
            own = [key for key in rows if key[0] == table]
            if choice < 0.02:
                temporary = f"x{number}"
                for statement in (
                        f"CREATE TABLE {temporary} LIKE t0",
                        f"INSERT INTO {temporary} VALUES (1, 1, 'x')",
                        f"RENAME TABLE {temporary} TO y{number}",
                        f"TRUNCATE TABLE y{number}",
                        f"DROP TABLE IF EXISTS y{number}"):
                    try:
                        connection.query(statement)
                    except wire.Error:
                        pass
            elif choice < 0.15 and own:
                key = rng.choice(own)
                if change(key, f"DELETE FROM {key[0]} WHERE a = {key[1]}"):
                    del rows[key]
            else:
                if choice < 0.4 and own:
                    key = rng.choice(own)
                else:
                    a += 1
                    key = (table, a * 100 + number)
                b = rng.randrange(1 << 30)
                if change(key, f"INSERT INTO {key[0]} VALUES ({key[1]}, {b}, "
                               f"REPEAT('c', {rng.randrange(2000)})) "
                               f"ON DUPLICATE KEY UPDATE b = {b}"):
                    rows[key] = b
    except (OSError, wire.Error, EOFError, IndexError, ValueError):
        pass
    pipe.send((rows, unsure, a))


def check_tables(server, tables, what, problems):
    for row in server.sql("".join(f"CHECK TABLE t{n};\n" for n in range(tables)),
                          DATABASE):
        if row[-1] != "OK":
            problems.append(f"{what}: {row}")


def back_up(server, directory):
    """Take a backup of a server that is in use; return what went wrong."""
    program = str(server.build / "extra" / "mariabackup" / "mariadb-backup")
    for words in (["--backup", f"--socket={server.socket}", f"--user={server.account}",
                   f"--datadir={server.datadir}"], ["--prepare"]):
        done = subprocess.run(
            [program, "--no-defaults", f"--target-dir={directory}",
             "--open-files-limit=1000000", *words], text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            return f"mariadb-backup {words[0]} failed:\n{done.stdout[-2000:]}"
    return None


def main():
    parser = stress.crash_parser(__doc__, rounds=5, seconds=5, tables=300,
                                 connections=8)
    parser.add_argument("--backup", action="store_true",
                        help="let mariadb-backup take a backup of each round")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    problems, expected = [], {}
    lasts = [0] * args.connections

    with tempfile.TemporaryDirectory(prefix="crash-") as directory:
        server = Server(args.tree, pathlib.Path(directory, "data"),
                        ["--innodb-buffer-pool-size=8M",
                         "--innodb-flush-log-at-trx-commit=1",
                         "--innodb-max-dirty-pages-pct=10",
                         "--innodb-max-dirty-pages-pct-lwm=1",
                         "--innodb-buffer-pool-dump-at-shutdown=0"],
                        build=args.type)
        server.start("--innodb-open-files=100")
        server.sql(f"CREATE DATABASE {DATABASE}")
        server.sql("".join(
            f"CREATE TABLE t{n} (a BIGINT PRIMARY KEY, b BIGINT, c VARCHAR(3000), "
            "KEY (b)) ENGINE=InnoDB CHARSET=latin1;\n"
            for n in range(args.tables)), DATABASE)
        for number in range(args.rounds):
            limit = rng.choice(LIMITS)
            doublewrite = rng.choice(("1", "1", "0"))
            server.stop()
            server.start(f"--innodb-open-files={limit}",
                         f"--innodb-doublewrite={doublewrite}")
            jobs, pipes = [], []
            for job in range(args.connections):
                mine, theirs = multiprocessing.Pipe(False)
                jobs.append(multiprocessing.Process(
                    target=work, args=(theirs, server.socket, job, args.tables,
                                       f"{args.seed}/{number}", lasts[job])))
                jobs[-1].start()
                theirs.close()
                pipes.append(mine)
            time.sleep(args.seconds * rng.uniform(0.3, 1))
            limit = rng.choice(LIMITS)
            backup = pathlib.Path(directory, f"backup{number}")
            if args.backup and (failed := back_up(server, backup)):
                problems.append(f"round {number}: {failed}")
            os.kill(server.process.pid, 9)
            unsure = set()
            for job, pipe in enumerate(pipes):
                rows, either, lasts[job] = pipe.recv()
                # Rows that an earlier round has committed, and this one has
                # not touched, stay expected
                expected.update(rows)
                unsure |= either
                jobs[job].join()
            server.kill()
            begin = time.monotonic()
            server.start(f"--innodb-open-files={limit}",
                         f"--innodb-doublewrite={doublewrite}")
            seconds = time.monotonic() - begin
            found = {}
            for table in range(args.tables):
                name = f"t{table}"
                for row in server.sql(f"SELECT a, b FROM {name}", DATABASE):
                    found[name, int(row[0])] = int(row[1])
            check_tables(server, args.tables, f"round {number}", problems)
            gone = [key for key in expected if key not in unsure
                    and found.get(key) != expected[key]]
            strange = [key for key in found if key not in unsure
                       and key not in expected]
            if gone or strange:
                problems.append(f"round {number}: {len(gone)} rows lost or old, "
                                f"{len(strange)} rows too many, {gone[:3]} "
                                f"{strange[:3]}")
            expected = found
            print(f"round {number}: {len(found)} rows, doublewrite "
                  f"{doublewrite}, recovered with {limit} files in "
                  f"{seconds:.1f} s", flush=True)
            if args.backup and not problems:
                with Server(args.tree, backup, ["--innodb-open-files=20"],
                            build=args.type) as restored:
                    check_tables(restored, args.tables,
                                 f"backup of round {number}", problems)
                    rows = sum(
                        int(restored.sql(f"SELECT COUNT(*) FROM t{n}",
                                         DATABASE)[0][0])
                        for n in range(args.tables))
                print(f"round {number}: {rows} rows in the backup", flush=True)
                shutil.rmtree(backup)
            if problems:
                break
        server.stop()
    print("\n".join(problems) or "all well")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
