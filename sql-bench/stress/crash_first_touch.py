#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
kill -9 of a server that loads, changes and drops InnoDB tables, again and again.

In each round the connections of stress_first_touch.py work on the same tables until
the server is killed, at a time chosen by chance. After the recovery every table that
is there must be sound, each row that a connection knew to be committed must be in the
tables that nobody drops. Rows that refer to one that is not there are shown, and do
not count: see check() there. (What the operating system has is not lost, so this
shows nothing about syncs.)

Before every second round the server is started anew without a kill, and a dump of the
buffer pool names a page of each tablespace there may be: so InnoDB opens the files of all
tables while the connections use, change and drop them.

It starts a server of its own. Exit status 0 means that all was well.
"""

import argparse
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
sys.dont_write_bytecode = True
import stress_first_touch as stress                     # noqa: E402
from benchlib.servers import Server                     # noqa: E402
from benchlib.wire import Connection                    # noqa: E402


def work(server, args, number, kept):
    """Let the connections work until the server is killed; return them."""
    workers = [stress.Worker(args, connection + 1, float("inf"))
               for connection in range(args.connections)]
    for worker in workers:
        worker.args = argparse.Namespace(**vars(args), socket=server.socket,
                                         user=server.account)
        worker.rng = random.Random(f"{args.seed}/{number}/{worker.number}")
        worker.kept = kept.setdefault(worker.number, worker.kept)
        worker.start()
    time.sleep(args.seconds * random.Random(f"{args.seed}/{number}").uniform(
        0.2, 1))
    server.kill()
    for worker in workers:
        worker.join()
    return workers


def load_pool(server, client):
    """Start the server again, so that it loads a page of every table. Return a
    new connection."""
    last = int(client.query("SELECT MAX(space) FROM "
                            "information_schema.innodb_sys_tables")[0][0])
    client.close()
    server.stop()
    (server.datadir / "ib_buffer_pool").write_text(
        "".join(f"{space},3\n" for space in range(1, last + 100)),
        encoding="ascii")
    server.start()
    return Connection(server.socket, "information_schema")


def main():
    args = stress.stress.crash_parser(__doc__, rounds=10, seconds=6, tables=500,
                                      connections=12).parse_args()
    problems, kept, statements, orphans = [], {}, 0, []

    with tempfile.TemporaryDirectory(prefix="crash-") as directory:
        server = Server(args.tree, pathlib.Path(directory, "data"),
                        ["--innodb-flush-log-at-trx-commit=1",
                         "--innodb-buffer-pool-dump-at-shutdown=0",
                         "--max-connections=200"], build=args.type)
        server.start()
        client = Connection(server.socket, "information_schema")
        stress.create(client, args.tables)
        for number in range(args.rounds):
            if number % 2:
                client = load_pool(server, client)
            stress.shrink_caches(client)
            client.close()
            workers = work(server, args, number, kept)
            begin = time.monotonic()
            server.start()
            seconds = time.monotonic() - begin
            client = Connection(server.socket, "information_schema")
            back = stress.put_back(client)
            tables = stress.check(client, workers, problems, True, orphans)
            errors = stress.stress.total(worker.errors for worker in workers)
            problems += [f"error {error} (a broken table)"
                         for error in sorted(stress.BROKEN & set(errors))]
            done = sum(sum(worker.done.values()) for worker in workers)
            statements += done
            print(f"round {number + 1}: {done} pieces of work, recovered in "
                  f"{seconds:.1f} s, {tables} tables checked"
                  + "".join(f", {old} is {new} again" for old, new in back),
                  flush=True)
            if problems:
                break
        client.close()
        server.stop()
    if orphans:
        print("rows without parents, which MariaDB has, too:",
              "; ".join(sorted(set(orphans))))
    if not statements:
        problems.append("no connection did anything")
    print("\n".join(problems) or "all well", f"(seed {args.seed})")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
