#!/bin/sh
# What a machine that only serves needs, for the Python given: the packages in requirements.txt, then Kente without those it trains with.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
pip="$1 -m pip install --no-cache-dir --disable-pip-version-check --no-deps"
$pip -r "$here/requirements.txt"
$pip "$here/.."
