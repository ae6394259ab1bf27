"""The house's rules that a program can read: one direction of imports, files of one purpose, telling names."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINKS = {"workloads": "workloads", "characterisation": "studies/characterisation"}
"""Packages of fusionlab that are links to folders of the checkout."""
FOLDERS = [ROOT / "fusionlab", *(ROOT / "fusionlab" / name for name in LINKS)]
SOURCES = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))

LEAVES = {
    f"fusionlab.{name}"
    for name in (
        "errors",
        "workload",
        "jax_setup",
        "bytesize",
        "time_order",
        "files",
        "host_settings",
        "subprocesses",
        "store",
        "units",
    )
}
ALLOWED = {
    "hlo": "",
    "codegen": "hlo",
    "equivalence.exact": "equivalence.few_walkers codegen hlo",
    "passes": "equivalence.exact codegen hlo",
    "equivalence": "codegen hlo",
    "bisection": "equivalence passes codegen hlo",
    "ledger": "codegen hlo",
    "device_code": "ledger codegen hlo",
    "measure": "ledger codegen hlo",
    "search": "device_code ledger passes codegen hlo",
    "versions": "device_code ledger codegen hlo",
    "corpus": "versions equivalence codegen hlo",
    "report": "study search measure versions device_code ledger equivalence passes codegen hlo",
    "report.pictures": "versions device_code ledger codegen hlo",
    "report.tables": "study search measure ledger equivalence passes hlo",
    "bench": "study measure ledger equivalence passes codegen hlo",
    "documents": "__version__ codegen",
    "facts": "versions device_code documents report.tables ledger codegen hlo",
    "testing": "device_code report.tables ledger equivalence codegen hlo",
    "optimizing": "study ledger equivalence passes codegen hlo",
    "study": "device_code ledger equivalence passes codegen hlo",
}
BELOW = {
    **{f"fusionlab.{name}": {f"fusionlab.{one}" for one in (name, *below.split())} for name, below in ALLOWED.items()},
    "fusionlab.workloads": {"fusionlab.workloads", "fusionlab.workload", "fusionlab.errors"},
    "fusionlab.characterisation": {
        "fusionlab.characterisation", "fusionlab.versions", "fusionlab.ledger", "fusionlab.codegen", "fusionlab.hlo",
        "fusionlab.workloads",
    },
}  # fmt: skip
"""What a package may import of this project, beside itself and LEAVES (workloads only what is listed).

