# SPDX-License-Identifier: GPL-2.0-only
"""What the benchmark scenarios share: servers, pairing, statistics, output."""
