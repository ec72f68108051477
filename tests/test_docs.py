"""The docs are true as far as a machine can tell: commands, options, links, snippets, doctests."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

import steadyview
from steadyview.cli.app import app

ROOT = Path(__file__).parent.parent
CLI_REFERENCE = (ROOT / "docs" / "cli.md").read_text()
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
SHARED = {"--project", "--json", "--debug", "--help"}


def commands(group=None, prefix=()):
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*prefix, name))
        else:
            yield " ".join((*prefix, name)), command


COMMANDS = dict(commands())


def section_of(command: str) -> str:
    match = re.search(rf"### `steadyview {command}\b.*?(?=\n### |\Z)", CLI_REFERENCE, re.S)
    assert match, f"docs/cli.md has no section for {command}"
    return match[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name):
    section = section_of(name)
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "argument":
            assert parameter.metavar in section
        for option in set(parameter.opts) - SHARED:
            if option.startswith("--"):
                assert f"`{option}`" in section


def test_every_documented_command_exists():
    documented = re.findall(r"### `steadyview ([a-z-]+(?: [a-z]+)?)", CLI_REFERENCE)
    assert sorted(documented) == sorted(COMMANDS)


def snippets(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.S | re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_shown_in_shell_snippets_exist(page):
    for snippet in snippets(page, "sh"):
        for line in snippet.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["steadyview"]:
                check_steadyview(words[1:])
            if words[:1] == ["make"]:
                assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M), line


def check_steadyview(words: list[str]) -> None:
    name = words[0] if words[0] in COMMANDS else " ".join(words[:2])
    assert name in COMMANDS, words
    known = {option for p in COMMANDS[name].params for option in p.opts} | {"--help"}
    assert {w.split("=")[0] for w in words if w.startswith("--")} <= known, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_toml_snippets_are_toml(page):
    for snippet in snippets(page, "toml"):
        tomllib.loads(snippet)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_glossary_names_files_that_exist():
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    files = re.findall(r"`(\w+(?:/\w+)*\.py)`", glossary)
    assert files
    assert [f for f in files if not (ROOT / "src" / "steadyview" / f).exists()] == []


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())
    helped = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.M))
    assert phony - helped == {"prerequisites"}


MODULES = [m.name for m in pkgutil.walk_packages(steadyview.__path__, "steadyview.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
