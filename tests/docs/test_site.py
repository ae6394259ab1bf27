"""The site builds without a warning, from pages that are all in its menu."""

import subprocess
import sys
from pathlib import Path

import click

from fusionlab.cli import main
from fusionlab.passes.catalogue import PASSES

ROOT = Path(__file__).parents[2]


def test_the_site_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    catalogue = (tmp_path / "site/passes.html").read_text()
    assert all(f'id="{name}"' in catalogue for name in PASSES)
    interface = (tmp_path / "site/api.html").read_text()
    assert "fusionlab.testing.assert_launches" in interface
    line = (tmp_path / "site/cli.html").read_text()
    context = click.Context(main)
    for name in main.list_commands(context):
        assert f'id="{name}"' in line
        for parameter in main.get_command(context, name).params:
            assert all(option in line for option in parameter.opts if option.startswith("-")), (name, parameter.opts)
    for page in (ROOT / "docs").rglob("*.md"):
        made = tmp_path / "site" / page.relative_to(ROOT / "docs").with_suffix(".html")
        assert made.is_file(), f"{page} is not in the site"


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100
