"""One table of colours and marks for every picture, which colour-blind readers can use, on white and on dark paper."""

import itertools
import json
import re

import numpy as np
import pytest

from fusionlab.hlo.ops import FAMILIES
from fusionlab.ledger.roofline import Point
from fusionlab.ledger.time.model import Ceilings
from fusionlab.report.page import page
from fusionlab.report.pictures.dot import drawing_dot
from fusionlab.report.pictures.drawing import Box, Drawing, PictureBlock
from fusionlab.report.pictures.looks import BOX_FAMILIES, FAMILY_LOOKS, family_colour, family_mark
from fusionlab.report.pictures.roofline import roofline_svg

# Machado, Oliveira and Fernandes (2009), IEEE TVCG 15(6), severity 1, in linear RGB.
SEEN = {
    "colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])
COLOURS = {
    "light": sorted({look.colour for look in FAMILY_LOOKS.values()}),
    "dark": sorted({look.on_dark for look in FAMILY_LOOKS.values()}),
}


def linear(colour):
    part = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def seen_as(how, colour):
    return np.array(SEEN[how]) @ linear(colour)


def lab(rgb):
    scaled = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def luminance(colour):
    """Relative luminance of ``#rrggbb`` (WCAG 2)."""
    return (TO_XYZ @ linear(colour))[1]


def contrast(one, other):
    """The ratio of WCAG 2."""
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("paper", COLOURS)
@pytest.mark.parametrize("seen", SEEN)
def test_any_two_colours_can_be_told_apart(seen, paper):
    assert len(COLOURS[paper]) == 9
    for one, other in itertools.combinations(COLOURS[paper], 2):
        distance = np.linalg.norm(lab(seen_as(seen, one)) - lab(seen_as(seen, other)))
        assert distance >= 10, (one, other, distance)


def test_colours_stand_out_from_everything_that_they_stand_on():
    """Of 3 to 1, which WCAG 2 (1.4.11) asks of graphics."""
    style = page({})
    for ground in ("paper", "soft", "box", "folded"):
        found = re.findall(rf"--{ground}: (#\w{{6}})", style)
        assert len(found) == 2
        for colours, paper in zip(COLOURS.values(), found, strict=True):
            for colour in colours:
                assert contrast(colour, paper) >= 3, (colour, ground, paper)
    assert min(contrast(colour, "#F3F3F3") for colour in COLOURS["light"]) >= 3  # frames of the graph views


def test_a_family_of_a_colour_of_its_own_has_a_mark_of_its_own_and_all_are_families():
    marks = [look.mark for look in FAMILY_LOOKS.values()]
    assert len(set(marks)) == len(marks)
    assert set(FAMILY_LOOKS) - {"other"} <= set(FAMILIES)
    assert set(FAMILIES) <= set(FAMILY_LOOKS) | set(BOX_FAMILIES)


@pytest.mark.parametrize("family", ["gemm", "attention", "triangular-solve"])
def test_page_graph_and_plot_have_the_same_colours_and_marks(family):
    text = page({})
    assert json.loads(re.search(r"const FAMILIES = (\{.*?\});\n", text)[1])[family] == family_mark(family)
    assert re.findall(rf"--family-{family}: (#\w{{6}});", text) == list(FAMILY_LOOKS[family][:2])
    drawing = Drawing("t", (), {}, (PictureBlock("b", (), (Box((family,), 1, 1, 1),)),), ())
    point = Point(family, 1, 10**9, 10**9, 1.0, 1.0, 0.5, 1e11, 1e12, 0.1, "memory")
    for text in (drawing_dot(drawing), roofline_svg("t", [point], [], Ceilings(1e13, 1e12, "spec"))):
        assert family_colour(family) in text
        assert family_mark(family) in text
        assert not set(re.findall(r"#[0-9A-F]{6}", text)) & (set(COLOURS["light"]) - {family_colour(family)})
