#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Test the HTML report in a headless Chromium: sorting, searching, the view of a function, the flame
graph, the call tree and 50,000 functions; the console must have no error or warning.

    browser_test.py HOTFN PROGRAM [FOLDER]    (export_timed; screenshots go to FOLDER)
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import browser

HOTFN, STORY = sys.argv[1:3]
PAGE = pathlib.Path(__file__).resolve().parents[3] / "src/exporters/html/common.js"
SHOTS = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None


def page(folder, *story):
    record, out = folder / f"{story[0]}.hfr", folder / f"{story[0]}.html"
    subprocess.run([STORY, story[0], record, *story[1:]], check=True, timeout=120)
    subprocess.run([HOTFN, "export", "-F", "html", "-o", out, record], check=True, timeout=120)
    return out


def names(b):
    return b.run("[...document.querySelectorAll('#table .row .name')].map(e => e.textContent)")


def click(b, selector):
    b.run(f"document.querySelector({selector!r}).click()")


def wait_for(look, wanted):
    """Wait until wanted(look()): the page updates after a timer or after scrolling."""
    end = time.monotonic() + 60
    while not wanted(look()) and time.monotonic() < end:
        time.sleep(0.05)
    assert wanted(look()), look()


def search(b, text, found):
    b.run(f"(() => {{ const s = document.getElementById('search'); s.value = {text!r};"
          "s.dispatchEvent(new Event('input')); })()")
    wait_for(lambda: names(b), lambda shown: shown == found)


def choose(b, selector, value):
    b.run(f"(() => {{ const s = document.getElementById({selector!r}); s.value = {value!r};"
          "s.dispatchEvent(new Event('change')); })()")


def shoot(b, name):
    if SHOTS:
        b.screenshot(SHOTS / f"{name}.png")


def check_table(b):
    assert names(b) == ["gamma", "alpha", "beta::run()"], names(b)
    click(b, "#table [data-key=calls]")
    assert names(b) == ["gamma", "beta::run()", "alpha"], names(b)
    click(b, "#table [data-key=calls]")
    assert names(b) == ["alpha", "beta::run()", "gamma"], names(b)
    click(b, "#table [data-key=allocated]")
    assert names(b) == ["gamma", "beta::run()", "alpha"], names(b)
    click(b, "#table [data-key=name]")
    assert names(b) == ["alpha", "beta::run()", "gamma"], names(b)
    search(b, "RUN game", ["beta::run()"])
    search(b, "no such thing", [])
    search(b, "", ["alpha", "beta::run()", "gamma"])
    b.run("document.getElementById('called').click()")
    assert len(names(b)) == 5
    b.run("document.getElementById('called').click()")


def check_detail(b):
    b.run("[...document.querySelectorAll('#table .row')].find(r => "
          "r.textContent.startsWith('gamma')).click()")
    detail = b.run("document.getElementById('detail').innerText")
    for words in ("gamma", "libgamma.so+0x2000", "133", "5.058 ms", "(outside)", "beta::run()"):
        assert words in detail, (words, detail)
    assert b.run("document.querySelectorAll('#detail svg rect').length") > 5
    b.run("[...document.querySelectorAll('#detail .link')].find(r => "
          "r.textContent.startsWith('alpha')).click()")
    assert "142.3" in b.run("document.getElementById('detail').innerText")


def box_of(b, name, depth=None):
    """Where the box of a function is on the screen."""
    return b.run("(() => { const r = document.getElementById('flamecanvas').getBoundingClientRect(); "
                 f"const box = flame.boxes.find(b => labelOf(b.node).startsWith({name!r}) && "
                 f"({'true' if depth is None else f'b.depth === {depth}'}));"
                 "return box && {x: r.left + box.x + box.w / 2, y: r.top + box.depth * 20 + 10}; })()")


def point(b, at, click=False):
    b.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
    for kind in ("mousePressed", "mouseReleased") if click else ():
        b.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)
    return b.run("document.getElementById('tip').innerText")


