# SPDX-License-Identifier: GPL-2.0-only
"""The common part of the benchmark scenarios: servers, pairing, statistics, output."""
