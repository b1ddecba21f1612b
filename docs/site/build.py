#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make a web site of the documentation, as static HTML: build.py FOLDER.

The site has the Markdown pages (by python3-markdown), the man pages (by mandoc), references of the C API (from the
comments of the headers) and of the Python package (from its docstrings), and the examples.
"""
import html
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

import api
import python_api

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = "made-by-hotfn-site"
GUIDES = ("docs/python.md", "docs/replace.md", "docs/pipeline.md", "docs/expected.md", "docs/compare.md",
          "docs/glossary.md", "src/README.md")
FOLDERS = (("docs/design", "Design decisions"), ("docs/lab", "Laboratory notes"), ("docs/examples", "Examples"))
TOP = (("index.html", "hotfn"), ("docs/index.html", "Guides"), ("man/index.html", "Commands"), ("api/index.html", "C API"), ("api/python.html", "Python"),
       ("docs/examples/index.html", "Examples"), ("docs/design/index.html", "Design"), ("docs/lab/index.html", "Lab"),
       ("CHANGELOG.html", "Changes"))
CODE = re.compile(r"<code>([^<]+)</code>")


def path_of_page(source):
    """docs/lab/README.md -> docs/lab/index.html, README.md -> index.html, docs/man/hotfn.1 -> man/hotfn.1.html"""
    if source.endswith(".md"):
        page = source[:-len(".md")] + ".html"
        return posixpath.join(posixpath.dirname(page), "index.html") if posixpath.basename(source) == "README.md" else page
    if source.startswith("docs/man/"):
        return "man/" + posixpath.basename(source) + ".html"
    return source + ".html" if source.startswith("docs/examples/") else source


def read_markdown(text):
    import markdown
    return markdown.markdown(text, extensions=["tables", "fenced_code", "toc", "sane_lists"], output_format="html")


def title_of(text, fallback):
    found = re.search(r"<h1[^>]*>(.*?)</h1>", text, re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", found[1])).strip() if found else fallback


def make_markdown_pages():
    sources = [path for path in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "THIRD-PARTY.md", "src/README.md")
               if (ROOT / path).exists()]
    sources += [str(path.relative_to(ROOT)) for folder in ("docs", "docs/design", "docs/lab", "docs/examples")
                for path in sorted((ROOT / folder).glob("*.md"))]
    pages = {}
    for source in sources:
        text = read_markdown((ROOT / source).read_text(encoding="utf-8"))
        pages[path_of_page(source)] = (title_of(text, source), text)
    return pages


def make_man_pages():
    pages = {}
    for path in sorted((ROOT / "docs/man").glob("*.[1-9]")):
        done = subprocess.run(["mandoc", "-T", "html", "-O", "fragment,man=%N.%S.html", path], capture_output=True,
                              text=True, check=True)
        name = path.name.rsplit(".", 1)
        pages[path_of_page(f"docs/man/{path.name}")] = (f"{name[0]}({name[1]})", done.stdout)
    return pages


def make_examples():
    pages = {}
    for path in sorted((ROOT / "docs/examples").iterdir()):
        if path.suffix in (".c", ".cpp", ".py"):
            text = html.escape(path.read_text(encoding="utf-8"), quote=False)
            pages[path_of_page(f"docs/examples/{path.name}")] = (
                path.name, f"<h1>{path.name}</h1><pre><code>{text}</code></pre>")
    return pages


def list_pages(pages, paths, title):
    rows = "".join(f'<li><a href="/{path}">{html.escape(pages[path][0])}</a></li>' for path in paths)
    return f"<h1>{title}</h1><ul>{rows}</ul>"


def add_indexes(pages):
    """Add an index page for each folder: the text of its README, if there is one, then a list of its pages."""
    def below(folder):
        return [path for path in sorted(pages) if posixpath.dirname(path) == folder and not path.endswith("/index.html")]
    man = below("man")
    pages["man/index.html"] = ("Commands", list_pages(pages, man, "Commands"))
    guides = [path_of_page(path) for path in GUIDES]
    others = [path for path in (*below("docs"), "CONTRIBUTING.html", "THIRD-PARTY.html") if path in pages]
    pages["docs/index.html"] = ("Guides", list_pages(pages, guides + [p for p in others if p not in guides], "Guides"))
    for folder, title in FOLDERS:
        path, listed = f"{folder}/index.html", list_pages(pages, below(folder), title)
        text = pages[path][1] + listed.replace("h1>", "h2>") if path in pages else listed
        pages[path] = (title, text)


def find_target(text, pages, targets, assets):
    """The page about a name (a file of this tree, a command or a call), or None."""
    name = re.sub(r"\(\)$", "", text.strip())
    if name in targets:
        return targets[name]
    command = re.match(r"hotfn[ -]([a-z]+)\b", name)
    if command and f"man/hotfn-{command[1]}.1.html" in pages:
        return f"man/hotfn-{command[1]}.1.html"
    if name in assets:
        return name
    folder = {"docs/man": "man"}.get(name.rstrip("/"), name.rstrip("/"))
    for path in (path_of_page(name), f"{folder}/index.html" if name.endswith("/") else ""):
        if path in pages:
            return path
    return None


def relative(target, page):
    file, mark, fragment = target.partition("#")
    return posixpath.relpath(file, posixpath.dirname(page) or ".") + mark + fragment


def resolve_links(text, page, pages, targets, assets):
    """Turn links between source files into links between pages, and names in <code> into links."""
    def replace_link(match):
        link = match[2]
        if re.match(r"[a-z]+:|#", link):
            return match[0]
        file, mark, fragment = link.partition("#")
        folder = posixpath.dirname(page)
        target = file[1:] if file.startswith("/") else path_of_page(posixpath.normpath(posixpath.join(folder, file)))
        if page.startswith("man/") and target not in pages:
            return f'{match[1]}="#"'        # a manual page of the system; the link is removed below
        return f'{match[1]}="{relative(target, page)}{mark}{fragment}"'

    def replace_code(match):
        target = find_target(html.unescape(match[1]), pages, targets, assets)
        return f'<a href="{relative(target, page)}">{match[0]}</a>' if target and target.split("#")[0] != page else match[0]

    text = re.sub(r'\b(href|src)="([^"]*)"', replace_link, text) if not page.startswith("api/") else text
    parts = re.split(r"(<pre>.*?</pre>|<h\d.*?</h\d>|<a .*?</a>)", text, flags=re.DOTALL)
    text = "".join(part if number % 2 or page.startswith(("man/", "api/")) else CODE.sub(replace_code, part)
                   for number, part in enumerate(parts))
    return re.sub(r'<a class="Xr" href="#">(.*?)</a>', r"\1", text)


def write_page(folder, page, title, text):
    links = "".join(f'<a href="{relative(target, page)}">{name}</a>' for target, name in TOP)
    out = folder / page
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title><link rel="stylesheet" href="{relative('style.css', page)}"></head>
<body><nav>{links}</nav><main>
{text}
</main></body></html>
""", encoding="utf-8")


