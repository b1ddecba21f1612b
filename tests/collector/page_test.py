# SPDX-License-Identifier: MIT
"""The page of hotfn-collector in a headless Chromium: every view, search, sorting, paging, 50,000 functions, hostile
names, upload, dark mode; the console must have no error.  `HOTFN_SHOTS=FOLDER` keeps pictures of the views."""
import base64
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import uuid

import harness
from harness import Collector, cases, count_folds, encode_names, image_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "unit/exporters"))
import browser  # noqa: E402

HOTFN, COMPILER, SHOTS = os.environ["HOTFN"], os.environ.get("CC", "gcc"), os.environ.get("HOTFN_SHOTS")
LONG = "std::map<" + ", ".join(f"Type{i}<char const&>" for i in range(200)) + ">::find(int)"
HOSTILE = {0x10: "<script>alert(1)</script>", 0x20: "a & b<int>(char const&)", 0x30: "\"quoted' \\ name", 0x40: LONG,
           0x50: "<img src=x onerror=alert(2)>", 0x60: "plain"}
CLIENTS = [uuid.UUID(int=(i + 1) << 96) for i in range(5)]


class Page:
    def __init__(self, b, c):
        self.b, self.c = b, c

    def show(self, **parameters):
        query = "&".join(f"{key}={value}" for key, value in parameters.items())
        self.b.run("document.body.dataset.shown = ''")
        self.b.visit(f"http://127.0.0.1:{self.c.port}/?{time.monotonic_ns()}#token={self.c.admin}&{query}")
        self.wait_for("document.body && document.body.dataset.shown")

    def wait_for(self, script, wanted=None):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = self.b.run(script)
            if found == wanted if wanted is not None else found:
                return found
            time.sleep(0.05)
        raise AssertionError((script, wanted, self.b.run(script), self.b.run("document.getElementById('problem').textContent")))

    def texts(self, selector):
        return self.b.run(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")

    def click(self, selector):
        self.b.run(f"document.querySelector({selector!r}).click()")

    def choose(self, selector, value):
        self.b.run(f"(() => {{ const s = document.querySelector({selector!r}); s.value = {value!r};"
                   "s.dispatchEvent(new Event('change')); })()")

    def search(self, text, found, selector="#search", row="#hottable .row .name"):
        self.b.run(f"(() => {{ const s = document.querySelector({selector!r}); s.value = {text!r};"
                   "s.dispatchEvent(new Event('input')); })()")
        self.wait_for(f"JSON.stringify([...document.querySelectorAll({row!r})].map(e => e.title))",
                      json.dumps(found, separators=(",", ":"), ensure_ascii=False))

    def shoot(self, name):
        if SHOTS:
            self.b.screenshot(pathlib.Path(SHOTS) / f"collector-{name}.png")


def fill(c):
    for number, client in enumerate(CLIENTS):
        counts = {rva: (number + 1) * rva * 1000 for rva in HOSTILE}
        c.push("one", counts, client, version="1.0", label=[f"level={number % 2}"], file="game")
        timed = {rva: (calls, calls * 9, calls * 5, 700) for rva, calls in counts.items() if rva != 0x30}
        timed[0x70] = (77, 77000, 7000, 900)
        c.push("two", timed, client, version="2.0", timed=True, file="game", callers=[(None, 0, 5), (0, 1, 7), (1, 2, 3)],
               start_ns=harness.NOW_NS)
    c.put_names(encode_names("one", HOSTILE, file="game"))
    c.put_names(encode_names("two", {**HOSTILE, 0x70: "added"}, file="game"))


def fill_many(c, count=50000):
    counts = {16 * (i + 1): i + 1 for i in range(count)}
    c.put_names(encode_names("many", {rva: f"space_{rva % 97}::function_{rva}" for rva in counts}), app="many")
    c.push("many", counts, CLIENTS[0], app="many")


def check_empty(p):
    """Before the first record the page says what to do."""
    p.show()
    p.wait_for("document.getElementById('problem').textContent", "No record has arrived yet: send one with hotfn push, or upload it.")
    assert p.b.run("document.getElementById('choices').hidden && !document.getElementById('upload').hidden")
    p.click("#tab-diff")
    p.wait_for("!document.getElementById('problem').hidden && document.body.dataset.shown", "upload")


def check_sentences(p):
    """An empty table has a sentence in its place; a link to what is unknown shows no old numbers."""
    def none_of(view, text, **parameters):
        p.show(app="game", build=image_of("two"), view=view, **parameters)
        assert text in p.b.run("[...document.querySelectorAll('.none')].filter(e => e.offsetParent).map(e => e.textContent).join()"), view
        assert not p.b.run(f"document.querySelector('#{view} .table').offsetParent"), view
    none_of("diff", "Choose the build")
    none_of("hot", "matches the search", q="nowhere")
    none_of("labels", "has a label")
    none_of("live", "listed here while it runs")
    p.show(app="game", build="1-00")
    assert p.texts("#problem") == ["the app has no build 1-00: see /api/v1/builds"], p.texts("#problem")
    assert p.b.run("document.querySelector('main').hidden")
    p.b.complaints[:] = [x for x in p.b.complaints if "404" not in json.dumps(x)]


def check_same_version(p):
    """Two images with one version have different titles, and long texts stay in their row."""
    for build in ("first", "second"):
        p.c.push(build, {0x10: 1}, CLIENTS[0], app="twins", version="7", label=["note=" + "long " * 40])
    p.show(app="twins", view="labels")
    found = p.texts("#build option")
    assert sorted(found) == sorted(f"7 {harness.build_id(b).hex()[:12]} (1 client)" for b in ("first", "second")), found
    assert p.b.run("[...document.querySelectorAll('#labeltable .row > span')].every(e => e.offsetHeight < 27)")


def check_hot(p):
    p.show(app="game", build=image_of("two"), base=image_of("one"))
    names = p.texts("#hottable .row .name")
    assert p.b.run("document.querySelectorAll('#hottable script, #hottable img').length") == 0
    assert p.texts("#hottable .row:first-child .number")[0] == "1" and "plain" in names, names
    assert "5 clients" in p.texts("#facts")[0]
    assert "game" in p.texts("#hottable .row .module"), "the column of modules was dropped"
    assert "new" in p.texts("#hottable .row .up"), "the added function is not marked"
    p.shoot("hot")
    folds = count_folds(p.c)
    p.search("script ALERT", [HOSTILE[0x10]])
    p.c.push("two", {0x70: 1}, CLIENTS[0], version="2.0", file="game", start_ns=harness.NOW_NS)
    p.search("Type199", [LONG])
    p.search("nothing at all", [])
    assert count_folds(p.c) == folds, "a search read the runs again"
    p.search("", [row["name"] for row in p.c.get("hot", app="game", build="2.0")["rows"]])
    p.click("#hottable [data-key=name]")
    p.wait_for("document.querySelector('#hottable .row .name').title", sorted(n for n in [*HOSTILE.values(), "added"]
                                                                            if n != HOSTILE[0x30])[0])
    p.choose("#agg", "median")
    p.wait_for("location.hash.includes('agg=median') && document.body.dataset.shown")
    shown = {row["name"]: row["value"] for row in p.c.get("hot", app="game", build="2.0", agg="median")["rows"]}
    p.search("plain", ["plain"])
    value = p.b.run("document.querySelector('#hottable .row').children[6].textContent")
    assert value.replace(",", "") == str(int(shown["plain"])), (value, shown)
    p.choose("#metric", "self")
    p.wait_for("location.hash.includes('metric=self') && document.body.dataset.shown")
    p.choose("#label", "")


def check_function(p):
    number = next(row["function"] for row in p.c.get("hot", app="game", build="2.0")["rows"] if row["name"] == HOSTILE[0x20])
    p.show(app="game", build=image_of("two"), view="function", function=number)
    assert p.texts("#functionpage h2") == [HOSTILE[0x20]]
    assert HOSTILE[0x10] in p.b.run("[...document.querySelectorAll('#functionpage .list button')].map(e => e.title)")
    assert len(p.texts("#functionpage svg")) == 2 and "1.0" in p.texts("#functionpage svg")[1]
    p.shoot("function")
    p.b.run("[...document.querySelectorAll('#functionpage .list button')].find(e => e.title.includes('alert(1)')).click()")
    p.wait_for("document.querySelector('#functionpage h2').textContent", HOSTILE[0x10])
    p.b.run("history.back()")
    p.wait_for("document.querySelector('#functionpage h2').textContent", HOSTILE[0x20])


def check_diff(p):
    p.show(app="game", build=image_of("two"), base=image_of("one"), view="diff")
    assert "1 new, 1 gone, 0 hotter, 0 cooler, 5 unchanged" in p.texts("#difffound")[0], p.texts("#difffound")
    assert sorted(p.b.run("[...document.querySelectorAll('#difftable .row .name')].map(e => e.title)")) == ['"quoted\' \\ name',
                                                                                                        "added"]
    p.shoot("diff")
    p.choose("#kind", "same")
    p.wait_for("document.querySelectorAll('#difftable .row').length", 5)


def check_downloads(p, place):
    """A download has the rows of the table, also those that are not shown."""
    p.b.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(place))
    p.show(app="game", build=image_of("two"), metric="self", q="Type199")
    for kind in ("csv", "pprof", "callgrind"):
        wanted = p.c.request("GET", "/api/v1/export", app="game", build=image_of("two"), metric="self", q="Type199", format=kind)
        path = place / wanted[1].get_filename()
        p.click(f"[data-format={kind}]")
        end = time.monotonic() + 30
        while not path.exists() or path.read_bytes() != wanted[2]:
            assert time.monotonic() < end, (kind, list(place.iterdir()))
            time.sleep(0.05)


