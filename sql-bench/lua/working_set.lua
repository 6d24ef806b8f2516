-- SPDX-License-Identifier: GPL-2.0-only
--
-- Read a row from one of the first N tables, at random. At its end each
-- thread prints how many tables its connection opened since its start.

sysbench.cmdline.options = {
  tables = {"Number of tables t1..tN", 500}
}

local function opened_tables()
  local result = con:query("SHOW SESSION STATUS LIKE 'Opened_tables'")
  return tonumber(result:fetch_row()[2])
end

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  opened_before = opened_tables()
end

function event()
  con:query("SELECT * FROM t" ..
            sysbench.rand.uniform(1, sysbench.opt.tables))
end

function thread_done()
  print("opened " .. (opened_tables() - opened_before))
  con:disconnect()
end