def prepare(folder):
    """Make an empty folder: delete a site that is there; refuse a folder with other files."""
    if folder.exists() and not folder.is_dir():
        sys.exit(f"site: {folder} is a file; name a folder that is new, empty or a former site")
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            sys.exit(f"site: {folder} has files that are not a site; name a folder that is new, empty or a former site")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("scripts/site may delete this folder\n", encoding="ascii")


def copy_assets(folder):
    """Copy pictures, schemas and the style sheet; return the paths of pictures and schemas."""
    assets = [str(path.relative_to(ROOT)) for pattern in ("*.png", "*.json", "*.proto")
              for path in sorted((ROOT / "docs").glob(pattern))]
    for asset in assets:
        (folder / asset).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / asset, folder / asset)
    shutil.copy(ROOT / "docs/site/style.css", folder / "style.css")
    return assets


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: scripts/site FOLDER    (new, empty, or a former site)")
    missing = [] if shutil.which("mandoc") else ["mandoc"]
    try:
        import markdown  # noqa: F401
    except ImportError:
        missing.append("python3-markdown")
    if missing:
        sys.exit(f"site: the Debian package {' and '.join(missing)} is missing; scripts/setup site installs it")
    folder = pathlib.Path(sys.argv[1])
    prepare(folder)
    assets = copy_assets(folder)
    pages, targets = api.make_pages(ROOT / "include")
    title, text, names = python_api.make_page(ROOT / "bindings/python/hotfn")
    pages[python_api.PAGE] = (title, text)
    targets.update(names)
    pages.update({**make_markdown_pages(), **make_man_pages(), **make_examples()})
    add_indexes(pages)
    for page, (title, text) in pages.items():
        write_page(folder, page, title, resolve_links(text, page, pages, targets, assets))
    print(f"{folder}/index.html: {len(pages)} pages")


if __name__ == "__main__":
    main()
