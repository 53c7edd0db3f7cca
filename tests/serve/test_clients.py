"""Clients that people use already, unchanged, against a real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

TEXT = "The cat sees the dog."
ROOT = Path(__file__).resolve().parents[2]
NODE = Path(os.environ.get("KENTE_NODE_MODULES", ROOT / ".bench" / "node" / "node_modules"))


@pytest.fixture(scope="module")
def wanted(server: Any) -> str:
    return server.post("/translate", {"q": TEXT, "source": "en", "target": "fr"}).json["translatedText"]


def test_libretranslatepy(server: Any, wanted: str) -> None:
    client = pytest.importorskip("libretranslatepy", reason="pip install libretranslatepy").LibreTranslateAPI(
        server.address
    )
    assert client.translate(TEXT, "en", "fr") == wanted
    assert client.translate(TEXT, "auto", "fr") == wanted
    assert client.detect(TEXT)[0]["language"] == "en"
    assert {"code": "en", "name": "English", "targets": ["fr"]} in client.languages()
    with pytest.raises(Exception, match="400"):
        client.translate(TEXT, "en", "xx")


def test_npm_translate(server: Any, wanted: str) -> None:
    package = NODE / "translate" / "package.json"
    if shutil.which("node") is None or not package.exists():
        pytest.skip(f"no node or no {package.parent}: npm install --prefix {NODE.parent} translate")
    main = json.loads(package.read_bytes()).get("main") or "index.js"
    script = f"""
        import translate from {json.dumps((package.parent / main).as_uri())};
        translate.engine = "libre"; translate.url = {json.dumps(server.address + "/translate")};
        console.log(JSON.stringify([await translate({json.dumps(TEXT)}, {{from: "en", to: "fr"}}),
            await translate("x", {{from: "en", to: "de"}}).catch(error => "refused: " + error.message)]));
    """
    done = subprocess.run(["node", "--input-type=module", "-e", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    translated, refused = json.loads(done.stdout)
    assert translated == wanted and refused.startswith("refused: ") and "de is not translated to here" in refused


def curl(*arguments: str) -> Any:
    if shutil.which("curl") is None:
        pytest.skip("no curl here")
    done = subprocess.run(["curl", "-sS", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_curl(server: Any, wanted: str, tmp_path: Path) -> None:
    address = server.address
    kind = ("-H", "Content-Type: application/json")
    asked = json.dumps({"q": TEXT, "source": "en", "target": "fr"})
    assert curl("-X", "POST", f"{address}/translate", *kind, "-d", asked) == {"translatedText": wanted}
    fields = [
        part
        for field in (f"q={TEXT}", "source=auto", "target=fr", "format=text")
        for part in ("--data-urlencode", field)
    ]
    assert curl(f"{address}/translate", *fields)["translatedText"] == wanted
    form = [part for field in (f"q={TEXT}", "source=en", "target=fr") for part in ("-F", field)]
    assert curl(f"{address}/translate", *form) == {"translatedText": wanted}
    assert curl(f"{address}/languages")[0]["code"] == "en"
    assert curl(f"{address}/detect", "-d", "q=The dog sees the cat.")[0]["language"] == "en"
    letter = tmp_path / "letter.txt"
    letter.write_text(TEXT)
    file = ("-F", f"file=@{letter}", "-F", "source=en", "-F", "target=fr")
    assert curl(f"{address}/translate_file", *file)["translatedFileUrl"].startswith(f"{address}/download_file/")
