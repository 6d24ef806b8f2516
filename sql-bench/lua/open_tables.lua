-- SPDX-License-Identifier: GPL-2.0-only
--
-- SELECT * FROM tN over many small tables: one event is one statement.
-- In order, each thread from its own place, or at random. At its end each thread
-- prints how many tables its connection opened since its start.

sysbench.cmdline.options = {
  tables = {"Number of tables t1..tN", 1000},
  first = {"Table to begin with, when in order", 1},
  random = {"Choose tables at random", false}
}

local function opened_tables()
  local result = con:query("SHOW SESSION STATUS LIKE 'Opened_tables'")
  return tonumber(result:fetch_row()[2])
end

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  opened_before = opened_tables()
  tables = sysbench.opt.tables
  next_table = sysbench.opt.first - 1 +
               math.floor(sysbench.tid * tables / sysbench.opt.threads)
end

function event()
  local number
  if sysbench.opt.random then
    number = sysbench.rand.uniform(1, tables)
  else
    number = next_table % tables + 1
    next_table = number
  end
  con:query("SELECT * FROM t" .. number)
end

function thread_done()
  print("opened " .. (opened_tables() - opened_before))
  con:disconnect()
end
