#!/bin/sh
# Make .venv with $1 where there is none, and install this project into it with the extra $2.
set -eu
python=$1
extra=$2

[ -x .venv/bin/python ] || "$python" -m venv .venv
echo "installing steadyview[$extra] into .venv (PySpark is large: a minute or two, this once) ..."
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[$extra]"
