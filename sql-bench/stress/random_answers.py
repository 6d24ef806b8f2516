#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Compare a patched server's answers to random statements with a stock server's.

Both servers get the same databases with odd names, directories that come and go by hand,
accounts, roles and grants. Several accounts then list databases and tables, USE them and read
from them, while the grants change. Each answer must be the same, row by row, error by error.

    sql-bench/stress/random_answers.py out/10.11 --statements 100000

divides them among the settings. A round depends only on the seed and its number, so

    sql-bench/stress/random_answers.py out/10.11 --setting lower-case --seed 1 \\
        --first 31 --rounds 1

repeats one that differed. With --keep DIRECTORY each difference leaves a file with its
steps there.

A difference that is known counts under its name. Today there is one: MariaDB takes a role
for the account of the same name (topic acl-cache-key). It is known by this: after FLUSH
PRIVILEGES, which empties that cache, stock answers as patched did, or the active role has
the name of the account.

Exit status: 0 all other answers were the same, 1 they were not.
"""

import argparse
import collections
import contextlib
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
sys.dont_write_bytecode = True
from benchlib.servers import Server                     # noqa: E402
from benchlib.wire import Connection, Error             # noqa: E402

SETTINGS = {"plain": [], "lower-case": ["--lower-case-table-names=1"],
            "skip-show": ["--skip-show-database"]}
# Half of the statements run with the second one
SHARES = {"plain": 0.3, "lower-case": 0.5, "skip-show": 0.2}

SERVERS_OWN = ("information_schema", "mysql", "performance_schema", "sys")
DATABASES = ("shop", "Shop", "shop_1", "shop_2", "shopX1", "a_b", "aXb", "a%b", "a\\b",
             "naïve", "naive", "NAÏVE", "straße", "日本", "con", "with space", "dash-ed",
             "mysqlx", "performance_schema2", "x" * 64)
DIRECTORIES = ("old-name", "Capital", "by_hand", "By_Hand", "shop_9", "ignored", ".hidden",
               "#sql-dir", "q" * 70, "ends ", "@0041", "link", "link_dead")
LINKS = {"link": "outside", "link_dead": "nowhere"}     # to what is beside the data
TABLES = ("t1", "T2", "dash-ed", "naïve", "v1", "nosuch")
# Some accounts have the name of a role
USERS = ("u1", "u2", "same", "Same", "")
HOSTS = ("localhost", "%", "local%")
ROLES = ("same", "r2", "r3")
RIGHTS = ("SELECT", "INSERT", "ALL", "CREATE", "EXECUTE", "LOCK TABLES", "EVENT", "DROP",
          "SHOW VIEW", "TRIGGER")
EVERYWHERE = ("PROCESS", "FILE", "CREATE USER", "SHOW DATABASES", "SELECT", "EXECUTE")
# A table of INFORMATION_SCHEMA, the column of the database, of the table, and others
CATALOG = (("SCHEMATA", "SCHEMA_NAME", None, "SCHEMA_COMMENT"),
           ("TABLES", "TABLE_SCHEMA", "TABLE_NAME", "ENGINE, TABLE_COMMENT"),
           ("COLUMNS", "TABLE_SCHEMA", "TABLE_NAME", "COLUMN_NAME, PRIVILEGES"),
           ("STATISTICS", "TABLE_SCHEMA", "TABLE_NAME", "INDEX_NAME"),
           ("VIEWS", "TABLE_SCHEMA", "TABLE_NAME", "DEFINER"),
           ("TABLE_CONSTRAINTS", "TABLE_SCHEMA", "TABLE_NAME", "CONSTRAINT_NAME"),
           ("ROUTINES", "ROUTINE_SCHEMA", "ROUTINE_NAME", "ROUTINE_TYPE"),
           ("SCHEMA_PRIVILEGES", "TABLE_SCHEMA", None, "GRANTEE, PRIVILEGE_TYPE"))
FORMS = ("{}",) * 6 + ("{} COLLATE utf8mb3_bin",) * 3 + (
    "BINARY {}", "LOWER({})", "CONCAT({}, '')", "CAST({} AS CHAR)", "{} COLLATE utf8mb3_nopad_bin",
    "CONVERT({} USING utf8mb4)")

Step = collections.namedtuple("Step", "who what text")
NO_SESSION = "the account could not log in"


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def name(text):
    return "`" + text.replace("`", "``") + "`"


class Round:
    """The steps of one round: the same for the same seed and number."""

    def __init__(self, seed, number):
        self.random = random.Random(f"{seed} {number}")
        self.choose = self.random.choice
        self.databases = self.random.sample(DATABASES, self.random.randint(4, 12))
        self.steps = []
        self.accounts, self.grants, self.sessions = [], [], 0
        self.begin()
        for _ in range(self.random.randint(3, 8)):
            self.choose((self.change_directories, self.change_grants, self.log_in,
                         self.log_in))()
            for session in range(self.sessions):
                for _ in range(self.random.randint(2, 10)):
                    self.add(session, "ask", self.statement())

    def chance(self, share):
        return self.random.random() < share

    def add(self, who, what, text):
        self.steps.append(Step(who, what, text))

    def root(self, statement):
        self.add("root", "ask", statement)

    # ------------------------------------------------------------ state

    def begin(self):
        for database in self.databases:
            self.root(f"CREATE DATABASE {name(database)}" + self.choose(
                ("", " COMMENT 'a comment'", " CHARACTER SET latin1", " COMMENT ''")))
            if self.chance(0.2):
                continue
            self.root(f"CREATE TABLE {name(database)}.t1 (a INT KEY) ENGINE=MyISAM")
            for table in self.random.sample(TABLES[1:4], self.random.randint(0, 3)):
                self.root(f"CREATE TABLE {name(database)}.{name(table)} (a INT) ENGINE=MyISAM")
            if self.chance(0.3):
                self.root(f"CREATE VIEW {name(database)}.v1 AS SELECT 1 AS a")
                self.root(f"CREATE PROCEDURE {name(database)}.p1() SELECT 1")
        self.change_directories()
        for role in self.random.sample(ROLES, self.random.randint(1, 3)):
            self.root(f"CREATE ROLE {role}")
        for _ in range(self.random.randint(2, 5)):
            account = f"{quoted(self.choose(USERS))}@{quoted(self.choose(HOSTS))}"
            if account not in self.accounts:
                self.accounts.append(account)
                self.root(f"CREATE USER {account}")
                if self.chance(0.6):
                    self.root(f"GRANT {self.choose(ROLES)} TO {account}")
        for _ in range(self.choose((0, 2, 6, 15, 30))):
            self.grant()

    def change_directories(self):
        for _ in range(self.random.randint(1, 4)):
            self.root("FLUSH TABLES")
            if self.chance(0.7):
                self.add("root", "toggle", self.choose(DIRECTORIES))
            elif self.chance(0.5):
                self.root(f"DROP DATABASE {name(self.choose(self.databases))}")
            else:
                self.root(f"CREATE DATABASE {name(self.choose(DATABASES))}")

    def pattern(self):
        text = self.any_database()
        escaped = text.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%")
        at = self.random.randint(0, len(text))
        return self.choose((text, escaped, escaped, text[:at] + "%", escaped + "%",
                            text[:at] + "_" + text[at + 1:], text.swapcase(), "%",
                            text + "\\"))

    def grant(self):
        to = self.choose(self.accounts + list(ROLES) + ["PUBLIC"])
        kind = self.random.random()
        if kind < 0.65:
            on = f"{self.choose(RIGHTS)} ON {name(self.pattern())}.*"
        elif kind < 0.85:
            on = (f"{self.choose(('SELECT', 'INSERT', 'SELECT (a)', 'DROP'))} ON "
                  f"{name(self.any_database())}.{name(self.choose(TABLES))}")
        elif kind < 0.92:
            on = f"EXECUTE ON PROCEDURE {name(self.any_database())}.p1"
        elif kind < 0.97:
            on = self.choose(ROLES)
        else:
            on = f"{self.choose(EVERYWHERE)} ON *.*"
        self.grants.append((on, to))
        self.root(f"GRANT {on} TO {to}")

    def change_grants(self):
        for _ in range(self.random.randint(1, 4)):
            if self.grants and self.chance(0.4):
                self.root("REVOKE {} FROM {}".format(*self.choose(self.grants)))
            elif self.chance(0.2):
                self.root("FLUSH PRIVILEGES")
            elif self.chance(0.1):
                self.root(f"DROP ROLE {self.choose(ROLES)}")
            else:
                self.grant()

    def log_in(self):
        user = self.choose(self.accounts).split("'")[1] if self.chance(0.9) else "nobody"
        self.add(self.sessions, "login", user)
        self.sessions += 1

    # ------------------------------------------------------- statements

    def any_database(self):
        kind = self.random.random()
        if kind < 0.75:
            return self.choose(self.databases)
        if kind < 0.85:
            return self.choose(("#mysql50#", "")) + self.choose(DIRECTORIES)
        return self.choose(DATABASES + SERVERS_OWN + ("nosuch", "INFORMATION_SCHEMA"))

    def constant(self, values):
        value = values()
        if self.chance(0.1):
            value = self.choose((value.swapcase(), value + " ", value[:-1]))
        return self.choose(("{}",) * 8 + ("_utf8mb4{}", "CONCAT({}, '')", "NULL",
                                          "{} COLLATE utf8mb4_bin")).format(quoted(value))

    def like(self, values):
        value = values()
        at = self.random.randint(0, len(value))
        return quoted(self.choose((value, value[:at] + "%", "%" + value[at:],
                                   value[:at] + "_" + value[at + 1:],
                                   value.replace("_", "\\_"))))

    def comparison(self, column, values):
        column = self.choose(FORMS).format(column)
        kind = self.random.random()
        if kind < 0.35:
            return (f"{column} {self.choose(('=', '=', '=', '<>', '<=>', '<', '>='))} "
                    f"{self.constant(values)}")
        if kind < 0.7:
            constants = [self.constant(values) for _ in range(self.random.randint(1, 5))]
            return f"{column} {self.choose(('IN', 'IN', 'NOT IN'))} ({', '.join(constants)})"
        if kind < 0.95:
            return f"{column} {self.choose(('LIKE', 'LIKE', 'NOT LIKE'))} {self.like(values)}"
        return f"{column} BETWEEN {self.constant(values)} AND {self.constant(values)}"

    def condition(self, database, table, depth=2):
        if depth and self.chance(0.5):
            parts = [self.condition(database, table, depth - 1) for _ in range(2)]
            return f"({self.choose((' AND ', ' OR ')).join(parts)})"
        if table and self.chance(0.4):
            return self.comparison(table, lambda: self.choose(TABLES + ("threads", "user")))
        return self.comparison(database, self.any_database)

    def select(self):
        view, database, table, others = self.choose(CATALOG)
        where = self.condition(database, table)
        if view not in ("SCHEMATA", "TABLES"):
            where = f"({where}) AND {database} NOT IN ('mysql', 'sys', 'information_schema')"
        view = f"information_schema.{view}"
        columns = f"{database}, {table or 1}, {others}"
        kind = self.random.random()
        if kind < 0.6:
            return f"SELECT {columns} FROM {view} WHERE {where}"
        if kind < 0.75:
            return (f"SELECT BINARY {database}, COUNT(*) FROM {view} WHERE {where} "
                    f"GROUP BY BINARY {database}")
        if kind < 0.9:
            outer = self.condition("s.schema_name", None)
            return (f"SELECT s.schema_name, t.* FROM information_schema.schemata s "
                    f"{self.choose(('', 'LEFT '))}JOIN (SELECT {columns} FROM {view} "
                    f"WHERE {where}) t ON t.{database} = s.schema_name WHERE {outer}")
        inner = self.condition("schema_name", None)
        return (f"SELECT {columns} FROM {view} WHERE ({where}) AND {database} IN "
                f"(SELECT schema_name FROM information_schema.schemata WHERE {inner})")

    def statement(self):
        database = name(self.any_database())
        table = name(self.choose(TABLES))
        kind = self.random.random()
        if kind < 0.45:
            select = self.select()
            return f"EXECUTE IMMEDIATE {quoted(select)}" if self.chance(0.1) else select
        if kind < 0.55:
            return f"USE {database}"
        if kind < 0.62:
            return f"SET ROLE {self.choose(ROLES + ('NONE',))}"
        return self.choose((
            "SHOW DATABASES", "SHOW DATABASES",
            f"SHOW DATABASES LIKE {self.like(self.any_database)}",
            f"SHOW DATABASES WHERE {self.comparison('`Database`', self.any_database)}",
            f"SHOW TABLES FROM {database}", f"SHOW FULL TABLES FROM {database}",
            f"SHOW TABLES FROM {database} LIKE {self.like(lambda: self.choose(TABLES))}",
            f"SHOW CREATE DATABASE {database}", f"SHOW COLUMNS FROM {table} FROM {database}",
            f"SELECT COUNT(*) FROM {database}.{table}",
            "SELECT DATABASE(), CURRENT_USER(), CURRENT_ROLE()", "SHOW GRANTS"))


class Side:
    """One of the two servers, and the sessions of a round."""

    def __init__(self, server):
        self.server = server
        self.sessions = {}

    def connect(self, who, user=None):
        session = self.sessions[who] = Connection(self.server.socket, user=user)
        session.query("SET NAMES utf8mb4")

    def close(self):
        for session in self.sessions.values():
            session.close()
        self.sessions = {}

    def ask(self, who, statement):
        """The rows, sorted unless the server has to, or the error."""
        if who not in self.sessions:
            return NO_SESSION
        try:
            rows = self.sessions[who].query(statement)
        except Error as error:
            return str(error)
        if statement.startswith("SHOW CREATE DATABASE"):
            # MariaDB shows an empty comment if nobody has read the db.opt before
            rows = [[row[0], row[1].removesuffix(b" COMMENT ''")] for row in rows]
        # MariaDB has no order of roles, and of databases whose names are as specific
        in_order = statement.startswith("SHOW") and statement != "SHOW GRANTS"
        return rows if in_order else sorted(rows, key=repr)

    def do(self, step):
        if step.what == "ask":
            return self.ask(step.who, step.text)
        if step.what == "login":
            try:
                self.connect(step.who, step.text)
            except Error as error:
                self.sessions.pop(step.who, None)
                return str(error)
            return None
        directory = self.server.datadir / step.text     # toggle
        if not self.remove(directory):
            if step.text in LINKS:
                directory.symlink_to(self.server.datadir.parent / LINKS[step.text])
                return None
            directory.mkdir()
            shutil.copy(self.server.datadir / "copied/t1.frm", directory)
        return None

    @staticmethod
    def remove(directory):
        """Remove a directory or a link; return whether there was one."""
        if directory.is_symlink():
            directory.unlink()
        elif directory.exists():
            shutil.rmtree(directory)
        else:
            return False
        return True

    def reset(self):
        """Leave nothing of the round before."""
        self.close()
        self.connect("root")
        root = self.sessions["root"]
        root.query("FLUSH TABLES")
        for directory in DIRECTORIES:
            self.remove(self.server.datadir / directory)
        for row in root.query("SHOW DATABASES"):
            if row[0].decode() not in SERVERS_OWN + ("copied",):
                root.query(f"DROP DATABASE {name(row[0].decode())}")
        root.query("DELETE FROM mysql.roles_mapping")
        for table in ("db", "tables_priv", "columns_priv", "procs_priv", "global_priv"):
            root.query(f"DELETE FROM mysql.{table} WHERE User NOT IN "
                       f"({quoted(self.server.account)}, 'root', 'mariadb.sys')")
        root.query("FLUSH PRIVILEGES")


def is_acl_cache(sides, step, patched):
    """Does stock answer as patched once its cache of privileges is empty? Or is the active
    role one of the account's name? One statement looks for both then, under one key."""
    if step.what != "ask":
        return False
    # Both: it also reads the grants again, in the order of the tables
    for side in sides:
        side.ask("root", "FLUSH PRIVILEGES")
    return sides[0].do(step) == patched or sides[1].ask(
        step.who, "SELECT CURRENT_ROLE() = SUBSTRING_INDEX(CURRENT_USER(), '@', 1)") == [[b"1"]]


