"""Running the command line in this process."""

import pytest
from click.testing import CliRunner

from fusionlab.cli import main


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """``cli("bisect", ...)``: click's result; nothing of a test is left in the user's cache."""
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path / "cache"))

    def run(*arguments):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