def check_lists(p):
    p.show(app="game", build=image_of("one"), view="clients")
    assert sorted(p.texts("#clienttable .row .module")) == sorted(c.hex for c in CLIENTS)
    p.shoot("clients")
    p.click("#clienttable .row")
    p.wait_for("document.querySelector('#facts').textContent.includes('1 client,')")
    p.show(app="game", build=image_of("one"), view="labels")
    assert [t for t in p.texts("#labeltable .row") if t.startswith("level1")], p.texts("#labeltable .row")
    p.click("#labeltable .row")
    p.wait_for("document.querySelector('#facts').textContent.includes('3 clients')")
    p.show(app="game", view="builds")
    assert len(p.texts("#buildtable .row")) == 2


def check_live(p):
    run = uuid.uuid4()

    def increment(sequence, calls):
        body = harness.encode_run(run, "two", {0x10: calls, 0x20: 1}, state=1, file="game")
        p.c.put(run, body, client=CLIENTS[1].hex, sequence=sequence, every=60, label=["level=9"])
    p.show(app="game", build=image_of("two"), view="live")
    assert p.texts("#livefacts")[0].startswith("0 programs"), p.texts("#livefacts")
    increment(1, 5)
    p.wait_for("document.querySelectorAll('#livetable .row').length", 1)
    text = p.texts("#livetable .row")[0]
    assert CLIENTS[1].hex[:8] in text and "2.0" in text and "level=9" in text, text
    p.shoot("live")
    grown = "[...document.querySelectorAll('#livehot .row')].some(e => e.textContent.endsWith('+1,234,567'))"
    p.wait_for("document.querySelectorAll('#livehot .row').length > 0")
    increment(2, 1234567)
    p.wait_for(grown)
    p.click("#livetable .row")
    p.wait_for("document.body.dataset.shown", "hot")


