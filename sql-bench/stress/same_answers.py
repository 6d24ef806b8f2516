#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Compare what SHOW DATABASES and INFORMATION_SCHEMA answer with what stock answers.

A stock and a patched server get the same databases, and in each round the same random
grants. Several accounts then ask both the same queries, and each answer must be the
same, row by row, error by error. Databases, grants and queries are those of the mtr tests
catalog_same_answers*, which compare a debug build with itself: see
mysql-test/suite/table_cache/include/catalog_same_answers.inc. This program takes them from
there, and is quick enough for some thousand rounds.

    sql-bench/stress/same_answers.py out/10.11 --rounds 700

repeats the rounds with lower_case_table_names 0 and 1, and with --skip-show-database.
Exit status 0 means that all answers were the same.
"""

import argparse
import contextlib
import pathlib
import re
import sys
import tempfile

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
sys.dont_write_bytecode = True
from benchlib.servers import Server                     # noqa: E402
from benchlib.wire import Connection, Error             # noqa: E402

TOP = pathlib.Path(__file__).resolve().parents[2]
SOURCE = TOP / "mysql-test/suite/table_cache/include/catalog_same_answers.inc"
SETTINGS = ([], ["--lower-case-table-names=1"], ["--skip-show-database"])
DIRECTORIES = ("old-name", "Capital", "#sql-tmp", "ignored")
LINKS = {"link_1": "a-directory", "link_dead": "nowhere", "link_file": "a-file"}
ACCOUNTS = ("u1", "u2", "nobody")


def between(text, begin, end):
    return text.partition(begin)[2].partition(end)[0]


class Script:
    """The statements of the test's include file."""

    def __init__(self):
        text = SOURCE.read_text(encoding="utf-8")
        plain = text.partition("--delimiter |")[0]
        self.objects = re.findall(
            r"^ *((?:CREATE|INSERT INTO test)\b[^;]*);", plain, re.MULTILINE)
        # The two procedures
        self.procedures = [part.strip() + " END" for part in
                           between(text, "--delimiter |", "--delimiter ;")
                           .split("END|") if part.strip()]
        self.queries = between(text, "<<'SQL';\n", "\nSQL\n").rstrip(";").split(";\n")
        if len(self.objects) < 20 or len(self.procedures) != 2:
            raise SystemExit(f"{SOURCE} is not laid out as this program reads it: "
                             f"{len(self.objects)} objects (at least 20 expected), "
                             f"{len(self.procedures)} procedures (2 expected)")


def ask(session, statement):
    """The rows, or the error."""
    try:
        return session.query(statement)
    except Error as error:
        return str(error)


def prepare(server, script, outside):
    """Make the databases, and what else is in the data directory."""
    with contextlib.closing(Connection(server.socket)) as session:
        session.query("SET NAMES utf8mb3")
        for statement in ["CREATE DATABASE IF NOT EXISTS test"] + \
                script.objects + script.procedures:
            answer = ask(session, statement)
            # S1 is s1 with lower_case_table_names=1
            if answer and "database exists" not in answer:
                raise SystemExit(f"{statement}: {answer}")
    for name in DIRECTORIES:
        (server.datadir / name).mkdir()
    for name, target in LINKS.items():
        (server.datadir / name).symlink_to(outside / target)
    for name in ("old-t", "#sql-t"):
        (server.datadir / "s1" / f"{name}.frm").write_bytes(
            (server.datadir / "s1/t1.frm").read_bytes())


def answers(server, queries):
    """All answers to all accounts, as (account, query, answer)."""
    for account in ACCOUNTS:
        try:
            session = Connection(server.socket, user=account)
        except Error as error:
            yield account, "login", str(error)
            continue
        with contextlib.closing(session):
            asked = ["SET NAMES utf8mb3", *queries]
            if account == "u1":
                asked += ["SET ROLE r1", *queries]
            else:
                asked += ["SET ROLE NONE", "USE s1", queries[0],
                          "SELECT table_schema, table_name FROM "
                          "information_schema.tables WHERE table_schema LIKE 's%' "
                          "ORDER BY BINARY table_schema, BINARY table_name"]
            for query in asked:
                yield account, query, ask(session, query)


def compare(servers, script, first, last):
    """Return how many answers there were, how many different ones, and how many
    differ between the servers."""
    count, seen, wrong = 0, set(), 0
    for number in range(first, last + 1):
        found = []
        for server in servers:
            with contextlib.closing(Connection(server.socket)) as session:
                session.query("SET NAMES utf8mb3")
                session.query(f"CALL test.random_grants({number})")
            found.append(list(answers(server, script.queries)))
        for stock, patched in zip(*found, strict=True):
            count += 1
            seen.add(hash(repr(stock)))
            if stock != patched:
                wrong += 1
                print(f"round {number}, {stock[0]}: {stock[1]}\n"
                      f"  stock   {stock[2]}\n  patched {patched[2]}", flush=True)
    return count, len(seen), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("trees", type=pathlib.Path, metavar="DIRECTORY",
                        help="with stock and patched, such as out/10.11")
    parser.add_argument("--rounds", type=int, default=100,
                        help="sets of grants with each setting (default "
                        "%(default)s)")
    parser.add_argument("--first", type=int, default=1, metavar="N",
                        help="number, and seed, of the first round (default "
                        "%(default)s)")
    args = parser.parse_args()
    script, failed = Script(), False
    with tempfile.TemporaryDirectory(prefix="same-answers-") as directory:
        for number, setting in enumerate(SETTINGS):
            outside = pathlib.Path(directory, f"{number}-outside")
            (outside / "a-directory").mkdir(parents=True)
            (outside / "a-file").touch()
            with contextlib.ExitStack() as stack:
                servers = []
                for variant in ("stock", "patched"):
                    server = Server(args.trees.resolve() / variant,
                                    pathlib.Path(directory, f"{number}-{variant}"),
                                    ["--ignore-db-dirs=ignored",
                                     "--debug-no-sync", *setting])
                    servers.append(stack.enter_context(server))
                    prepare(server, script, outside)
                count, different, wrong = compare(
                    servers, script, args.first, args.first + args.rounds - 1)
            print(f"{' '.join(setting) or 'no other setting'}: {args.rounds} sets of "
                  f"grants, {count} answers, {different} different ones, {wrong} not "
                  "as stock's", flush=True)
            failed |= wrong > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
