"""Every command and snippet of the pages is understood (here, quickly) and run (most by ``make full``, tiny).

A new command is run without a line here; one that cannot be has to be entered in ``running.NOT_RUN`` with the reason.
"""

import ast
import sys

import click
import pytest

from fusionlab.cli import main
from tests.compiled import cache_with_shared_compiles

from . import running
from .pages import PAGES, ROOT, Command, Snippet, blocks, commands, ids, parts

LANGUAGES = {"", "python", "sh", "console", "text", "mlir", "toml", "json", "yaml"}
QUICK = ("testing.md",)
"""Pages that are run in the fast tier; the slow one has theory.md and README.md, ``make full`` the rest."""
LONG = {"features.md": 5}
"""Pages whose commands do not need each other, and in how many parts they are run."""
each_page = pytest.mark.parametrize("page", PAGES, ids=ids)
done_before = set()
with_something = [page for page in PAGES if any(isinstance(p, Command) or p.language == "python" for p in parts(page))]


@each_page
def test_commands_are_understood(page):
    """The command is there, and so are its options."""
    for part in parts(page):
        if isinstance(part, Command) and part.text not in running.NOT_RUN:
            words = running.as_run(part.text)
            assert words[0] in ("fusionlab", "python"), f"not run, and not in NOT_RUN: {part.text}"
            if words[0] == "fusionlab":
                understood(words[1:], part.text)


def understood(words, text):
    try:
        context = main.make_context("fusionlab", list(words))
        name, command, rest = main.resolve_command(context, [*context._protected_args, *context.args])
        command.make_context(name, list(rest), parent=context)
    except click.exceptions.Exit:
        return  # --help, --version
    except Exception as error:
        pytest.fail(f"{text}: {error}")


@each_page
def test_python_is_fenced_as_such(page):
    """A block that imports something is Python, and is run."""
    for language, code, _ in blocks(page.read_text()):
        assert language in LANGUAGES, f"{page.name}: a block of {language!r}"
        if language == "python":
            ast.parse(code)
        elif language == "" and "import " in code:
            with pytest.raises(SyntaxError):
                ast.parse(code)


def test_tables_name_what_is_written():
    written = {part.text for page in PAGES for part in parts(page) if isinstance(part, Command)}
    for table in (running.REPLACED, running.EXIT_CODES, running.NOT_RUN):
        assert set(table) <= written, set(table) - written
    assert all(len(reason.split()) > 3 for reason in running.NOT_RUN.values())


def test_the_parser_sees_commands_and_leaves_output_alone():
    code = "$ fusionlab models   # all\nmodels: fusionlab\n  python x.py > y\nfusionlabs\nfusionlab: an error"
    assert list(commands(code)) == ["fusionlab models", "python x.py > y"]
    assert [b[0] for b in blocks("text\n\n    one\n\n    two\nmore\n```sh\nx\n```\n")] == ["", "sh"]


def run_page(page, folder, part, count):
    """Write its files, run its commands and its Python, in order; commands of models once for all pages.

    Of a long page, every ``count``-th of what is in it, from ``part`` on.
    """
    running.make_files(folder)
    names = {"__name__": "__main__"}
    sys.path.insert(0, str(folder))
    before = set(sys.modules)
    try:
        for one in list(parts(page))[part::count]:
            if isinstance(one, Snippet):
                if one.file:
                    (folder / one.file).write_text(one.code + "\n")
                elif one.language == "python":
                    exec(compile(one.code, str(page), "exec"), names)
                continue
            words = tuple(running.as_run(one.text))
            if one.text in running.NOT_RUN or words in done_before:
                continue
            code, said = running.run_command(one.text, folder)
            assert code == running.EXIT_CODES.get(one.text, 0), f"{' '.join(words)}\n{said[-3000:]}"
            if "--model" in words and "--out" not in words and ".py:" not in one.text:
                done_before.add(words)
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def cost(page):
    if page.name in QUICK:
        return ()
    return pytest.mark.slow if page.name in ("README.md", "theory.md") else pytest.mark.full


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUSIONLAB_CACHE", str(cache_with_shared_compiles(tmp_path_factory.mktemp("own"))))
        yield


def runs():
    """A test per page, several for a long one."""
    for page in with_something:
        count = LONG.get(page.name, 1)
        name = str(page.relative_to(ROOT))
        for part in range(count):
            yield pytest.param(page, part, count, marks=cost(page), id=f"{name}-{part}" if count > 1 else name)


@pytest.mark.parametrize(("page", "part", "count"), list(runs()))
def test_a_page_runs(page, part, count, tmp_path):
    run_page(page, tmp_path, part, count)
