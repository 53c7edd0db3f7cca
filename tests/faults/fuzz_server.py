"""Ask a server everything its description allows, and much that it does not: `python tests/faults/fuzz_server.py [CASES]`

schemathesis makes the requests, from /openapi.json, and checks every answer against it: no 5xx but those described, statuses, kinds, shapes and
headers as described, right requests taken, wrong ones refused. It lives in an environment of its own, .bench/schemathesis, made on
first use. The run has random weights. The exit code is schemathesis's: 0 if nothing was found.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".bench" / "schemathesis"
VERSION = "4.32.5"
CASES = 2_000
EXTRA = 20
"""Examples asked for beyond a fair share: an operation with little to vary gives fewer."""


def program() -> Path:
    """schemathesis's own, installed now if need be."""
    found = HOME / "bin" / "schemathesis"
    if not found.exists():
        subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
        pip = [HOME / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"schemathesis=={VERSION}"], check=True)
    return found


def main() -> int:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    schemathesis = program()
    with tempfile.TemporaryDirectory() as folder:
        run = runpy.run_path(str(ROOT / "tests" / "serve" / "tiny.py"))["make"](Path(folder) / "en-fr")
        command = [sys.executable, "-m", "kente", "serve", str(run), "--port", "0", "--json", "-q"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            try:
                address = json.loads(server.stdout.readline())["address"]
                operations = 19
                options = [
                    "--max-examples",
                    str(-(-cases // operations) + EXTRA),
                    "--continue-on-failure",
                    "--no-color",
                ]
                settings = ["--config-file", ROOT / "tests" / "faults" / "schemathesis.toml"]
                asked = [
                    schemathesis,
                    *settings,
                    "run",
                    f"{address}/openapi.json",
                    *options,
                    "--seed",
                    "1",
                ]
                return subprocess.run(asked, cwd=folder, env=os.environ | {"PYTHONHASHSEED": "0"}).returncode
            finally:
                server.terminate()


if __name__ == "__main__":
    sys.exit(main())