def check_many(p):
    p.show(app="many")
    assert "50,000 of 50,000" in p.texts("#found")[0]
    assert len(p.texts("#hottable .row")) < 100, "every function has an element"
    p.b.run("document.querySelector('#hottable .scroll').scrollTop = 1e9")
    p.wait_for("[...document.querySelectorAll('#hottable .row .name')].some(e => e.title === 'space_16::function_16')")
    p.search("function_800000", ["space_41::function_800000"])


def check_upload(p, place):
    (place / "game.c").write_text("__attribute__((noinline)) int twice(int x) { volatile int y = x; return y * 2; }\n"
                                  "int main(int c, char **v) { return twice(c) + twice(c) == 1; }\n")
    subprocess.run([COMPILER, "-O1", "-Wl,--build-id", "-o", place / "game", place / "game.c"], check=True)
    subprocess.run([HOTFN, "run", "-q", "-o", place / "run.hfr", "--", place / "game"], check=True)
    (place / "broken.hfr").write_bytes((place / "run.hfr").read_bytes()[:3000])
    p.show(app="game", view="upload")
    p.choose("#uploadapp", "uploaded")
    root = p.b.call("DOM.getDocument")["root"]["nodeId"]
    node = p.b.call("DOM.querySelector", nodeId=root, selector="#files")["nodeId"]
    p.b.call("DOM.setFileInputFiles", nodeId=node, files=[str(place / "run.hfr"), str(place / "broken.hfr")])
    p.wait_for("[...document.querySelectorAll('#uploads li')].filter(e => !e.textContent.includes('\u2026')).length", 2)
    texts = p.texts("#uploads li")
    assert texts[0] == "run.hfr: stored" and "cannot be read" in texts[1], texts
    rows = {row["name"]: row["calls"] for row in p.c.get("hot", app="uploaded")["rows"]}
    assert rows["twice"] == 2, rows
    p.shoot("upload")
    # The same record, dropped onto the page.
    dropped = base64.b64encode((place / "run.hfr").read_bytes()).decode()
    p.b.run("(() => { const t = new DataTransfer(), d = document.getElementById('drop');"
            f"t.items.add(new File([Uint8Array.from(atob({dropped!r}), c => c.charCodeAt(0))], 'dropped.hfr'));"
            "d.dispatchEvent(new DragEvent('dragover', {dataTransfer: t, cancelable: true}));"
            "d.dispatchEvent(new DragEvent('drop', {dataTransfer: t, cancelable: true})); })()")
    p.wait_for("[...document.querySelectorAll('#uploads li')].pop().textContent", "dropped.hfr: was stored before")
    assert p.b.run("document.getElementById('progress').value") == 1
    # A build: its program and its map.
    subprocess.run([COMPILER, "-O1", "-Wl,--build-id", f"-Wl,-Map={place}/game.map", "-o", place / "game", place / "game.c"],
                   check=True)
    subprocess.run(["strip", place / "game"], check=True)
    p.show(app="game", view="upload")
    p.choose("#uploadapp", "built")
    p.choose("#uploadversion", "3.1")
    root = p.b.call("DOM.getDocument")["root"]["nodeId"]
    node = p.b.call("DOM.querySelector", nodeId=root, selector="#files")["nodeId"]
    p.b.call("DOM.setFileInputFiles", nodeId=node, files=[str(place / "game"), str(place / "game.map")])
    p.wait_for("[...document.querySelectorAll('#uploads li')].filter(e => e.textContent.includes('stored, ')).length", 1)
    built = p.c.get("builds", app="built")["builds"]
    assert [(b["version"], b["registered"], b["file"]) for b in built] == [("3.1", True, "game")], built
    kit = gzip.compress(b"kit")
    assert p.c.request("PUT", "/api/v1/kit", kit, app="built", build=built[0]["build"])[0] == 201
    p.show(app="built", view="builds")
    assert p.texts("#buildtable .row button") == ["download"], p.texts("#buildtable .row")


