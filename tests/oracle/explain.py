# SPDX-License-Identifier: MIT
"""Classifies each function's pair of counts: equal, a known difference, or unexplained.

A class is derived from callgrind and binutils, never from hotfn's report alone: a 'fragment' that a call
instruction reaches is unexplained, and so is an 'excluded' function that is not start-up code.
"""
import dataclasses
import re

EQUAL = "equal"
NEVER = "never entered"
OWN_SKIPPED = "jump to own entry, not counted by hotfn"
OWN_COUNTED = "jump to own entry, counted and flagged"
BEFORE = "code before the agent's constructor"
LAYOUT = "depends on layout or time"
NATIVE = "other under valgrind, gdb's count is equal"
FRAGMENT = "fragment (by jumps, landing pad, frame or name)"
ZERO_SIZE = "zero-size or start-up symbol"
PLT = "PLT"
RESOLVER = "ifunc resolver"
REFUSED = "refused, reason in the report"
UNEXPLAINED = "UNEXPLAINED"
ORDER = [EQUAL, NEVER, OWN_SKIPPED, OWN_COUNTED, BEFORE, LAYOUT, NATIVE, FRAGMENT, PLT, ZERO_SIZE,
         RESOLVER, REFUSED, UNEXPLAINED]
QUIET = {EQUAL, NEVER, PLT}
START_UP = {"_start", "_init", "_fini", "deregister_tm_clones", "register_tm_clones",
            "__do_global_dtors_aux", "frame_dummy", "_dl_relocate_static_pie"}
# A basic block in its own section (clang -fbasic-block-sections=all), which jump tables may target.
BLOCK = re.compile(r".+\.__part\.[0-9]+")


@dataclasses.dataclass
class Observed:
    """Callgrind's results for one function."""
    symbol: object                    # elf_tables.Symbol
    before: int                       # entries before the agent's constructor
    entries: list                     # entries after it, one number a layout
    native: list = dataclasses.field(default_factory=list)   # by gdb's breakpoints, if counted
    called: int = 0                   # through calls= lines (calls and jumps)
    own_jumps: int = 0                # of these, by a direct jump inside the function itself
    only_direct_jumps: bool = True    # no call instruction and no indirect jump targets it
    landing_pad: bool = False         # the unwinder enters here after a throw
    in_frame: bool = False            # its unwind data begins with a frame
    by_code: bool = False             # only jumps of other functions refer to it (entries.py)
    section: str = ""                 # .text, .plt, ...

    def add_origins(self, path, origins, decoded):
        """Classify its callers; decoded has the instructions at their addresses."""
        for source_object, source, times in origins:
            instruction = decoded.get(source) if source_object == path else None
            jumped = instruction is not None and instruction.is_jump
            inside = 0 <= source - self.symbol.address < self.symbol.size
            self.called += times
            direct = jumped and instruction.target == self.symbol.address
            if direct and inside:       # an indirect one is a tail call of itself
                self.own_jumps += times
            if not direct:
                self.only_direct_jumps = False

    @property
    def varies(self):
        return len(set(self.entries)) > 1 or len(set(self.native)) > 1

    def describe(self, function):
        entries = "/".join(str(count) for count in self.entries)
        entries += "".join(f" gdb {count}" for count in self.native)
        hotfn = "not listed" if function is None else f"{function['state']} {function['calls']}"
        reason = (function or {}).get("reason") or ""
        return (f"{self.symbol.name} at 0x{self.symbol.address:x}: callgrind {entries}"
                f" (calls= {self.called}, own jumps {self.own_jumps}, before {self.before}),"
                f" hotfn {hotfn} {reason}")


def classify(observed, function):
    if function is not None and function["state"] == "hooked":
        return classify_hooked(observed, function["calls"], function.get("entry_is_loop"))
    if observed.section.startswith((".plt", ".iplt")):
        return PLT
    if is_start_up(observed.symbol):
        return ZERO_SIZE
    if "i" in observed.symbol.letters:
        return RESOLVER
    if function is None:
        return UNEXPLAINED
    if function["calls"] is not None:
        return UNEXPLAINED            # a function that is not counted must have null
    if function["state"] == "refused":
        return REFUSED if function["reason"] else UNEXPLAINED
    if function["state"] == "fragment":
        return FRAGMENT if is_fragment(observed) else UNEXPLAINED
    return UNEXPLAINED


def classify_hooked(observed, calls, entry_is_loop):
    expected = observed.entries[0]
    if calls == expected and not observed.own_jumps:
        return EQUAL if expected else NEVER
    if observed.own_jumps and calls == expected - observed.own_jumps:
        return OWN_SKIPPED
    if observed.own_jumps and calls == expected and entry_is_loop:
        return OWN_COUNTED
    if observed.before and calls == expected + observed.before:
        return BEFORE
    if calls in observed.native and not observed.own_jumps:
        return NATIVE
    if observed.varies and is_near(observed.entries + observed.native, calls):
        return LAYOUT
    return UNEXPLAINED


def is_near(entries, calls):
    """Is the count within the layouts' range, widened by twice its width on each side?"""
    low, high = min(entries), max(entries)
    margin = 2 * (high - low)
    return low - margin <= calls <= high + margin and (calls > 0 or low == 0)


def is_start_up(symbol):
    return symbol.size == 0 or bool(START_UP & set(symbol.names))


def is_fragment(observed):
    by_jumps = observed.only_direct_jumps and observed.called >= observed.entries[0]
    by_name = observed.symbol.names and all(map(BLOCK.fullmatch, observed.symbol.names))
    return by_jumps or observed.by_code or observed.landing_pad or observed.in_frame or by_name
