# SPDX-License-Identifier: GPL-2.0-only
"""The bases of all scenarios, and what several of them need."""

import argparse
import resource
import shutil

from .servers import NOT_DURABLE, BenchError, Server, make_once

# Descriptors that mariadbd wants for other things than tables: connections, redo logs, pipes
RESERVED_DESCRIPTORS = 400
# The name of a second measurement of the stock server in each turn
CONTROL = "stock again"


class Option:
    """An option of a scenario. As an attribute of its class it is called like a function
    for its value: cls.tables(options)."""

    def __init__(self, name, text, full, quick=None, kind=None):
        """full: the default; quick: that of --quick, if it is another one.
        kind: a function that makes the value of a text; that of numbers is positive()"""
        self.name, self.text, self.full, self.quick = name, text, full, quick
        self.kind = kind or (positive if isinstance(full, int) else str)
        self.is_list = self.kind not in (positive, float, str)  # read by __call__()

    def add_to(self, parser):
        quick = "" if self.quick is None else f"; quick {self.quick}"
        parser.add_argument(
            f"--{self.name}", help=f"{self.text} (default {self.full}{quick})",
            default=self.full if self.quick is None else None,
            metavar={positive: "N", integers: "N,N..."}.get(self.kind),
            type=str if self.is_list else self.kind)

    def __call__(self, options):
        found = getattr(options, self.name.replace("-", "_"))
        if found is None:
            found = self.full if self.quick is None or not options.quick else self.quick
        return self.kind(found) if self.is_list else found


class Scenario:
    """A scenario has a name, a question and a method, for the report, and

      cells(options)              what is measured: dictionaries with a "label"
      measure_pair(trees, options, part, order)   measures a part of the cells, and yields
                                  (label, variant, a number in the scenario's unit, or a
                                  dictionary with a "value" and what else to keep)

    OneByOne and OwnServers have these but for what differs between experiments.
    """

    unit = ""                   # "as named": that of each cell is in its label
    asks_for_control = False    # whether stock is measured twice with --control only
    pairs = 5                   # of a full run
    # Whose turn it is to be measured, one after the other; each is first, second
    # and so on as often as the others
    turns = ("stock", "patched")
    programs = ()               # of packages of the same names, which it needs
    caveat = ""                 # what the numbers do not show

    @classmethod
    def add_arguments(cls, parser):
        """Its own options: attributes of the class."""
        for option in vars(cls).values():
            if isinstance(option, Option):
                option.add_to(parser)

    @classmethod
    def defaults(cls):
        """{name: default} of its own options"""
        parser = argparse.ArgumentParser(add_help=False)
        cls.add_arguments(parser)
        return vars(parser.parse_args([]))

    @staticmethod
    def check(options):
        """Raise BenchError where the machine cannot run it."""

    @staticmethod
    def disk(options):
        """Bytes that its tables take in the data directories."""
        return 0

    @staticmethod
    def besides(options):
        """What is measured after each pair, in a column of its own."""
        return (CONTROL,)

    @staticmethod
    def parts(options):
        """What measure_pair() is called for, one by one."""
        return [None]

    @staticmethod
    def prepare(trees, options, progress):
        """Once before the first measurement."""

    @staticmethod
    def remarks(results, options):
        """Sentences with what follows from the numbers"""
        return []


class OneByOne(Scenario):
    """A scenario whose servers run one after the other on one data directory. It has

      server_options(options)
      fill(server, options, progress)     makes the data that is not there yet
      measure(server, cell, options)      a value of a cell, as measure_pair() yields it
    """

    asks_for_control = True

    @staticmethod
    def besides(options):
        return (CONTROL,) * options.control

    @staticmethod
    def fill(server, options, progress):
        """Needs no data."""

    @staticmethod
    def warm_up(server, options):
        """Once after each start of a server, before it is measured."""

    @classmethod
    def server(cls, trees, variant, options):
        return Server(tree_of(trees, variant), options.data / "data",
                      cls.server_options(options), variant)

    @classmethod
    def prepare(cls, trees, options, progress):
        server = cls.server(trees, "stock", options)
        # Only this does without durability
        server.start(*NOT_DURABLE)
        cls.fill(server, options, progress)
        server.stop()

    @classmethod
    def measure_pair(cls, trees, options, part, order):
        for variant in (*order, *cls.besides(options)):
            with cls.server(trees, variant, options) as server:
                cls.warm_up(server, options)
                for cell in cls.cells(options):
                    yield cell["label"], variant, cls.measure(server, cell, options)


