-- SPDX-License-Identifier: GPL-2.0-only
--
-- Insert a row into one of N tables, at random: one event is one row.  All tables
-- alike, or nine tenths of the rows into the first tenth of the tables.

sysbench.cmdline.options = {
  tables = {"Number of tables t1..tN", 1000},
  skew = {"Nine tenths into a tenth of the tables", false},
  bytes = {"Length of the row's string; 0: the table has none", 0}
}

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  values = sysbench.opt.bytes == 0 and "(1)"
           or "(1, '" .. string.rep("x", sysbench.opt.bytes) .. "')"
end

function event()
  local first, last = 1, sysbench.opt.tables
  if sysbench.opt.skew then
    local tenth = math.floor(last / 10)
    if sysbench.rand.uniform(1, 10) > 1 then
      last = tenth
    else
      first = tenth + 1
    end
  end
  con:query("INSERT INTO t" .. sysbench.rand.uniform(first, last) ..
            " VALUES " .. values)
end

function thread_done()
  con:disconnect()
end
