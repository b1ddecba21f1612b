#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time a program and look at its record with pandas; needs python3-pandas, and python3-matplotlib for FLAME.png.

    PYTHONPATH=bindings/python HOTFN_LIBRARY=build/release/src/libhotfn.so python3 data.py FLAME.png PROGRAM [ARGUMENT...]
"""
import sys

import hotfn

record = hotfn.run(sys.argv[2:], mode="time", clock="cpu").record

functions = record.to_pandas()
hot = functions.sort_values("self_ns", ascending=False)
print(hot[["name", "calls", "total_ns", "self_ns"]].head(5).to_string(index=False))

edges = record.edges_to_pandas()
print(edges[edges.caller == "main"][["callee", "calls"]].to_string(index=False))

print(record.tree().to_text(min_share=0))
record.plot.flame().figure.savefig(sys.argv[1], bbox_inches="tight")
