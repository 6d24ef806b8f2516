-- SPDX-License-Identifier: GPL-2.0-only
--
-- A sysbench script that keeps account of each transaction whose COMMIT was
-- acknowledged: a line with its number in a file of the thread.  After the
-- test, each of them has to be in the table entries.

sysbench.cmdline.options = {
   run = {"Number of this run; with thread and seq it makes an entry's key", 0},
   account = {"Beginning of the names of the files", "account"}
}

function thread_init()
   con = sysbench.sql.driver():connect()
   file = assert(io.open(sysbench.opt.account .. "." .. sysbench.tid, "a"))
   seq = 0
end

function event()
   seq = seq + 1
   con:query("BEGIN")
   con:query(string.format("INSERT INTO entries VALUES (%d, %d, %d, '%s')",
                           sysbench.opt.run, sysbench.tid, seq,
                           string.rep("x", seq % 300)))
   con:query(string.format(
                "INSERT INTO counters VALUES (%d, %d, 1) " ..
                "ON DUPLICATE KEY UPDATE n = n + 1",
                sysbench.opt.run, sysbench.tid))
   con:query("COMMIT")
   file:write(sysbench.opt.run, " ", sysbench.tid, " ", seq, "\n")
   file:flush()
end

function thread_done()
   file:close()
   con:disconnect()
end
