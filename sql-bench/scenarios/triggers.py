# SPDX-License-Identifier: GPL-2.0-only
"""What the triggers of tables cost that are only read."""

from benchlib.scenario import OneByOne, need_descriptors
from benchlib.servers import BenchError

DATABASE = "tc_triggers"
MORE, SOME = 45, 5              # TABLEs of one table that are open; a join has 61 at most
LARGE, OF_EACH, IFS = 60, 15, 120
MISSES, ROUNDS = 40, 100        # tables, and how often each is read
CACHE = 2000
ROOM = 10                       # of the cache, for misses

BYTES = "innodb, three triggers: bytes of one more TABLE"
MISS = "myisam, three triggers: us of CPU time of a miss"
ALL_LARGE = f"{LARGE} tables with a trigger of {IFS} IFs, {OF_EACH} TABLEs of each: MiB"


def three_triggers(table):
    return "".join(
        f"CREATE TRIGGER {table}_{event} AFTER {event} ON {table} FOR EACH ROW "
        "BEGIN DECLARE d DATETIME; SET d=NOW(); "
        f"IF {row}.a IS NOT NULL THEN INSERT INTO audit VALUES "
        f"('{table}', CONCAT('{event}', {row}.a), d); END IF; END$$\n"
        for event, row in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")))


def large_trigger(table):
    body = " ".join(f"IF (SELECT COUNT(*) FROM audit WHERE t={number})>{number} "
                    f"THEN SET NEW.k={number}; END IF;" for number in range(IFS))
    return (f"CREATE TRIGGER {table}_1 BEFORE INSERT ON {table} FOR EACH ROW "
            f"BEGIN {body} END$$\n")


def create(table, engine, triggers):
    """SQL for a table, and for its triggers, which a function returns."""
    return (f"CREATE TABLE {table} (a INT PRIMARY KEY, b VARCHAR(20), u DATETIME, "
            f"k INT, KEY (k)) ENGINE={engine};\nDELIMITER $$\n{triggers(table)}DELIMITER ;\n")


def use(table, count):
    """A statement that has so many TABLEs of a table."""
    return ("SELECT 1 FROM " + " JOIN ".join(f"{table} t{number}" for number in range(count))
            + " LIMIT 0;\n")


def memory_between(server, before, after):
    """How Memory_used grows by statements without rows, in one connection."""
    asked = "SHOW GLOBAL STATUS LIKE 'Memory_used';\n"
    rows = server.sql(before + asked + after + asked, DATABASE)
    if len(rows) != 2:
        raise BenchError(f"{len(rows)} rows, not 2: {rows[:3]}")
    return int(rows[1][1]) - int(rows[0][1])


class Triggers(OneByOne):
    name = "triggers"
    question = ("What does one more open TABLE take, and what does a miss cost, if the "
                "table has triggers and the statement only reads?")
    method = (
        "Tables of four columns without rows, one connection. Three triggers write a "
        "row of an audit.\n\n"
        f"- '{BYTES}': Memory_used, when a join uses the table {MORE} times instead of "
        f"{SOME}.\n- '{ALL_LARGE}': the same for large triggers.\n"
        f"- '{MISS}': {MISSES} tables are read in turn with room for {ROOM}.")
    caveat = "A TABLE that a statement has written through keeps its triggers."
    unit = "as named"

    @staticmethod
    def check(options):
        need_descriptors(CACHE)

    @staticmethod
    def server_options(options):
        return [f"--table-open-cache={CACHE}", "--table-open-cache-instances=1"]

    @staticmethod
    def cells(options):
        return [{"label": label} for label in (BYTES, ALL_LARGE, MISS)]

    @staticmethod
    def fill(server, options, progress):
        server.sql("".join((
            f"DROP DATABASE IF EXISTS {DATABASE};\nCREATE DATABASE {DATABASE}; USE {DATABASE};\n"
            "CREATE TABLE audit (t VARCHAR(30), what VARCHAR(50), at DATETIME) "
            "ENGINE=InnoDB;\n", create("three", "innodb", three_triggers),
            *(create(f"miss{number}", "myisam", three_triggers) for number in range(MISSES)),
            *(create(f"large{number}", "innodb", large_trigger) for number in range(LARGE)))))

    @staticmethod
    def measure(server, cell, options):
        if cell["label"] == MISS:
            text = "".join(f"SELECT * FROM miss{number};\n" for number in range(MISSES))
            server.sql(f"SET GLOBAL table_open_cache={ROOM};\n{text}", DATABASE)
            before = server.cpu_seconds()
            server.sql(text * ROUNDS, DATABASE)
            spent = server.cpu_seconds() - before
            server.sql(f"SET GLOBAL table_open_cache={CACHE}")
            return 1e6 * spent / (MISSES * ROUNDS)
        server.sql("FLUSH TABLES")
        if cell["label"] == ALL_LARGE:
            return memory_between(
                server, use("audit", 1),
                "".join(use(f"large{number}", OF_EACH) for number in range(LARGE))) / (1 << 20)
        return memory_between(server, use("three", SOME), use("three", MORE)) / (MORE - SOME)
