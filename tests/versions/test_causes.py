"""The search for a cause, on sides whose compiles are a table."""

import pytest

from fusionlab.versions.causes import (
    ALIKE,
    GONE,
    RETURNS,
    Side,
    candidates,
    causes,
    differing,
    flags_in,
    passes_in,
)
from fusionlab.versions.environments import JaxEnvironment

OLD = JaxEnvironment("0.6.2", None)
NEW = JaxEnvironment("0.10.2", None)
FIGURES = {"launches": 10, "copies": 0, "temp_bytes": 4096, "model_us": 20.0, "cas_loops": 0}


def side(where, passes=(), flags=None, **figures):
    return Side(where, {**FIGURES, **figures}, tuple(passes), flags or {})


def measured(table):
    """A measure by a table: (version, what is set) to the figures that differ from FIGURES; None for no compile."""

    def measure(where, options):
        for one in options:
            (value,) = one.values()
            found = table.get((where.version, value), {"launches": 12})
            yield None if found is None else {**FIGURES, **found}

    return measure


def test_a_pass_without_which_the_older_figure_returns():
    old, new = side(OLD, ["fusion", "cse"]), side(NEW, ["fusion", "splitter", "cse"], launches=12)
    (found,) = causes(old, new, measured({("0.10.2", "splitter"): {"launches": 10}}))
    assert (found.figure, found.older, found.newer) == ("launches", 10, 12)
    assert (found.by, found.how, found.trial, found.tried) == (("pass splitter",), RETURNS, 10, 3)


def test_what_returns_all_figures_comes_first():
    old, new = side(OLD, ["a"]), side(NEW, ["a", "b"], launches=12, temp_bytes=8192)
    table = {("0.10.2", "a"): {"launches": 10, "temp_bytes": 1}, ("0.10.2", "b"): {"launches": 10, "temp_bytes": 4096}}
    launches, temp = causes(old, new, measured(table))
    assert launches.by == ("pass b", "pass a")
    assert temp.by == ("pass b",)


def test_a_flag_with_another_default():
    old = side(OLD, ["a"], {"xla_gpu_ftz": "true", "xla_dump_to": "x"})
    new = side(NEW, ["a"], {"xla_dump_to": "y"}, cas_loops=1)
    (found,) = causes(old, new, measured({("0.10.2", True): {"cas_loops": 0}, ("0.10.2", "a"): {"cas_loops": 1}}))
    assert found.by == ("xla_gpu_ftz=true",)


def test_none_of_them():
    old, new = side(OLD, ["a"]), side(NEW, ["a"], cas_loops=1)
    table = {("0.10.2", "a"): {"cas_loops": 1}, ("0.6.2", "a"): {"cas_loops": 0}}
    (found,) = causes(old, new, measured(table))
    assert (found.by, found.how, found.trial, found.tried) == ((), "", None, 1)


def test_a_pass_that_changed_is_off_on_both_sides():
    old, new = side(OLD, ["fusion"]), side(NEW, ["fusion"], launches=12)
    table = {("0.10.2", "fusion"): {"launches": 31}, ("0.6.2", "fusion"): {"launches": 31}}
    (found,) = causes(old, new, measured(table))
    assert (found.by, found.how, found.trial) == (("pass fusion",), ALIKE, 31)


def test_a_pass_that_only_the_older_side_ran():
    old, new = side(OLD, ["merger", "fusion"]), side(NEW, ["fusion"], launches=12)
    table = {("0.10.2", "fusion"): {"launches": 31}, ("0.6.2", "merger"): {"launches": 12},
             ("0.6.2", "fusion"): {"launches": 40}}  # fmt: skip
    (found,) = causes(old, new, measured(table))
    assert (found.by, found.how, found.trial) == (("pass merger",), GONE, 12)


def test_a_compile_that_xla_ends_is_no_cause():
    old, new = side(OLD, ["a"]), side(NEW, ["a", "b"], launches=12)
    table = {("0.10.2", "b"): None, ("0.10.2", "a"): None, ("0.6.2", "a"): None}
    (found,) = causes(old, new, measured(table))
    assert found.by == ()


def test_equal_sides_are_not_compiled():
    def never(where, options):
        raise AssertionError

    assert causes(side(OLD, ["a"]), side(NEW, ["a"]), never) == ()


def test_small_differences_of_sizes_and_times_are_none():
    assert differing(FIGURES, {**FIGURES, "temp_bytes": 4100, "model_us": 20.1}) == {}
    assert differing(FIGURES, {**FIGURES, "copies": 1, "cas_loops": None}) == {"copies": (0, 1)}


@pytest.mark.parametrize(
    ("old", "new", "label", "value"),
    [
        ({}, {"xla_gpu_new": "true"}, "xla_gpu_new=false", False),
        ({}, {"xla_gpu_new": "3"}, "xla_gpu_new=0", "0"),
        ({"xla_gpu_level": "2"}, {"xla_gpu_level": "5"}, "xla_gpu_level=2", "2"),
        ({"xla_gpu_old": "true"}, {}, "xla_gpu_old=true", True),
        ({}, {"xla_gpu_name": "x"}, 'xla_gpu_name=""', ""),
    ],
)
def test_flags_are_set_as_the_older_version_has_them(old, new, label, value):
    known = {"xla_gpu_same": "true"}
    (found,) = candidates(side(OLD, flags={**known, **old}), side(NEW, flags={**known, **new}))
    assert (found.label, list(found.options.values())) == (label, [value])


def test_flags_are_not_compared_with_a_version_that_does_not_say_its_own():
    assert candidates(side(OLD), side(NEW, flags={"xla_gpu_new": "true"})) == []


def test_passes_that_are_off_by_default_stay_off():
    flags = {"xla_disable_hlo_passes": "rematerialization"}
    (found,) = candidates(side(OLD, flags=flags), side(NEW, ["cse"], flags))
    assert found.options == {"xla_disable_hlo_passes": "rematerialization,cse"}


def test_passes_and_flags_are_read_from_the_dump(tmp_path):
    for name in (
        "module_0001.f.0000.pre.after_pipeline-start.before_cse.txt",
        "module_0001.f.0001.pre.after_cse.before_algsimp.txt",
        "module_0001.f.0002.pre.after_algsimp.before_pipeline-end.txt",
        "module_0001.f.0003.post.after_cse.before_dce.txt",
        "module_0001.f.sm_8.0_gpu_after_optimizations.txt",
    ):
        (tmp_path / name).write_text("")
    (tmp_path / "module_0001.f.config.pbtxt").write_text(
        "replica_count: 1\ndebug_options {\n  xla_gpu_ftz: true\n"
        '  xla_disable_hlo_passes: "a"\n  xla_disable_hlo_passes: "b"\n}\n'
    )
    assert passes_in(tmp_path) == ("cse", "algsimp")
    assert flags_in(tmp_path) == {"xla_gpu_ftz": "true", "xla_disable_hlo_passes": "a,b"}