A new folder of fusionlab is a row of ALLOWED, which lists what lies below it."""
TOP = {"fusionlab.__main__", "fusionlab.cli"}
"""What may import everything; ``fusionlab.cli`` is imported by these alone."""
DRAWERS = {"utils", "util", "misc", "common", "helpers", "helper", "core", "base", "manager", "managers", "tools"}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path, types=True):
    """The modules of this project that a file imports, wherever in the file it does; not those for ``types`` alone."""
    found, tree = set(), ast.parse(path.read_text())
    for node in ast.walk(tree):
        if not types and isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 or path.is_relative_to(ROOT / "tests"), f"{path}: relative import"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in found if name.split(".")[0] in ("fusionlab", *LINKS, "studies")}


def within(name, packages):
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def wrong_imports(path):
    """What a file imports against the rules."""
    name, found = module_name(path), imported(path)
    for package, allowed in BELOW.items():
        if within(name, {package}):
            allowed = allowed if package == "fusionlab.workloads" else allowed | LEAVES
            yield from (one for one in found if not within(one, allowed))
    if not within(name, TOP):
        yield from (one for one in found if within(one, {"fusionlab.cli"}))


def test_imports_go_one_way():
    wrong = {module_name(path): sorted(set(wrong_imports(path))) for path in SOURCES}
    assert {name: found for name, found in wrong.items() if found} == {}


def without_row(names):
    """The modules and packages of ``names`` that no rule is about."""
    return sorted(name for name in names if name != "fusionlab" and not within(name, {*BELOW, *LEAVES, *TOP}))


def test_every_folder_has_a_row():
    assert without_row(map(module_name, SOURCES)) == []
    assert without_row(["fusionlab.new", "fusionlab.new.module", "fusionlab.hlo.new"]) == [
        "fusionlab.new",
        "fusionlab.new.module",
    ]


def test_no_file_is_a_drawer():
    files = sorted([*SOURCES, *(ROOT / "tests").rglob("*.py")])
    assert [str(path.relative_to(ROOT)) for path in files if DRAWERS & {path.stem, path.parent.name}] == []


def test_the_rules_see_imports_inside_functions(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("def f():\n    from fusionlab.cli import main\n    import fusionlab.workloads.catalogue\n")
    assert imported(path) == {"fusionlab.cli.main", "fusionlab.workloads.catalogue"}


def test_one_name_is_installed():
    """What stands beside fusionlab in the checkout is imported by its name within fusionlab alone, as in a wheel."""
    for name, folder in LINKS.items():
        assert (ROOT / "fusionlab" / name).resolve() == ROOT / folder
    files = [*SOURCES, *(path for top in ("tests", "benchmarks", "examples") for path in (ROOT / top).rglob("*.py"))]
    found = {str(path.relative_to(ROOT)): imported(path) for path in files}
    assert [path for path, names in found.items() if any(within(name, {*LINKS, "studies"}) for name in names)] == []


def test_class_names_are_unique():
    sources = [path for path in SOURCES if not path.is_relative_to(ROOT / "fusionlab/workloads")]
    classes = [
        node.name for path in sources for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)
    ]
    assert {name for name in classes if classes.count(name) > 1} == set()


FLAGSHIP = ROOT / "fusionlab" / "passes" / "fuse_jvp_replay"


def fields_of(tree):
    """The number of fields of the classes of a module: those that are declared, and attributes that are assigned."""
    count = 0
    for made in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        found = {node.target.id for node in made.body if isinstance(node, ast.AnnAssign)}
        stored = (
            node for node in ast.walk(made) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        )
        found.update(node.attr for node in stored if ast.unparse(node.value) == "self")
        count += len(found)
    return count


def test_the_flagship_s_modules_know_few_others():
    """At most 15 modules of the project each. Classes and fields are as many as were reached; the bars are 10 and 60.

    Complexity is ruff's (C901), at most 10.
    """
    trees = {path.name: ast.parse(path.read_text()) for path in FLAGSHIP.rglob("*.py")}
    many = {}
    for name, tree in trees.items():
        found = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        if len({module for module in found if module.startswith("fusionlab")}) > 15:
            many[name] = found
    assert many == {}
    assert sum(isinstance(node, ast.ClassDef) for tree in trees.values() for node in ast.walk(tree)) <= 18
    assert sum(map(fields_of, trees.values())) <= 115


def test_what_the_flagship_tries_knows_the_directions_alone_of_its_steps():
    within_folder, known = "fusionlab.passes.fuse_jvp_replay", set()
    for path in (FLAGSHIP / "identify").glob("*.py"):
        known |= {name for name in imported(path) if within(name, {within_folder})}
    others = {name for name in known if not within(name, {f"{within_folder}.identify"})}
    assert {name.removeprefix(within_folder).split(".")[1] for name in others} == {"directions"}


def test_the_flagship_is_five_steps_in_one_function():
    """Trials of directions, products, tails, decision; emission is of its result."""
    [contents] = [
        node for node in ast.parse((FLAGSHIP / "__init__.py").read_text()).body if isinstance(node, ast.FunctionDef)
    ]
    called = [
        node.func.id for node in ast.walk(contents) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    steps = ("trials", "products_of", "weighed_tails", "decision")
    assert sorted(name for name in called if name in steps) == sorted(steps)


HELP = (
    "import fusionlab.cli\ntry:\n    fusionlab.cli.main(['--help'])\nexcept SystemExit as end:\n    assert not end.code"
)
JAX = {"jax", "jaxlib"}
LIGHT = {
    "import fusionlab": JAX | {"numpy", "click", "rich"},
    "import fusionlab.workloads.catalogue": JAX,
    HELP: JAX | {"numpy", "rich", "networkx"},
}


@pytest.mark.parametrize("code", LIGHT, ids=["package", "catalogue", "help"])
def test_what_is_light_imports_nothing_heavy(code):
    found = f"{LIGHT[code]} & set(sys.modules)"
    program = f"{code}\nimport sys\nassert not {found}, {found}"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ("apply" in done.stdout) == ("--help" in code)