def stacks(b):
    """Each path of the flame graph, with its width in percent."""
    return b.run("""(() => { const found = {}, todo = [[flame.root, ""]]; while (todo.length) { const [n, path] = todo.pop();
        for (const kid of kidsOf(n)) { const at = (path && path + ";") + nameOf(kid.f);
            found[at] = (found[at] || 0) + Math.round(1000 * kid.total / flame.root.total) / 10; todo.push([kid, at]); } }
        return found; })()""")


def mark(b, text):
    b.run(f"(() => {{ const s = document.getElementById('flamesearch'); s.value = {text!r};"
          "s.dispatchEvent(new Event('input')); })()")
    return b.run("document.getElementById('flamefound').textContent")


def check_flame(b):
    click(b, "#tab-flame")
    drawn = "document.getElementById('flamecanvas').toDataURL()"
    whole = b.run(drawn)
    assert len(whole) > 3000, len(whole)
    tip = point(b, box_of(b, "all", 0))
    assert tip.startswith("all (") and "everything" in tip, tip
    right = box_of(b, "alpha", 1)
    assert point(b, right, click=True).startswith("alpha")
    assert b.run(drawn) != whole
    point(b, box_of(b, "all", 0), click=True)    # the root zooms out
    assert b.run(drawn) == whole
    click(b, "#flamereset")
    choose(b, "flameby", "bytes")
    assert b.run(drawn) != whole
    assert " kB (" in point(b, right)
    choose(b, "flameby", "time")
    assert b.run(drawn) == whole
    check_matches(b)
    check_recursion(b)
    check_callers(b)
    assert b.run(drawn) == whole


def check_matches(b):
    legend = b.run("document.getElementById('flamelegend').innerText")
    assert "libgamma.so" in legend and "game" in legend and "matches" not in legend, legend
    shares = stacks(b)
    gammas = sum(share for path, share in shares.items() if path.endswith("gamma"))
    found = mark(b, "gamma")
    assert abs(float(found.split("%")[0]) - gammas) < 0.3, (found, gammas)
    assert "matches" in b.run("document.getElementById('flamelegend').innerText")
    found = mark(b, "a")    # all functions match; a match inside a match counts once
    assert found.startswith("100.0% of all"), found
    assert mark(b, "nothing").startswith("0.0%")
    mark(b, "")


def check_recursion(b):
    shares = stacks(b)
    assert any(path.count("beta::run()") > 1 for path in shares), shares
    click(b, "#flamefold")
    folded = stacks(b)
    assert not any(path.count("beta::run()") > 1 for path in folded), folded
    assert folded["alpha"] == shares["alpha"]
    assert folded["alpha;beta::run()"] == shares["alpha;beta::run()"], (folded, shares)
    inner = sum(share for path, share in shares.items() if "beta::run();gamma" in path)
    assert abs(folded["alpha;beta::run();gamma"] - inner) < 0.3, (folded, shares)
    click(b, "#flamefold")


def check_callers(b):
    selfs = b.run("Object.fromEntries(F.name.map((n, f) => [n, F.self[f]]))")
    choose(b, "flameway", "callers")
    found = stacks(b)
    assert {"gamma", "gamma;alpha", "gamma;beta::run();alpha", "beta::run();alpha"} <= set(found), found
    times = b.run("Object.fromEntries(kidsOf(flame.root).map(n => [nameOf(n.f), n.total]))")
    for name in ("alpha", "gamma"):
        assert abs(times[name] - selfs[name]) < 0.02 * selfs[name], (name, times, selfs)
    assert "in calls from here" in point(b, box_of(b, "gamma", 1))
    b.run("pick(F.name.indexOf('beta::run()'))")
    b.run("[...document.querySelectorAll('#detail button')].find(e => e.textContent.startsWith('callers')).click()")
    found = stacks(b)
    assert found["beta::run()"] == 100 and found["beta::run();alpha"] == 100, found
    click(b, "#flameof")
    choose(b, "flameway", "callees")
    b.run("document.querySelector('#detail .close').click()")


