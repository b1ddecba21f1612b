# SPDX-License-Identifier: MIT
"""The pages of the C API: one for each public header, and an index of all calls, types and constants."""
import html
import re

import headers

NAME = re.compile(r"\b(?:hotfn_\w+|HOTFN_\w+)\b")
PARAMETER = re.compile(r"^(\w[\w, ]*?)  +(\S.*)$")
ALL = (("hotfn.h", "stable; included by <hotfn.h>"),
       ("hotfn/lowlevel.h", "lower layer, may still change; included by <hotfn/lowlevel.h>"))
REDEFINED = re.compile(r"^#define (hotfn_\w+) hotfn_\w+$", re.MULTILINE)
KINDS = (("call", "Calls"), ("type", "Types"), ("constant", "Constants"))


def page_of(path):
    """hotfn/lowlevel/hooks.h -> api/lowlevel-hooks.html"""
    return "api/" + path[len("hotfn/"):-len(".h")].replace("/", "-") + ".html"


def read_header(path, include):
    """Read a header.  For a header with inline functions (optional.h), only the first comment and a list of its calls."""
    name, text = str(path.relative_to(include)), path.read_text(encoding="utf-8")
    if "static inline" not in text:
        try:
            return headers.read_header(name, text)
        except ValueError as problem:
            raise SystemExit(f"site: include/{name}: {problem}; docs/site/headers.py reads calls, types and constants"
                             ) from None
    about = next(comment for comment in map(headers.clean_comment, headers.COMMENT.findall(text))
                 if not comment.startswith("SPDX"))
    return headers.Header(name, f"{about}\n\nIts calls: {', '.join(REDEFINED.findall(text))}.", [])


def read_all(include):
    """The headers that declare calls, types or constants, stable ones first."""
    paths = sorted((include / "hotfn").rglob("*.h"), key=lambda path: ("lowlevel" in path.parts, str(path)))
    found = [read_header(path, include) for path in paths]
    return [header for header in found if any(group.items for group in header.groups) or "Its calls:" in header.about]


def find_kinds(include):
    """{path of a header: its stability and the header that includes it}"""
    return {name: about for path, about in ALL
            for name in re.findall(r"^#include <(hotfn/.*)>$", (include / path).read_text(encoding="utf-8"), re.MULTILINE)}


def find_targets(found):
    """{name: page#name} for each declared name."""
    return {item.name: f"{page_of(header.path)}#{item.name}"
            for header in found for group in header.groups for item in group.items}


def link_names(text, targets, own=()):
    """Turn a text into HTML in which names are links to their declarations, except the names in `own`."""
    def link(match):
        name = match.group()
        if name in own or name not in targets:
            return name
        return f'<a href="{targets[name][len("api/"):]}">{name}</a>'
    return NAME.sub(link, html.escape(text, quote=False))


def render_comment(comment, targets, own):
    """Turn a comment into HTML: paragraphs, and lists of parameters (lines of a name, two spaces, a description)."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", comment):
        rows, text = [], []
        for line in paragraph.split("\n"):
            parameter = PARAMETER.match(line)
            if parameter and not text and not line.startswith(" "):
                rows.append([parameter[1], parameter[2]])
            elif rows and line.startswith("  ") and not text:
                rows[-1][1] += " " + line.strip()
            else:
                text.append(line.strip())
        if rows:
            cells = "".join(f"<dt><code>{html.escape(name)}</code></dt><dd>{link_names(about, targets, own)}</dd>"
                            for name, about in rows)
            parts.append(f"<dl>{cells}</dl>")
        if text:
            parts.append(f"<p>{link_names(' '.join(text), targets, own)}</p>")
    return "".join(parts)


def shorten(item):
    """The code of a declaration, without the values of an _INIT constant."""
    if item.kind == "constant" and item.name.endswith("_INIT"):
        return f"#define {item.name} {{ ... }}"
    return item.code


def render_group(group, targets):
    if not group.items:
        first, _, rest = group.comment.replace("\n", " ").partition(".")
        return f"<h2>{html.escape(first)}</h2>" + (f"<p>{link_names(rest.strip(), targets)}</p>" if rest.strip() else "")
    names = [item.name for item in group.items]
    code = "\n".join(shorten(item) for item in group.items)
    anchors = "".join(f'<a id="{name}"></a>' for name in names)
    calls = [item.name for item in group.items if item.kind == "call"]
    title = ", ".join(calls) or next((item.name for item in group.items if item.kind == "type"), "")
    return (f'<section class="entry">{anchors}' + (f"<h3>{title}</h3>" if title else "")
            + f'<div class="about">{render_comment(group.comment, targets, names) if group.comment else ""}</div>'
            + f"<pre><code>{link_names(code, targets, names)}</code></pre></section>")


def render_header(header, kind, targets):
    return (f"<h1>&lt;{header.path}&gt;</h1><p class='kind'>{html.escape(kind)}</p>" + render_comment(header.about, targets, ())
            + "".join(render_group(group, targets) for group in header.groups))


def first_sentence(comment):
    return re.split(r"(?<=[.:;])\s", comment.replace("\n", " "), maxsplit=1)[0]


def render_index(found, targets):
    parts = ["<h1>C API</h1>", "<ul>"]
    for header in found:
        parts.append(f'<li><a href="{page_of(header.path)[len("api/"):]}"><code>&lt;{header.path}&gt;</code></a> '
                     f"{html.escape(first_sentence(header.about))}</li>")
    parts.append("</ul>")
    for kind, title in KINDS:
        rows = sorted((item.name, first_sentence(group.comment)) for header in found for group in header.groups
                      for item in group.items if item.kind == kind)
        parts.append(f"<h2>{title}</h2><table>")
        parts += [f'<tr><td><a href="{targets[name][len("api/"):]}"><code>{name}</code></a></td>'
                  f"<td>{html.escape(about)}</td></tr>" for name, about in rows]
        parts.append("</table>")
    return "".join(parts)


def make_pages(include):
    """({path of a page: (title, HTML)}, {name: page#name})"""
    found, kinds = read_all(include), find_kinds(include)
    targets = find_targets(found)
    pages = {page_of(header.path): (f"<{header.path}>", render_header(
        header, kinds.get(header.path, "included by its own name"), targets)) for header in found}
    pages["api/index.html"] = ("C API", render_index(found, targets))
    return pages, targets