def check_short_times(p):
    """A client whose time is too short to be known has no place among the values of a distribution."""
    p.c.push("two", {0x20: (3, 0, 0, 0)}, uuid.UUID(int=99), version="2.0", timed=True, file="game")
    number = next(row["function"] for row in p.c.get("hot", app="game", build="2.0")["rows"] if row["rva"] == 0x20)
    p.show(app="game", build=image_of("two"), view="function", function=number, metric="self")
    titles = p.b.run("[...document.querySelector('#functionpage svg').querySelectorAll('title')].map(e => e.textContent)")
    assert titles[:2] == ["0 clients without a call", "1 client with times too short to be known"], titles
    assert sum(int(text.split()[0]) for text in titles) == len(CLIENTS) + 1, titles


def check_theme(p):
    background = "getComputedStyle(document.body).backgroundColor"
    p.b.dark(True)
    p.show(app="game", build=image_of("two"))
    dark = p.b.run(background)
    p.shoot("dark")
    p.b.dark(False)
    p.wait_for(background + f" !== {dark!r}")
    p.click("#theme")
    p.click("#theme")
    p.wait_for(background, dark)
    p.click("#theme")


def check_keyboard(p):
    p.show(app="game", build=image_of("two"))
    p.b.call("Input.dispatchKeyEvent", type="keyDown", key="/", text="/")
    p.wait_for("document.activeElement.id", "search")
    p.b.run("document.querySelector('#hottable [data-key=calls]').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))")
    p.wait_for("location.hash.includes('sort=calls')")
    p.wait_for("document.body.dataset.shown", "hot")
    p.b.run("document.querySelector('#hottable .row').focus()")
    p.b.run("document.querySelector('#hottable .row').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))")
    p.wait_for("document.body.dataset.shown", "function")