def check_timeline(b):
    """Lanes of threads with nested calls; the wheel zooms at the pointer, dragging moves, a click shows one call."""
    click(b, "#tab-timeline")
    lanes = b.run("line.lanes.map(l => [threadName(l.thread), l.rows.map(r => r.f.map(nameOf))])")
    assert len(lanes) == 2 and lanes[1][1] == [["gamma"] * 100], lanes
    (first, rows), shape = lanes[0], b.run("line.lanes.map(l => l.rows.map(r => [r.start, r.end]))")
    assert rows[0] == ["alpha"] and rows[1].count("beta::run()") == 10 and rows[1].count("gamma") == 10, rows
    for row in shape[0]:
        assert all(start < end for start, end in zip(*row)) and all(e <= s for e, s in zip(row[1], row[0][1:])), row
    durations = [end - start for start, end in zip(*shape[1][0])]
    assert durations == [1000 * i for i in range(1, 101)], durations
    whole, drawn = b.run("line.view"), b.run("document.getElementById('linecanvas').toDataURL()")
    at = b.run("(() => { const r = document.getElementById('linecanvas').getBoundingClientRect();"
               "const box = line.boxes.filter(x => x.lane.thread === 1).pop();"
               "return { x: r.left + box.x + box.w / 2, y: r.top + box.y + 5 }; })()")
    tip = point(b, at)
    assert tip.startswith("gamma") and "took 100.0" in tip and b.run("threadName(1)") in tip, tip
    fixed = "(() => { const r = document.getElementById('linecanvas').getBoundingClientRect();" \
            f"return line.view[0] + ({at['x']} - r.left) / r.width * (line.view[1] - line.view[0]); }})()"
    before = b.run(fixed)
    b.call("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=-300, **at)
    wait_for(lambda: b.run("line.view"), lambda view: view[1] - view[0] < 0.5 * (whole[1] - whole[0]))
    zoomed = b.run("line.view")
    assert abs(b.run(fixed) - before) < 0.01 * (zoomed[1] - zoomed[0]), (before, zoomed)
    assert b.run("document.getElementById('linecanvas').toDataURL()") != drawn
    b.call("Input.dispatchMouseEvent", type="mousePressed", button="left", clickCount=1, **at)
    b.call("Input.dispatchMouseEvent", type="mouseMoved", button="left", buttons=1, x=at["x"] + 100, y=at["y"])
    b.call("Input.dispatchMouseEvent", type="mouseReleased", button="left", clickCount=1, x=at["x"] + 100, y=at["y"])
    assert b.run("line.view[0]") < zoomed[0], (b.run("line.view"), zoomed)
    linked = b.run("location.hash")
    click(b, "#lineall")
    assert b.run("line.view") == whole and "from=" in linked and "from=" not in b.run("location.hash")
    point(b, at, click=True)
    assert b.run("line.view[1] - line.view[0]") == 100000, b.run("line.view")
    shoot(b, "timeline-call")
    click(b, "#lineall")
    shoot(b, "timeline")


def check_lines(b, path):
    b.open(path)
    b.run("pick(F.name.indexOf('twice'))")
    assert "lines.c:2" in b.run("document.querySelector('#detail .source').innerText")


def page_with_lines(folder):
    """A page of a program that has debug information."""
    source, program, record, out = (folder / name for name in ("lines.c", "lines", "lines.hfr", "lines.html"))
    source.write_text("#include <stdio.h>\n__attribute__((noinline)) int twice(int x) { return printf(\"%d\", x) * 2; }\n"
                      "int main(int c, char **v) { (void)v; return twice(c) == 0; }\n")
    subprocess.run(["gcc", "-g", "-O1", "-o", program, source], check=True)
    subprocess.run([HOTFN, "run", "-q", "-o", record, "--", program], check=True, timeout=120, stdout=subprocess.DEVNULL)
    subprocess.run([HOTFN, "export", "-F", "html", "-o", out, record], check=True, timeout=120)
    return out


def check_tree(b):
    click(b, "#tab-tree")
    rows = "document.querySelectorAll('#treetable .row').length"
    assert b.run(rows) == 2
    b.run("[...document.querySelectorAll('#treetable .row')].find(r => "
          "r.textContent.includes('alpha')).click()")
    assert b.run(rows) == 4
    click(b, "#treenone")
    assert b.run(rows) == 2
    click(b, "#tab-threads")
    assert b.run("document.querySelectorAll('#threadtable .row').length") == 2
    click(b, "#tab-slow")
    assert "142.3" in b.run("document.querySelector('#slowtable .row').innerText")


def go_back(b):
    hash = b.run("location.hash")
    b.run("history.back()")
    wait_for(lambda: b.run("location.hash"), lambda now: now != hash)
    time.sleep(0.3)    # the browser's own list of addresses follows later


def check_zoom_link(b, path):
    """The box that is zoomed in is in the link, and is gone when another tree is shown."""
    b.visit(f"file://{path}#view=flame")
    whole, drawn = b.run("location.hash"), "document.getElementById('flamecanvas').toDataURL()"
    point(b, box_of(b, "alpha", 1), click=True)
    linked, zoomed = b.run("location.href"), b.run(drawn)
    assert "zoom=" in linked and b.run("location.hash") != whole, linked
    b.visit("about:blank#")
    b.visit(linked)
    assert b.run(drawn) == zoomed and b.run("flame.top.up === flame.root")
    click(b, "#flamefold")
    assert "zoom=" not in b.run("location.hash") and b.run("flame.top === flame.root")
    b.visit(f"file://{path}#view=flame&zoom=7.1.x")    # no such box
    assert b.run("flame.top === flame.root")


def check_links(b, path):
    """The address has what is shown: a link shows it again, and the back button undoes a step."""
    at = "decodeURIComponent(location.hash)"
    detail = "document.getElementById('detail').innerText"
    b.open(path)
    assert b.run(at) == ""
    search(b, "beta", ["beta::run()"])
    click(b, "#table .row")
    wait_for(lambda: b.run(at), lambda hash: hash == "#q=beta&at=game+0x1040")
    b.run("[...document.querySelectorAll('#detail button')].find(e => e.textContent.startsWith('callers')).click()")
    choose(b, "flamethread", "0")
    click(b, "#flamefold")
    mark(b, "alpha")
    linked, shown = b.run("location.href"), stacks(b)
    assert "view=flame" in linked and "way=callers" in linked and "mark=alpha" in linked, linked
    go_back(b)
    assert not b.run("document.getElementById('flamefold').checked") and "view=flame" in b.run(at)
    go_back(b)
    go_back(b)
    assert b.run("document.getElementById('flame').hidden") and "beta::run()" in b.run(detail), b.run(at)
    go_back(b)
    assert b.run(at) == "#q=beta" and not b.run(detail)
    b.visit("about:blank#")
    b.visit(linked)    # in a page that was not open
    assert not b.run("document.getElementById('flame').hidden") and stacks(b) == shown
    assert b.run("document.getElementById('flamesearch').value") == "alpha"
    assert b.run("document.getElementById('flamethread').value") == "0"
    assert b.run("document.getElementById('search').value") == "beta" and "beta::run()" in b.run(detail)
    check_zoom_link(b, path)
    b.visit(f"file://{path}#view=tree&at=no+0x1&sort=wrong&thread=99&of=x")    # as much of it as can be shown
    assert not b.run("document.getElementById('tree').hidden") and not b.run(detail)
    b.visit(f"file://{path}#sort=name&up=1")
    wait_for(lambda: names(b), lambda shown: shown == ["alpha", "beta::run()", "gamma"])


def check_narrow_tree(b):
    """At 500 pixels the call tree keeps the names, and no column is outside of the page."""
    b.call("Emulation.setDeviceMetricsOverride", width=500, height=800, deviceScaleFactor=1, mobile=False)
    click(b, "#tab-tree")
    click(b, "#treenone")
    b.run("(() => { const todo = [treeRoot]; while (todo.length) { const n = todo.pop(); n.open = true; todo.push(...n.kids); } listTree(); })()")
    time.sleep(0.4)
    cells = b.run("[...document.querySelectorAll('#treetable .row')].map(r => { const e = r.lastElementChild.lastElementChild;"
                  "const range = document.createRange(); range.selectNodeContents(e); return [e.textContent, range.getBoundingClientRect().right]; })")
    assert len(cells) > 8 and all(right <= 500 for _, right in cells), cells
    assert {"alpha", "beta::run()", "gamma"} == {name for name, _ in cells}, cells
    heads = b.run("[...document.querySelectorAll('#treetable .head span')].filter(e => e.offsetWidth).map(e => e.textContent)")
    assert heads == ["total", "of thread", "function"], heads
    assert b.run("document.documentElement.scrollWidth") <= 500
    shoot(b, "narrow-tree")
    b.call("Emulation.clearDeviceMetricsOverride")
    time.sleep(0.4)
    click(b, "#treenone")


def check_budget(b, path):
    b.open(path)
    rows = "[...document.querySelectorAll('#{} .row')].map(r => r.innerText)"
    assert [row.split() for row in b.run(rows.format("table"))] == [
        ["<tiny>", "budgeted", ">5,000", "99.6%"], ["calm", "budgeted", "20", "0.4%"]], b.run(rows.format("table"))
    click(b, "#tab-budget")
    facts = b.run("document.getElementById('budgetfacts').innerText")
    for words in ("THE BUDGET WAS NOT KEPT: a <note>", "5.0% allowed", "1.25 ns", "3 times"):
        assert words in facts, facts
    changes = [row.split("\n") for row in b.run(rows.format("budgettable"))]
    assert changes == [["1.500 s", "<tiny>", "counted", "unhooked", "123,000,000 calls a second took 34.5%"],
                       ["2.500 s", "<tiny>", "unhooked", "counted", "tried again"],
                       ["2.600 s", "<tiny>", "counted", "unhooked", "123,000,000 calls a second took 34.5%"]], changes
    shoot(b, "budget")
    click(b, "#budgettable .row")
    detail = b.run("document.getElementById('detail').innerText")
    assert ">5,000" in detail and "at 1.500 s: counted \u2192 unhooked" in detail, detail


def large_name(i):
    if i % 11 == 0:
        return f"caf\u00e9\x7f{i}::\u20ac\u20ac"
    if i == 6:    # the only valid mangled name
        return "game::entity::update()"
    return f"</script><img src=x onerror=alert({i})>" if i % 7 == 0 else f"_ZN4game6entity{i}updateEv"


def check_parts(b, path):
    """The page is small, reads only the first functions to show its table, and then all without a change."""
    assert path.stat().st_size < 50000 * 32, path.stat().st_size    # 8 MB for 250,000 functions
    assert b.run("F.name.length") == 500 and len(names(b)) > 20
    b.run("needFunctions()")
    assert b.run("F.name") == [large_name(i) for i in range(49999, -1, -1)]
    assert b.run("F.calls") == list(range(50000, 0, -1))
    assert b.run("F.rva") == [0x1000 + 16 * i for i in range(49999, -1, -1)]


def check_large(b, path):
    b.open(path)
    check_parts(b, path)
    b.open(path)
    assert b.run("document.querySelectorAll('#table .row').length") < 100
    assert "50,000 of 50,000" in b.run("document.getElementById('found').textContent")
    b.run("document.querySelector('#table .scroll').scrollTop = 1e9")
    wait_for(lambda: names(b)[-1], lambda last: last == large_name(0))    # called once
    search(b, "onerror alert(49)", ["</script><img src=x onerror=alert(49)>"])
    click(b, "#table .row")
    assert b.run("document.querySelectorAll('img').length") == 0
    shoot(b, "large")


def check_narrow(b):
    """On a narrow page columns are dropped, except the names and the sort column."""
    titles = ("[...document.querySelectorAll('#table .head span')].filter(e => e.offsetWidth && "
              "e.getBoundingClientRect().right <= innerWidth).map(e => e.textContent.replace(/ .$/, ''))")
    wide = b.run(titles)
    assert "p50" in wide and "module" in wide, wide
    for width, some in (900, {"function", "calls", "total", "self"}), (420, {"function", "self"}):
        b.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        time.sleep(0.4)
        shown = b.run(titles)
        assert some <= set(shown) and "p50" not in shown, (width, shown)
        cells = b.run("document.querySelector('#table .row').children.length")
        assert cells == len(shown), (width, cells, shown)
        shoot(b, f"narrow-{width}")
    b.call("Emulation.clearDeviceMetricsOverride")
    time.sleep(0.4)
    assert b.run(titles) == wide, b.run(titles)


def check_fold(b):
    script = PAGE.read_text()
    script = script[script.index("const OPERATOR"):script.index("const LETTER")]

    def fold(name, most):
        return b.run(f"(() => {{ {script}; return fold({name!r}, {most}); }})()")
    name = "std::map<int, std::pair<const int, long>, std::less<int> >::find(int const&)"
    assert fold(name, 76) == name
    assert fold(name, 75) == name.removeprefix("std::")
    assert fold(name, 68) == "map<int, std::pair<const int, \u2026>, std::less<int> >::find(int const&)"
    assert fold(name, 55) == "map<int, std::pair<\u2026>, std::less<int> >::find(\u2026)"
    assert fold(name, 35) == "map<int, \u2026>::find(\u2026)"
    shade = "std::pair<int, int> engine::render::Phong::shade(Ray const&)"
    assert fold(shade, 40) == "engine::render::Phong::shade(Ray const&)"
    assert fold(shade, 39) == "engine::\u2026::Phong::shade(Ray const&)"
    assert fold("a::b::c::d::e::last(int)", 23) == "a::\u2026::d::e::last(int)"
    assert fold(shade, 26) == "Phong::shade(Ray const&)" and fold(shade, 16) == "Phong::shade(\u2026)"
    assert fold(shade, 14) == "\u2026ong::shade(\u2026)" and fold(shade, 10) == "shade(\u2026)"
    assert fold("std::ostream& operator<< <char>(std::ostream&, char)", 45) == "operator<< <char>(std::ostream&, char)"
    assert fold("decltype(f(1)) a::b::g<int>(int)", 17) == "a::b::g<int>(int)"
    assert fold("(anonymous namespace)::Scene::draw(int)", 20) == "Scene::draw(int)"
    assert fold("non-virtual thunk to a::b::C::f(int)", 30) == "non-virtual thunk to C::f(int)"
    assert fold("core::iter::map_fold::{{closure}}", 24) == "map_fold::{{closure}}"
    assert fold("A::B::C::operator std::string() const", 33) == "C::operator std::string() const"
    assert fold("operator<<(std::ostream&, T)", 20) == "operator<<(\u2026)"
    assert fold("odd<(name", 4) == "od\u2026e"


def main(folder):
    story = page(folder, "story")
    with browser.Browser() as b:
        for dark in (False, True):
            b.dark(dark)
            b.open(story)
            theme = b.run("document.documentElement.dataset.theme")
            assert theme == ("dark" if dark else "light"), theme
            check_table(b)
            check_narrow(b)
            check_detail(b)
            shoot(b, f"{theme}-table")
            check_flame(b)
            shoot(b, f"{theme}-flame")
            check_timeline(b)
            check_tree(b)
            check_narrow_tree(b)
        check_fold(b)
        check_large(b, page(folder, "large", "50000"))
        check_budget(b, page(folder, "budgeted"))
        if shutil.which("gcc") and os.environ.get("HOTFN_LIBDW", "1") == "1":
            check_lines(b, page_with_lines(folder))
        b.open(page(folder, "counted"))
        assert names(b) == ["gamma", "beta::run()", "alpha"]
        assert b.run("document.querySelectorAll('nav button').length") == 2
        assert not b.complaints, b.complaints
    with browser.Browser() as b:    # Chromium keeps 50 addresses, and scripted ones are dropped first
        check_links(b, story)
        assert not b.complaints, b.complaints
    print("the page works as expected, and its console is empty")


if not browser.find():
    print("# skipped: Chromium is not installed")
    sys.exit(77)
with tempfile.TemporaryDirectory() as made:
    main(pathlib.Path(made))
