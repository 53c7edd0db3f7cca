"""The promise: kill -9 whenever you like, resume, and nobody can tell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_twenty_kills_leave_no_trace_in_the_weights():
    script = Path(__file__).with_name("kill_resume.py")
    done = subprocess.run([sys.executable, str(script), "20"], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 kills" in done.stdout and ", 0 with other weights" in done.stdout.splitlines()[-1]
