# SPDX-License-Identifier: GPL-2.0-only
"""The experiments, one a file; each file reads like a description of one. benchlib.scenario
says what a scenario has."""

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
