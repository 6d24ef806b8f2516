# SPDX-License-Identifier: GPL-2.0-only
"""The experiments, one a file; each file reads like a description of one.

A scenario is a class with

  name, title
  question, method, caveat   for the report; caveat: what is not shown
  unit, higher_is_better
  pairs                 of a full run
  needs_servers         True: the servers run one after the other on one data
                        directory. False: it starts them itself, in
                        measure_pair(trees, options, part, order) for each of
                        its parts(options), behind
                        prepare_program(trees, options, progress), and the
                        rest is not used; what it measures besides under
                        another name is shown in a column of its own. order is
                        the one of turns; a value may be a dictionary, as that
                        of measure(). benchlib.scenario.OwnServers and
                        hits.TakingTurns have most of that
  together              so many cells in turn are measured as one
  programs              what must be installed
  disk(options)         bytes that its tables take
  add_arguments(parser) its own options
  check(options)        raise BenchError where the machine cannot run it
  server_options(options)
  cells(options)        what is measured: dictionaries with a "label"
  prepare(server, options, progress)
  warm_up(server, options)   after each start of a server
  measure(server, cell, options)   a number in the scenario's unit, or a
                        dictionary with a "value" and what else to keep
  remarks(results, options)        sentences with what follows from the numbers
"""

from .catalog import Catalog
from .cold_open import ColdOpen
from .ddl import Ddl
from .farm import Farm
from .file_fragmentation import FileFragmentation
from .give_back import GiveBack
from .hits import Hits
from .information_schema import InformationSchema
from .innodb_open_files import InnodbOpenFiles
from .instructions import Instructions
from .memory import Memory
from .open_tables import OpenTables
from .query_cache import QueryCache
from .sysbench_oltp import Sysbench
from .table_cache import TableCache
from .triggers import Triggers
from .triggers_written import TriggersWritten
from .warm_restart import WarmRestart
from .wordpress import Wordpress
from .working_set import WorkingSet

ALL = {scenario.name: scenario
       for scenario in (OpenTables, TableCache, Sysbench, InnodbOpenFiles,
                        FileFragmentation, InformationSchema, WorkingSet, QueryCache,
                        ColdOpen, WarmRestart, Farm, Wordpress, Memory,
                        Triggers, TriggersWritten, GiveBack, Catalog, Hits,
                        Instructions, Ddl)}
