# SPDX-License-Identifier: GPL-2.0-only
"""How long visitors of the farm wait when they come at a given rate."""

from benchlib.scenario import Option, integers

from .farm import Farm
from .pages import AT_ONCE, GENERATOR, AtRates

OPEN_LOOP = (
    "Visitors come by chance (exponential gaps), the same ones for each server. Their "
    "average rate is a given part of the rate that the stock server shows with these "
    "sites when it is warm and its clients are all busy. That rate is measured once "
    "for each engine and cache, and is the same for each server and start. A page "
    "takes from the visitor's arrival to its end, so a stall counts for all who wait. "
    f"At most {AT_ONCE} pages are shown at once.\n\n"
    "- 'warm': before, all clients were busy for as long as is measured.\n"
    "- 'after a restart': the server has shown no page before.")


class FarmRate(AtRates, Farm):
    name = "farm-rate"
    title = "The farm of sites, at a given rate of visitors"
    question = (
        "How long does a visitor wait for a page, from a server with little load to "
        "one with as many visitors as stock can serve?")
    method = (
        "Sites and pages are like those of the farm (the number of sites is named "
        "below). " + OPEN_LOOP)
    caveat = (
        f"{GENERATOR} All files are in the page cache. A start differs from the next "
        "one by more than two pairs of one start do.")
    also_options = ("farm_sites", "farm_engines", "farm_caches",
                    "farm_definitions", "farm_seconds")
    closed_loop = None

    rates = Option("rate", "visitors, in percent of what stock can do; the options of farm "
                   "hold, too", "20,50,80,100", kind=integers)
    rate_states = Option("rate-states", "warm, cold (after a restart), or both",
                         "warm,cold")
