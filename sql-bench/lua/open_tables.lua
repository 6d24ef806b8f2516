-- SPDX-License-Identifier: GPL-2.0-only
--
-- SELECT * FROM tN over many small tables: one event is one statement.
-- In order, each thread from its own place, or at random.

sysbench.cmdline.options = {
  tables = {"Number of tables t1..tN", 1000},
  first = {"Table to begin with, when in order", 1},
  random = {"Choose tables at random", false}
}

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
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
  con:disconnect()
end
