"""The checks before anything is installed, on machines that have this or that program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"
TOOLS = ("sh", "sed", "head", "cat", "chmod", "grep")


@pytest.fixture
def machine(tmp_path):
    """A PATH of its own: the plain tools, and what a test adds."""
    for tool in TOOLS:
        (tmp_path / tool).symlink_to(shutil.which(tool))
    return tmp_path


def add(machine: Path, name: str, script: str) -> None:
    machine.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
    (machine / name).write_text(f"#!/bin/sh\n{script}\n")
    (machine / name).chmod(0o755)


def java(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


def check(machine: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(SCRIPTS / "java_check.sh")]
    environment["PATH"] = str(machine)
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_a_java_of_17_or_newer_is_taken_silently(machine, version):
    add(machine, "java", java(version))
    ended = check(machine)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "16"])
def test_an_old_java_is_refused_with_the_command_to_run(machine, version):
    add(machine, "java", java(version))
    add(machine, "apt-get", "exit 9")
    add(machine, "id", "echo 1000")
    ended = check(machine)
    assert ended.returncode == 1
    assert "Java 17 or newer is needed" in ended.stderr
    assert "sudo apt-get install -y openjdk-17-jre-headless" in ended.stderr


@pytest.mark.parametrize(
    ("manager", "command"), [("dnf", "sudo dnf install"), ("brew", "brew install openjdk@17")]
)
def test_the_command_is_the_one_of_the_system(machine, manager, command):
    add(machine, manager, "exit 9")
    assert f"hint: run: {command}" in check(machine).stderr


def test_java_home_is_asked_before_the_path(machine):
    add(machine, "java", java("11.0.2"))
    add(machine, "home/bin/java", java("17.0.1"))
    assert check(machine, JAVA_HOME=str(machine / "home")).returncode == 0


def test_a_java_home_that_is_no_good_is_told_and_nothing_installed(machine):
    add(machine, "java", java("17.0.1"))
    add(machine, "apt-get", f"echo called >> {machine}/calls")
    add(machine, "id", "echo 0")
    ended = check(machine, JAVA_HOME="/nowhere")
    assert ended.returncode == 1
    assert "unset JAVA_HOME" in ended.stderr
    assert not (machine / "calls").exists()


def test_root_on_debian_gets_java_installed(machine):
    add(machine, "id", "echo 0")
    made = f"{machine}/java"
    (machine / "version").write_text('openjdk version "17.0.15"\n')
    install = f"printf '#!/bin/sh\\ncat {machine}/version >&2\\n' > {made}; chmod 755 {made}"
    add(machine, "apt-get", f'case "$*" in *openjdk-17-jre-headless*) {install};; esac')
    ended = check(machine)
    assert ended.returncode == 0, ended.stderr
    assert "installing openjdk-17-jre-headless" in ended.stdout


def test_an_installation_that_fails_is_told(machine):
    add(machine, "id", "echo 0")
    add(machine, "apt-get", "exit 100")
    assert check(machine).returncode == 1


def python_check(python: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(SCRIPTS / "python_check.sh"), python]
    return subprocess.run(command, capture_output=True, text=True)


def test_an_old_python_is_refused(machine):
    add(machine, "python3", 'test "$1" = --version && echo Python 3.9.2; exit 1')
    ended = python_check(str(machine / "python3"))
    assert ended.returncode == 1
    assert "Python 3.9.2" in ended.stderr


def test_a_missing_python_is_refused(machine):
    assert "was not found" in python_check(str(machine / "nothing")).stderr
