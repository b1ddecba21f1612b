# SPDX-License-Identifier: MIT
"""Makes the page of the Python package: the docstrings of the names that `from hotfn import *` imports, and of
hotfn.open.  The modules are parsed, not imported."""
import ast
import html
import re

PAGE = "api/python.html"
EXTRA = ("open",)      # public, although * does not import it


def read_modules(package):
    """{module name: tree}"""
    return {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.glob("*.py"))}


def list_names(modules):
    """The names of __all__ and EXTRA, in alphabetical order."""
    value = next(node.value for node in modules["__init__"].body
                 if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    return sorted({*ast.literal_eval(value), *EXTRA}, key=str.lower)


def find_origins(modules):
    """{name: the module from which __init__ imports it}; "" if the name is itself a module."""
    return {alias.asname or alias.name: node.module or "" for node in modules["__init__"].body
            if isinstance(node, ast.ImportFrom) and node.level == 1 for alias in node.names}


def find_definition(name, stem, modules):
    """The class or function `name` of module `stem`; without a stem, the module `name`.  None if there is none."""
    if not stem:
        return modules.get(name)
    return next((node for node in modules[stem].body
                 if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name), None)


def find_base(name, modules):
    """The class of the package with this name, or None."""
    found = (find_definition(name, stem, modules) for stem in modules if stem != "_structs")
    return next((node for node in found if isinstance(node, ast.ClassDef)), None)


def signature(node):
    arguments = re.sub(r"^self(?:, )?", "", ast.unparse(node.args))
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({arguments}){returned}"


def is_property(node):
    return any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list)


def render_text(node):
    """Turn a docstring into HTML: paragraphs, and <pre> for parts that are indented or aligned."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
        text = html.escape(paragraph, quote=False)
        if re.search(r"^ |\S  +\S", re.sub(r"([.:;])  ", r"\1 ", paragraph), re.MULTILINE):
            parts.append(f"<pre>{text}</pre>")
        elif text:
            parts.append("<p>" + re.sub(r"`([^`]+)`", r"<code>\1</code>", text) + "</p>")
    return "".join(parts)


def read_fields(node, lines):
    """The lines of code that declare the fields of a dataclass, with their comments."""
    fields = [child for child in node.body if isinstance(child, ast.AnnAssign) and not child.target.id.startswith("_")]
    return [line.strip() for child in fields for line in lines[child.lineno - 1:child.end_lineno]]


def find_bases(node, modules):
    """The classes of the package from which a class derives."""
    names = [base.id for base in getattr(node, "bases", ()) if isinstance(base, ast.Name)]
    return [base for base in (find_base(name, modules) for name in names) if base]


def list_methods(node, modules):
    found = [child for child in node.body if isinstance(child, ast.FunctionDef)
             and not child.name.startswith("_") and ast.get_docstring(child)]
    names = {child.name for child in found}
    inherited = [child for base in find_bases(node, modules) for child in list_methods(base, modules)]
    return found + [child for child in inherited if child.name not in names]


def is_dataclass(node):
    return isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(mark) for mark in node.decorator_list)


def render_entry(name, node, source, modules):
    title = f"hotfn.{signature(node) if isinstance(node, ast.FunctionDef) else name}"
    parts = [f'<section class="entry"><a id="{name}"></a><h3>{html.escape(title)}</h3>',
             f'<div class="about">{render_text(node)}</div>']
    if not isinstance(node, ast.FunctionDef):
        fields = read_fields(node, source.split("\n")) if is_dataclass(node) else []
        if fields:
            parts.append(f"<pre><code>{html.escape(chr(10).join(fields), quote=False)}</code></pre>")
        for method in list_methods(node, modules):
            head = method.name if is_property(method) else signature(method)
            parts.append(f'<h4 id="{name}.{method.name}">{html.escape(head)}</h4>{render_text(method)}')
    return "".join(parts) + "</section>"


def make_page(package):
    """(title, HTML, {name: page#name})"""
    modules = read_modules(package)
    names = list_names(modules)
    origins = find_origins(modules)
    definitions = {name: find_definition(name, origins[name], modules) for name in names}
    missing = [name for name, node in definitions.items() if node is None or not ast.get_docstring(node)]
    if missing:
        raise SystemExit(f"site: {', '.join(missing)} of bindings/python/hotfn/__init__.py has no docstring")
    index = " · ".join(f'<a href="#{name}">{name}</a>' for name in names)
    entries = "".join(
        render_entry(name, node, (package / f"{origins[name] or name}.py").read_text(encoding="utf-8"), modules)
        for name, node in definitions.items())
    text = f"<h1>Python package</h1>{render_text(modules['__init__'])}<p>{index}</p>{entries}"
    targets = {f"hotfn.{name}": f"{PAGE}#{name}" for name in names}
    return "Python package", text, targets
