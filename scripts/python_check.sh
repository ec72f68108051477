#!/bin/sh
# Is $1 a Python 3.11 or newer that can make virtual environments? Exit 1 and say what to do if not.
set -eu
python=$1

refuse() {
    {
        echo "Python 3.11 or newer is needed, with its venv module"
        echo "detail: $1"
        echo "hint: run: make PYTHON=/path/to/python3.11 ..."
    } >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 || refuse "\"$python\" was not found"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    refuse "\"$python\" is $("$python" --version 2>&1)"
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    refuse "\"$python\" has no venv (on Debian and Ubuntu: apt-get install -y python3-venv)"
