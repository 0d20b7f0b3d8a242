"""Rules of the house that no linter knows."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[2]
HOUSE = {
    "pyproject.toml", "agent", "collector", "dashboard", "deploy", "tests", "README.md", "Makefile", "LICENSE",
    "CHANGELOG.md", "docs",
}  # fmt: skip
# Written without their dots and slashes side by side, so that this file does not hold what it forbids.
REGISTRIES = (
    "pypi" + ".org",
    "files.pythonhosted" + ".org",
    "registry.npmjs" + ".org",
    "deb.debian" + ".org",
)
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:work|root)/\w")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def sources() -> list[Path]:
    return [ROOT / name for name in tracked() if name.endswith(".py") and not name.startswith("tests/")]


def texts() -> list[tuple[str, str]]:
    pairs = []
    for name in tracked():
        try:
            pairs.append((name, (ROOT / name).read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return pairs


def test_the_top_level_is_the_house() -> None:
    tops = {name.split("/")[0] for name in tracked()}

    assert {top for top in tops if not top.startswith(".")} <= HOUSE


def test_no_file_is_over_400_lines() -> None:
    long = [f"{p.relative_to(ROOT)} {n}" for p in sources() if (n := p.read_text().count("\n")) > 400]

    assert long == []


def test_no_function_is_over_40_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= 40
    ]

    assert long == []


def test_the_contract_imports_the_standard_library_only() -> None:
    allowed = sys.stdlib_module_names | {"flopwatch", "tomli"}
    foreign = set()
    for path in (ROOT / "agent" / "flopwatch").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            foreign |= {f"{path.name}: {name}" for name in names if name.split(".")[0] not in allowed}

    assert foreign == set()


def test_constraints_hold_no_address_and_no_lock_file_is_tracked() -> None:
    assert "://" not in (ROOT / "deploy" / "constraints.txt").read_text()
    assert [n for n in tracked() if re.search(r"(uv\.lock|pylock.*\.toml|poetry\.lock)$", n)] == []


def test_no_tracked_file_names_a_registry_or_a_path_of_this_machine() -> None:
    found = [
        name
        for name, text in texts()
        if any(host in text for host in REGISTRIES) or MACHINE_PATHS.search(text)
    ]

    assert [name for name in found if not name.startswith("tests/fixtures/trainer_logs/")] == []


def test_nothing_is_left_unfinished() -> None:
    words = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|NotImplemented" + r"Error)\b")
    found = [str(p.relative_to(ROOT)) for p in sources() if words.search(p.read_text())]

    assert found == []


def test_the_changelog_s_top_version_is_the_package_s() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    top = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert top is not None
    assert top.group(1) == version
