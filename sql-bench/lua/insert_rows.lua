-- SPDX-License-Identifier: GPL-2.0-only
--
-- Insert a row into one of N tables, at random: one event is one row.

sysbench.cmdline.options = {
  tables = {"Number of tables t1..tN", 1000},
  bytes = {"Length of the row's string; 0: the table has none", 0}
}

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  values = sysbench.opt.bytes == 0 and "(1)"
           or "(1, '" .. string.rep("x", sysbench.opt.bytes) .. "')"
end

function event()
  con:query("INSERT INTO t" .. sysbench.rand.uniform(1, sysbench.opt.tables) ..
            " VALUES " .. values)
end

function thread_done()
  con:disconnect()
end
