"""The components of pages, put into a page that needs nothing else.

The modules in `report/web` import one another by relative paths, which a page opened from a disk
may not do. So those that a page needs are written one after the other into one script: each becomes
a function that returns what it exports, and its imports are taken from the functions before it. The
page's security policy names the script's digest: no other script can run, whatever a name says.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable
from importlib import resources
from typing import Any

from yardmaster.errors import YardmasterError

_IMPORT = re.compile(
    r'^import (?:\{([^}]*)\}|\* as (\w+)) from "\./([\w./-]+\.js)";\n', re.MULTILINE
)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) )", re.MULTILINE)
_LIST = re.compile(r"^export \{ ([\w, ]+) \};?\n?", re.MULTILINE)
_NAME = re.compile(r"^(?:async )?(?:function|class|const|let) (\w+)")
_COMMENT = re.compile(r"^[ \t]*(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)[ \t]*\n", re.MULTILINE)
_REMARK = re.compile(r"/\*\*[^*\n]*\*/ ?")
_INDENT = re.compile(r"^[ \t]+|\n(?=\n)", re.MULTILINE)


def component(name: str) -> str:
    """Return the text of a file in `report/web`.

    Raises:
        YardmasterError: if there is none of this name.
    """
    place = resources.files("yardmaster.report").joinpath("web", *name.split("/"))
    if not place.is_file():
        raise YardmasterError(f"There is no component {name}.")
    return place.read_text("utf-8")


def script_of(*modules: str, read: Callable[[str], str] = component) -> str:
    """Return the modules with all they import as one script; the last ones are run last.

    Args:
        modules: names of files in `report/web`, such as `report_main.js`.
        read: returns the text of a module.

    Raises:
        YardmasterError: if a module is missing, written in a way that is not understood, or
            imports itself by a detour.
    """
    found: dict[str, str] = {}
    for name in modules:
        _gather(name, found, (), read)
    body = "".join(found.values())
    if "</script" in body.lower() or "<!--" in body:
        raise YardmasterError("The page's components contain the end of a script.")
    return f'"use strict";\n{body}'


def _gather(
    name: str, found: dict[str, str], waiting: tuple[str, ...], read: Callable[[str], str]
) -> None:
    """Put a module into its place: behind all that it imports."""
    if name in found:
        return
    if name in waiting:
        raise YardmasterError(f"{' imports '.join((*waiting, name))}: that is a circle.")
    text = _without_remarks(read(name))
    for _, _, other in _IMPORT.findall(text):
        _gather(_beside(name, other), found, (*waiting, name), read)
    found[name] = _wrapped(name, text)


def _without_remarks(text: str) -> str:
    """Return a module without comments and indents, which are for readers of the source."""
    return _INDENT.sub("", _REMARK.sub("", _COMMENT.sub("", text)))


def _beside(name: str, other: str) -> str:
    folder = name.rpartition("/")[0]
    return f"{folder}/{other}" if folder else other


def _wrapped(name: str, text: str) -> str:
    """Return a module as a function that returns what it exports."""
    text = _IMPORT.sub(lambda match: _taken(name, match), text)
    exports = [_name_after(text, match.end(), name) for match in _EXPORT.finditer(text)]
    exports += [name for found in _LIST.findall(text) for name in found.split(", ")]
    body = _LIST.sub("", _EXPORT.sub("", text))
    strange = re.search(r"^(?:import|export)\b.*", body, re.MULTILINE)
    if strange:
        raise YardmasterError(f"{name} has a line that cannot be put into a page: {strange[0]}")
    return (
        f"const {_variable(name)} = (() => {{\n{body}return {{ {', '.join(exports)} }};\n}})();\n"
    )


def _name_after(text: str, place: int, module: str) -> str:
    match = _NAME.match(text[place:])
    if match is None:
        raise YardmasterError(f"{module} exports something that has no name.")
    return match[1]


def _taken(name: str, match: re.Match[str]) -> str:
    """Return an import as a constant: `{ a, b as c }` becomes `{ a, b: c }`."""
    names, whole, other = match.groups()
    source = _variable(_beside(name, other))
    if whole:
        return f"const {whole} = {source};\n"
    renamed = re.sub(r"(\w+) as (\w+)", r"\1: \2", " ".join(names.split()))
    return f"const {{ {renamed} }} = {source};\n"


def _variable(name: str) -> str:
    return "module_" + re.sub(r"\W", "_", name.removesuffix(".js"))


def styles_of(*names: str) -> str:
    """Return style sheets of `report/web`, one after the other."""
    return "".join(map(component, names))


def digest_of(script: str) -> str:
    """Return the digest by which a security policy lets a script run."""
    found = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{found}'"


def packed(content: bytes) -> str:
    """Return bytes as text for a page, as small as it gets; the same bytes give the same text."""
    return base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode()


def data_block(name: str, value: Any) -> str:
    """Return data as an element that no browser runs; names in it cannot end it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return block(name, packed(text.encode()))


def block(name: str, text: str) -> str:
    """Return text, as `packed` makes it, as an element that no browser runs."""
    return f'<script type="text/plain" id="{name}">{text}</script>\n'