class OwnServers(Scenario):
    """A scenario that starts a server for each part of its cells. It has

      labels(options)                         {part: labels behind it}
      server(trees, variant, options, part)   a server that has not been started
      fill(server, options, part, progress)   makes the data, once; None: there is none
      measure_server(server, options, part)   {label behind the part: value}
    """

    # Whether each variant has a copy of the data. Then server() takes the name of a
    # directory, too, where they are made
    copied = False
    fill = None

    @classmethod
    def parts(cls, options):
        return list(cls.labels(options))

    @classmethod
    def cells(cls, options):
        return [{"label": (part or "") + label}
                for part, labels in cls.labels(options).items() for label in labels]

    @classmethod
    def prepare(cls, trees, options, progress):
        for part in cls.parts(options) if cls.fill else ():
            if cls.copied:
                made = cls.server(trees, "stock", options, part, "data")
                made.options.append("--innodb-stats-auto-recalc=0")
                copies = [cls.server(trees, variant, options, part)
                          for variant in ("stock", "patched")]
            else:
                made, copies = cls.server(trees, "stock", options, part), ()
            make_once(made, lambda server: cls.fill(server, options, part, progress),
                      copies, progress)

    @classmethod
    def measure_pair(cls, trees, options, part, order):
        for variant in (*order, *cls.besides(options)):
            server = cls.server(trees, variant, options, part)
            for label, value in cls.measure_server(server, options, part).items():
                yield (part or "") + label, variant, value


def tree_of(trees, variant):
    """The build that a variant runs."""
    return trees / ("patched" if variant.startswith("patched") else "stock")


def plural(count, word):
    return f"{count} {word}{'s' * (count > 1)}"


def positive(text):
    """The type of an argument that is a number of something."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def integers(text):
    """An argument like 64,1024 as a list of numbers."""
    try:
        values = [int(word) for word in text.split(",")]
    except ValueError:
        raise BenchError(f"'{text}' is not a list of numbers like 64,1024") from None
    if any(value < 1 for value in values):
        raise BenchError(f"'{text}': numbers must be at least 1")
    return values


def words(*known):
    """A function that reads an argument like myisam,aria as a list of known words."""
    def read(text):
        found = text.lower().split(",")
        for word in found:
            if word not in known:
                raise BenchError(f"'{word}' is not one of {', '.join(known)}")
        return found
    return read


engines = words("myisam", "aria", "innodb")


def available_memory():
    """Bytes that programs may take before the machine swaps."""
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file
                    if line.startswith("MemAvailable"))


def descriptor_limit():
    """How many file descriptors a server that is started here may have."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 1 << 30 if limit == resource.RLIM_INFINITY else limit


def need_descriptors(count, each=2):
    """Fail unless so many MyISAM or Aria tables can be open, with two files each."""
    limit = descriptor_limit()
    need = each * count + RESERVED_DESCRIPTORS
    if need > limit:
        raise BenchError(
            f"{need} file descriptors are needed, this shell may have {limit}; raise 'ulimit "
            f"-Hn', or ask for {(limit - RESERVED_DESCRIPTORS) // each} instead of {count}")


def table_bytes(names, count):
    """What count tables of each engine take."""
    return count * sum(TABLE_BYTES[name] for name in names)


def need_disk(options, size):
    """Fail unless the data directories may grow by that many bytes."""
    place = options.data
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < size:
        raise BenchError(
            f"{size / 1024 ** 3:.1f} GiB of disk are needed, {free / 1024 ** 3:.1f} are free "
            f"below {place}; make room, or ask for fewer tables and rows")


# Of a table with a row or two, all of its files
TABLE_BYTES = {"myisam": 16 << 10, "aria": 40 << 10, "innodb": 112 << 10}
INNODB_FILES = 1000             # that InnoDB keeps open


def innodb_options(tables):
    """For a server with so many one-column InnoDB tables: room for a table's
    first page and its rows in InnoDB's dictionary.  So InnoDB needs no files,
    and leaves the descriptors to the others."""
    return [f"--innodb-buffer-pool-size={128 + tables * 3 // 64}M",
            f"--innodb-open-files={INNODB_FILES}"]
