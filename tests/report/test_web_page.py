"""Components put into a page that needs nothing else."""

from __future__ import annotations

import base64
import gzip
import json
import re
from importlib import resources

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.report.web_page import block, component, data_block, packed, script_of, styles_of

MODULES = {
    "main.js": '// Starts.\nimport { add as plus, ONE } from "./sums.js";\nimport * as all from'
    ' "./deep/more.js";\n\nplus(ONE, all.two());\n',
    "sums.js": "/** Adds.\n * @param {number} a\n */\nexport function add(a, b) {\n"
    "  return a + b;\n}\nexport const ONE = /** @type {number} */ (1);\nconst hidden = 3;\n",
    "deep/more.js": 'import { three } from "./three.js";\nexport const two = () => three - 1;\n',
    "deep/three.js": "const three = 3;\nexport { three };\n",
}


def test_modules_become_one_script_in_the_order_of_their_imports():
    """What is imported stands before who imports it, under the name it is imported by."""
    script = script_of("main.js", read=MODULES.__getitem__)
    places = [script.index(f"const module_{name} =") for name in
              ("sums", "deep_three", "deep_more", "main")]  # fmt: skip
    assert places == sorted(places)
    assert "const { add: plus, ONE } = module_sums;" in script
    assert "const all = module_deep_more;" in script
    assert "return { add, ONE };" in script
    assert "return { three };" in script
    assert "Adds" not in script
    assert "@type" not in script
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)


@pytest.mark.parametrize(
    ("modules", "told"),
    [
        ({"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'},
         "a.js imports b.js imports a.js: that is a circle"),
        ({"a.js": "export default 3;\n"}, "a.js has a line that cannot be put into a page"),
        ({"a.js": 'import { b } from "https://x.org/b.js";\n'}, "cannot be put into a page"),
        ({"a.js": 'const text = "</script>";\n'}, "contain the end of a script"),
    ],
)  # fmt: skip
def test_what_cannot_be_put_into_a_page_is_refused(modules, told):
    """Circles, other ways of importing, and what would end the script."""
    with pytest.raises(YardmasterError, match=re.escape(told)):
        script_of("a.js", read=modules.__getitem__)


def test_a_component_that_is_not_there_is_told():
    """Its name is in the sentence."""
    with pytest.raises(YardmasterError, match=r"no component nothing\.js"):
        script_of("nothing.js")


def test_every_component_can_be_put_into_a_page():
    """Whichever module of the package a report wants, its imports are found."""
    folder = resources.files("yardmaster.report").joinpath("web")
    names = [item.name for item in folder.iterdir() if item.name.endswith(".js")]
    assert "contrast.js" in names
    for name in names:
        if '"./vendor/' not in component(name):
            assert f"const module_{name.removesuffix('.js')} =" in script_of(name)


def test_data_cannot_end_its_element():
    """Whatever a name says, the block is one element of harmless letters; and can be read back."""
    hostile = {"name": "</script><script>alert(1)</script>", "other": "\u2028é"}
    text = data_block("here", hostile)
    inside = re.fullmatch(r'<script type="text/plain" id="here">([A-Za-z0-9+/=]*)</script>\n', text)
    assert inside is not None
    assert json.loads(gzip.decompress(base64.b64decode(inside[1]))) == hostile
    with pytest.raises(ValueError, match="JSON"):
        data_block("here", float("nan"))


def test_packing_is_the_same_every_time():
    """No time of day is in it."""
    assert packed(b"yard" * 100) == packed(b"yard" * 100)
    assert gzip.decompress(base64.b64decode(packed(b"yard")))[:4] == b"yard"
    assert packed(b"yard") in block("x", packed(b"yard"))


def test_styles_load_nothing():
    """No style sheet of a report leads elsewhere."""
    assert not re.search(r"@import|url\(", styles_of("charts.css", "gantt.css"))
