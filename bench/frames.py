# SPDX-License-Identifier: MIT
"""Debian's game servers that count their own calls: what counting and the ends of frames add to the processor time of
their frames, and the frame in which a slow function was planted, found by the name of the function."""
import os
import re
import shutil
import socket
import subprocess
import tempfile

import figures
import tools

ROUNDS = 15
FRAMES = 300
PLANTED = 30                    # the frame that packs data, in the scripts; before the measured ones
PLANTED_FUNCTION = "deflate"    # of zlib
VARIANTS = ("counted", "frames", "spikes")


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def godot_command(folder, _frames):
    shutil.copy(tools.HERE / "work/frames.gd", folder)
    return [tools.need("godot3-server"), "--path", folder, "-s", "frames.gd"]


def minetest_command(folder, frames):
    program = "/usr/lib/minetest/minetestserver"
    if not os.path.exists(program):
        raise tools.Missing(f"no {program} on this system: install minetest-server")
    shutil.copytree(tools.HERE / "work/minetest_frames", os.path.join(folder, ".minetest/games/frames"))
    world = os.path.join(folder, "map")
    os.mkdir(world)
    with open(os.path.join(world, "world.mt"), "w", encoding="ascii") as out:
        out.write("gameid = frames\nbackend = dummy\nplayer_backend = dummy\nauth_backend = files\n")
    config = os.path.join(folder, "minetest.conf")
    with open(config, "w", encoding="ascii") as out:
        out.write(f"dedicated_server_step = 0.002\nframes_count = {frames}\n")
    return [program, "--config", config, "--world", world, "--gameid", "frames", "--port", str(free_port())]


GAMES = {"godot3-server": godot_command, "minetest-server": minetest_command}


def run_once(make, mode, frames):
    """({CPU and wall ns of the frames, hooked functions, ns of the start}, spikes, what the script printed)"""
    folder = tempfile.mkdtemp(dir=tools.WORK)
    out, cache = os.path.join(folder, "out"), tools.WORK / "frames-cache"
    cache.mkdir(exist_ok=True)
    source = tools.HERE / "frames_of.c"
    library = tools.compile_c(tools.WORK / "frames_of.so", [source], flags=["-shared", "-fPIC", "-ldl"])
    env = {**os.environ, "HOME": folder, "LD_PRELOAD": str(library), "HOTFN_LIBRARY": str(tools.BUILD / "src/libhotfn.so"),
           "FRAMES_MODE": mode, "FRAMES_COUNT": str(frames), "FRAMES_OUT": out, "FRAMES_CACHE": str(cache),
           "FRAMES_PLANTED": PLANTED_FUNCTION}
    try:
        command = make(folder, frames)
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise tools.failure(command, done)
        with open(out, encoding="ascii") as lines:
            found = [line.split() for line in lines]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    measured = dict(zip(("cpu", "wall", "hooked", "start"), map(int, found[-1][1:])))
    return measured, [list(map(int, line[1:])) for line in found[:-1]], re.findall(r"the sum is \d+", done.stdout)


def check_output(game, mode, printed, wanted):
    if printed != wanted or not printed:
        raise tools.Missing(f"{mode}: {game} printed {printed}, but {wanted} when it was not counted")


def measure(game, make, rounds, frames):
    """({variant: ratios}, {variant: measured}, the spikes of each run that searched them)"""
    ratios, every, spikes = {name: [] for name in VARIANTS}, {name: [] for name in ("bare", *VARIANTS)}, []
    run_once(make, "counted", frames)       # stores the scan
    for number in range(rounds):
        order = ("bare", *VARIANTS) if number % 2 else ("bare", *VARIANTS)[::-1]
        found = {mode: run_once(make, mode, frames) for mode in order}
        for mode, (measured, slow, printed) in found.items():
            check_output(game, mode, printed, found["bare"][2])
            every[mode].append(measured)
            if mode != "bare":
                ratios[mode].append(measured["cpu"] / found["bare"][0]["cpu"])
        spikes.append(found["spikes"][1])
    return ratios, every, spikes


def game_rows(report, game, make, rounds, frames):
    ratios, every, spikes = measure(game, make, rounds, frames)
    shortest = {mode: min(one["cpu"] for one in runs) for mode, runs in every.items()}
    for mode in VARIANTS:
        last = every[mode][-1]
        planted = ""
        if mode == "spikes":
            hits = sum([spike[0] for spike in slow] == [PLANTED] for slow in spikes)
            planted = f"frame {PLANTED} in {hits} of {len(spikes)}"
            report.add(f"frames/{game}/planted", "share of the runs that found the planted frame and no other",
                       [hits / len(spikes)])
        report.add(f"frames/{game}/{mode}", "of the bare processor time", ratios[mode], hooked=last["hooked"])
        added = (shortest[mode] - shortest["bare"]) / frames / 1000
        yield [game, mode, figures.spread(ratios[mode]), f"{shortest[mode] / shortest['bare']:.2f}",
               f"{shortest['bare'] / frames / 1000:.0f}", f"{added:+.0f}", f"{last['hooked']:,}",
               f"{min(one['start'] for one in every[mode]) / 1e6:.0f}", planted, len(ratios[mode])]


def run(report, options):
    tools.WORK.mkdir(parents=True, exist_ok=True)
    rounds, frames = (2, 160) if options.quick else (ROUNDS, FRAMES)
    report.heading("Game servers that count themselves: the processor time of their frames over that of bare ones",
                   f"Min, median, upper quartile of {rounds} interleaved rounds of {frames} frames; each run printed the "
                   "same result as the bare one.",
                   "counted: all functions of the program and of zlib.  frames: each frame is ended, with its 20 hot "
                   "functions.",
                   f"spikes: all functions are listed, and frames of more than 3 medians that called {PLANTED_FUNCTION} are "
                   "reported.",
                   "shortest: the shortest run over the shortest bare run.  start: of the session, with a stored scan.")
    rows = []
    for game, make in GAMES.items():
        try:
            rows += game_rows(report, game, make, rounds, frames)
        except tools.Missing as missing:
            rows.append([game, "", report.note_missing(game, missing), "", "", "", "", "", "", 0])
    report.table(["", "", "ratio", "shortest", "bare us", "added us", "functions", "start ms", "planted deflate found",
                  "rounds"], rows)