def check_login(p):
    p.b.run("sessionStorage.clear()")
    p.b.visit(f"http://127.0.0.1:{p.c.port}/?login")
    p.wait_for("document.getElementById('login').hidden === false")
    complaints = [c for c in p.b.complaints if "401" not in json.dumps(c)]
    p.b.complaints[:] = complaints  # the refused request is reported by the browser
    p.b.run(f"document.getElementById('token').value = {p.c.admin!r}")
    p.b.run("document.getElementById('login').requestSubmit()")
    p.wait_for("document.querySelectorAll('#hottable .row').length > 0")


def find_axe(place):
    """The script of axe-core: HOTFN_AXE is its path, or "npm" to install it; None if there is none."""
    wanted = os.environ.get("HOTFN_AXE", "")
    if wanted != "npm":
        return pathlib.Path(wanted) if wanted else None
    if not shutil.which("npm"):
        return None
    done = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "axe-core@4.10.2"], cwd=place,
                          capture_output=True, timeout=120)
    return place / "node_modules/axe-core/axe.min.js" if done.returncode == 0 else None


def check_axe(p, place):
    """No view has a serious accessibility violation, light or dark."""
    path = find_axe(place)
    if path is None:
        print("note: accessibility was not checked, because axe-core is not available")
        return
    script = path.read_text()
    p.b.call("Page.setBypassCSP", enabled=True)
    for dark in (False, True):
        p.b.dark(dark)
        for view in ("hot", "function", "diff", "live", "clients", "labels", "builds", "upload"):
            p.show(app="game", build=image_of("two"), base=image_of("one"), view=view, function=0)
            p.b.run(script + "; 1")
            found = p.b.run("axe.run().then(r => ({passed: r.passes.length, faults: r.violations.filter("
                            "v => ['serious', 'critical'].includes(v.impact)).map(v => [v.id, v.nodes.map(n => n.html)])}))")
            assert found["passed"] > 10 and not found["faults"], (view, dark, found)


def every_view_works(place):
    with Collector(place, "--rate", "0", "--quiet") as c, browser.Browser() as b:
        p = Page(b, c)
        b.call("DOM.enable")
        check_empty(p)
        fill(c)
        fill_many(c)
        check_sentences(p)
        check_same_version(p)
        check_hot(p)
        check_function(p)
        check_diff(p)
        check_downloads(p, place)
        check_lists(p)
        check_live(p)
        check_many(p)
        check_theme(p)
        check_keyboard(p)
        check_short_times(p)
        check_axe(p, place)
        check_login(p)
        assert not b.complaints, b.complaints
        check_upload(p, place)
        refused = [x for x in b.complaints if "422" not in json.dumps(x)]
        assert not refused, refused


if __name__ == "__main__":
    if not browser.find():
        print("skipped: no Chromium on this system")
        sys.exit(cases.SKIPPED)
    sys.exit(cases.run([every_view_works], needs=[COMPILER]))
