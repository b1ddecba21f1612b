#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The documentation site: every internal link resolves, each page can be reached, and each public call has an entry."""
import ast
import html.parser
import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(os.environ["HOTFN_SOURCE_ROOT"])
BUILD = [sys.executable, ROOT / "docs/site/build.py"]
MIN_ABOUT = 20   # characters of the description of a call


class Page(html.parser.HTMLParser):
    """The links and ids of a page, and the text of the description of each entry by its ids."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.entries = [], set(), {}
        self._names, self._depth, self._about = [], 0, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if found.get("id"):
            assert found["id"] not in self.ids, f"two elements have the id {found['id']}"
            self.ids.add(found["id"])
            self._names.append(found["id"])
        if found.get("class") == "entry":
            self._names, self._about = [], ""
        if tag == "div" and (self._depth or found.get("class") == "about"):
            self._depth += 1
        self.links += [found[key] for key in ("href", "src") if found.get(key)]

    def handle_endtag(self, tag):
        if tag == "div" and self._depth:
            self._depth -= 1
        if tag == "section":
            self.entries.update({name: self._about for name in self._names})

    def handle_data(self, data):
        if self._depth:
            self._about += data


def read_site(folder):
    return {str(path.relative_to(folder)): Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}


def find_target(page, link):
    """(file, fragment) that a link leads to; None for a link to another site."""
    if urllib.parse.urlparse(link).scheme:
        return None
    file, _, fragment = link.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), file)) if file else page
    return target, urllib.parse.unquote(fragment)


def find_broken_links(folder, pages):
    broken = []
    for page, content in pages.items():
        for link in content.links:
            target = find_target(page, link)
            if target is None:
                continue
            file, fragment = target
            if not (folder / file).is_file() or (fragment and fragment not in pages[file].ids):
                broken.append(f"{page}: {link}")
    return broken


def find_unreached_pages(pages):
    reached, waiting = set(), ["index.html"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page in pages:
            reached.add(page)
            waiting += [target[0] for target in (find_target(page, link) for link in pages[page].links) if target]
    return sorted(set(pages) - reached)


def read_public_calls():
    """Names that the library exports, and those that the headers declare."""
    names = {line.split()[0] for line in (ROOT / "src/api.list").read_text(encoding="utf-8").splitlines()
             if line.strip() and not line.startswith("#")}
    for header in (ROOT / "include").rglob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
        names |= set(re.findall(r"^HOTFN(?:_PUSH)?_API\s[^;(]*?(\w+)\(", text, re.MULTILINE))
    return names


def check_links(folder):
    pages = read_site(folder)
    assert not find_broken_links(folder, pages), find_broken_links(folder, pages)
    assert not find_unreached_pages(pages), find_unreached_pages(pages)
    link = '<a href="../docs/none.html">'
    (folder / "api/wrong.html").write_text(f'<p id="a">{link}<a href="#b"></a>', encoding="utf-8")
    pages = read_site(folder)
    assert find_broken_links(folder, pages) == ["api/wrong.html: ../docs/none.html", "api/wrong.html: #b"]
    assert find_unreached_pages(pages) == ["api/wrong.html"]
    (folder / "api/wrong.html").unlink()


def check_calls(folder):
    entries = {}
    for page, content in read_site(folder).items():
        if page.startswith("api/"):
            entries.update(content.entries)
    calls = read_public_calls()
    assert len(calls) > 100, calls
    missing = [name for name in sorted(calls) if len(entries.get(name, "").strip()) < MIN_ABOUT]
    assert not missing, f"no entry with a description: {missing}"
    assert "copied into memory" in entries["hotfn_record_open"], entries["hotfn_record_open"]
    assert entries["hotfn_record_get_thread"] == entries["hotfn_record_get_module"]   # one comment describes both


def check_python(folder):
    """Each public name of the package has an entry, and each method of a record."""
    init = (ROOT / "bindings/python/hotfn/__init__.py").read_text(encoding="utf-8")
    names = ast.literal_eval(re.search(r"^__all__ = (\[.*?\])$", init, re.MULTILINE | re.DOTALL)[1])
    page = read_site(folder)["api/python.html"]
    missing = [name for name in (*names, "open") if len(page.entries.get(name, "").strip()) < MIN_ABOUT]
    assert len(names) > 30 and not missing, f"no entry with a description: {missing}"
    assert {"Record.to_pandas", "Record.hot", "Session.save", "TreeNode.walk", "plot.flame"} <= page.ids
    examples = (folder / "docs/examples/index.html").read_text(encoding="utf-8")
    assert '<a href="../../api/python.html#run"><code>hotfn.run</code></a>' in examples


def check_sources(folder):
    """Each Markdown page, man page and example has its page, and names in code are links."""
    pages = read_site(folder)
    for path in ROOT.glob("docs/**/*.md"):
        name = str(path.relative_to(ROOT))
        assert name.replace("README.md", "index.html").replace(".md", ".html") in pages, name
    for path in ROOT.glob("docs/man/*.[1-9]"):
        assert f"man/{path.name}.html" in pages, path
    for path in ROOT.glob("docs/examples/*.[cp]*"):
        assert f"docs/examples/{path.name}.html" in pages, path
    text = (folder / "docs/python.html").read_text(encoding="utf-8")
    assert '<img alt="The flame graph of the same record" src="flame.png"' in text and "<table>" in text
    assert '<a href="examples/data.py.html"><code>docs/examples/data.py</code></a>' in text
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert '<a href="docs/compare.html"><code>docs/compare.md</code></a>' in text
    text = (folder / "api/record.html").read_text(encoding="utf-8")
    assert '<a href="env.html#hotfn_env">hotfn_env</a>' in text


def check_folders(folder):
    """A former site is replaced; a folder with other files is not touched."""
    (folder / "docs/old.html").write_text("old", encoding="utf-8")
    subprocess.run([*BUILD, folder], check=True, stdout=subprocess.DEVNULL)
    assert not (folder / "docs/old.html").exists() and (folder / "index.html").exists()
    other = folder.parent / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine", encoding="utf-8")
    for place, reason in ((other, "has files that are not a site"), (other / "mine.txt", "is a file")):
        done = subprocess.run([*BUILD, place], capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.startswith(f"site: {place} {reason}; name a folder"), done
    assert (other / "mine.txt").read_text(encoding="utf-8") == "mine" and len(list(other.iterdir())) == 1
    done = subprocess.run(BUILD, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("usage: scripts/site FOLDER"), done


def main():
    try:
        import markdown  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing} (scripts/setup site)")
        return 77
    if not shutil.which("mandoc"):
        print("skipped: no mandoc (scripts/setup site)")
        return 77
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / "site"
        subprocess.run([*BUILD, folder], check=True)
        for check in (check_links, check_calls, check_python, check_sources, check_folders):
            check(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