def run(sides, steps, known):
    """Return how many answers were compared, and the number of the first step whose
    answers differ, with these, or None."""
    for side in sides:
        side.reset()
    count = 0
    for number, step in enumerate(steps):
        stock, patched = (side.do(step) for side in sides)
        count += stock != NO_SESSION
        if stock == patched:
            continue
        if not is_acl_cache(sides, step, patched):
            return count, (number, stock, patched)
        known["acl-cache-key"] += 1
    return count, None


def report(steps, found, title, args):
    number, stock, patched = found
    answers = [f"  stock   {stock}", f"  patched {patched}"]
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
        path = args.keep / (title.replace(" ", "-") + ".txt")
        path.write_text("\n".join([title, *(f"  {step.who} {step.what} {step.text}"
                                            for step in steps[:number + 1]), *answers, ""]),
                        encoding="utf-8")
    print("\n".join([title, f"  {steps[number]}", *answers]), flush=True)


def compare(sides, setting, args):
    """Return the number of differences that are not known."""
    answers, different, known, number = 0, 0, collections.Counter(), args.first
    wanted = args.statements * (1 if args.setting else SHARES[setting])
    while (number < args.first + args.rounds if args.rounds else answers < wanted):
        steps = Round(args.seed, number).steps
        count, found = run(sides, steps, known)
        answers += count
        if found:
            different += 1
            report(steps, found, f"{setting} seed {args.seed} round {number}", args)
        number += 1
    print(f"{setting}: {number - args.first} rounds, {answers} answers, {different} not as "
          "stock's" + "".join(f", {count} known ({what})" for what, count in known.items()),
          flush=True)
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("trees", type=pathlib.Path, metavar="DIRECTORY",
                        help="with stock and patched, such as out/10.11")
    parser.add_argument("--statements", type=int, default=20000,
                        help="of all settings (default %(default)s)")
    parser.add_argument("--setting", choices=SETTINGS, help="only this one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=1, metavar="N",
                        help="number of the first round (default %(default)s)")
    parser.add_argument("--rounds", type=int, metavar="N",
                        help="instead of --statements, for each setting")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIRECTORY",
                        help="for the steps of each difference")
    args = parser.parse_args()
    different = 0
    with tempfile.TemporaryDirectory(prefix="random-answers-") as directory:
        pathlib.Path(directory, "outside").mkdir()
        for setting in [args.setting] if args.setting else SETTINGS:
            with contextlib.ExitStack() as stack:
                sides = []
                for variant in ("stock", "patched"):
                    server = Server(args.trees.resolve() / variant,
                                    pathlib.Path(directory, f"{setting}-{variant}"),
                                    ["--ignore-db-dirs=ignored", "--debug-no-sync",
                                     *SETTINGS[setting]])
                    side = Side(stack.enter_context(server))
                    stack.callback(side.close)
                    side.connect("root")
                    for statement in ("CREATE DATABASE copied",
                                      "CREATE TABLE copied.t1 (a INT) ENGINE=MyISAM"):
                        side.sessions["root"].query(statement)
                    sides.append(side)
                different += compare(sides, setting, args)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
