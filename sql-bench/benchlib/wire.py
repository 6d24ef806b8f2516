# SPDX-License-Identifier: GPL-2.0-only
"""
The part of the MariaDB client/server protocol that a benchmark needs, over a Unix socket, in
plain Python: log in through the socket or without a password, send a text query, read the
answer.  There is no connector in Python's standard library, and the command-line client buffers
what a benchmark wants to time.
"""

import os
import pwd
import socket
import struct

# Commands
QUERY, PREPARE, EXECUTE = b"\3", b"\x16", b"\x17"
LONG = b"\3\0"                   # the type of a parameter


class Error(Exception):
    """What the server answered instead of a result"""

    def __init__(self, code, text):
        super().__init__("%d: %s" % (code, text))
        self.code = code


# LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, MULTI_RESULTS (for a
# procedure that executes statements), PLUGIN_AUTH
CAPABILITIES = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x20000 | 0x80000


def packet(text, command=QUERY):
    """What a client sends for a statement, or for another command."""
    return struct.pack("<I", len(text.encode()) + 1) + command + text.encode()


def execution(statement, *numbers):
    """What a client sends to execute a prepared statement with integers."""
    body = (EXECUTE + struct.pack("<IBI", statement, 0, 1)
            + bytes((len(numbers) + 7) // 8) + b"\1" + LONG * len(numbers)
            + struct.pack(f"<{len(numbers)}i", *numbers))
    return struct.pack("<I", len(body)) + body


class Connection:
    """One session. query() returns the rows as lists of bytes or None."""

    def __init__(self, path, database=None, user=None):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.buffer = b""
        self.at = 0                     # how much of it has been read
        self.sequence = 0
        self._read()
        self._send(struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 45) +
                   (user or pwd.getpwuid(os.geteuid()).pw_name).encode() +
                   b"\0\0mysql_native_password\0")
        if self._read()[0] == 0xfe:
            self._send(b"")
            self._read()
        if database:
            self.query("USE " + database)

    def close(self):
        self.socket.close()

    def _send(self, payload):
        self.socket.sendall(struct.pack("<I", len(payload))[:3] +
                            bytes((self.sequence & 255,)) + payload)

    def _fill(self, size):
        """Have that many bytes that have not been read."""
        while len(self.buffer) - self.at < size:
            more = self.socket.recv(1 << 16)
            if not more:
                raise ConnectionError("server has gone away")
            self.buffer = self.buffer[self.at:] + more
            self.at = 0

    def _read(self):
        """The next packet, unless it is an error. No row begins with that byte."""
        self._fill(4)
        size = int.from_bytes(self.buffer[self.at:self.at + 3], "little")
        self.sequence = self.buffer[self.at + 3] + 1
        self._fill(4 + size)
        self.at += 4 + size
        payload = self.buffer[self.at - size:self.at]
        if payload[:1] == b"\xff":
            raise Error(struct.unpack_from("<H", payload, 1)[0],
                        payload[9:].decode(errors="replace"))
        return payload

    @staticmethod
    def _length(data, pos):
        first = data[pos]
        if first < 251:
            return first, pos + 1
        if first == 251:
            return None, pos + 1
        size = {252: 2, 253: 3, 254: 8}[first]
        return (int.from_bytes(data[pos + 1:pos + 1 + size], "little"),
                pos + 1 + size)

    def send(self, *statements):
        """Send them without waiting for the answers, one of each."""
        self.send_packets(*map(packet, statements))

    def send_packets(self, *packets):
        self.sequence = 0
        self.socket.sendall(b"".join(packets))

    def query(self, sql):
        self.send(sql)
        return self.result()

    def text(self, sql):
        """The rows as lists of str or None."""
        return [[field if field is None else field.decode(errors="replace")
                 for field in row] for row in self.query(sql)]

    def result(self):
        head = self._read()
        if head[0] == 0:
            return []
        for _ in range(self._length(head, 0)[0]):
            self._read()
        self._read()
        rows = []
        while True:
            data = self._read()
            if data[0] == 0xfe and len(data) < 9:
                return rows
            row, pos = [], 0
            while pos < len(data):
                size, pos = self._length(data, pos)
                if size is None:
                    row.append(None)
                else:
                    row.append(data[pos:pos + size])
                    pos += size
            rows.append(row)

    def prepare(self, sql):
        """Return the number of a prepared statement."""
        self.send_packets(packet(sql, PREPARE))
        statement, columns, parameters = struct.unpack_from("<IHH", self._read(), 1)
        for definitions in (parameters, columns):
            for _ in range(definitions + (definitions > 0)):
                self._read()
        return statement

    def skip_result(self):
        """Read a result without looking into it: for speed."""
        if self._read()[0] == 0:
            return
        ends = 0
        while ends < 2:
            data = self._read()
            ends += data[0] == 0xfe and len(data) < 9

    def discard(self, *statements):
        """Send them all, and read the answers without looking into them."""
        self.send(*statements)
        for _ in statements:
            self.skip_result()

    def status(self, like):
        return {name.decode(): int(value) for name, value in
                self.query("SHOW GLOBAL STATUS LIKE '%s'" % like)}
