"""The roofline plot is a whole SVG with every family that can be drawn, and says its roofs."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

from fusionlab.ledger.roofline import Point
from fusionlab.ledger.time.model import Ceilings
from fusionlab.report.pictures.roofline import roofline_svg

SVG = "{http://www.w3.org/2000/svg}"
CEILINGS = Ceilings(19.5e12, 1.555e12, "spec of a100")


def point(name, intensity, flops_per_s, share=0.5):
    return Point(name, 30, 10**9, 10**9, intensity, 100.0, share, flops_per_s, flops_per_s, 1.0, "memory")


def test_families_are_labelled_and_kernels_are_dots():
    families = [point("gemm", 16.0, 1e13), point("elementwise", 0.3, 4e11, 0.4), point("all", 3.0, 1e12, 1.0)]
    kernels = [(point("a < b", 0.1, 1e11), "elementwise"), (point("idle", 0.0, 0.0), "layout")]
    root = ElementTree.fromstring(roofline_svg("tiny & small", families, kernels, CEILINGS))
    words = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert "tiny & small" in words
    assert {"◆ gemm", "● elementwise"} <= set(words)
    assert "all" not in words
    assert "roof: 19.5 TFLOP/s, 1,555 GB/s (spec of a100)" in words
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert len(titles) == 3  # two families and the kernel that computes
    assert any(title.startswith("a < b: 0.1 FLOP/byte") for title in titles)


def test_dots_stand_inside_the_picture():
    families = [point("gemm", 16.0, 1e13), point("layout", 1e-4, 2e8)]
    root = ElementTree.fromstring(roofline_svg("t", families, [], CEILINGS))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for circle in root.iter(f"{SVG}circle"):
        assert 0 < float(circle.attrib["cx"]) < width
        assert 0 < float(circle.attrib["cy"]) < height


def test_kernels_above_the_roof_are_explained():
    above = replace(point("slices", 0.3, 1e12), roof_share=2.1)
    on_it = replace(point("gemm_fusion", 16.0, 1e13), roof_share=1.01)
    assert "above the roof: 1 of 2 kernels" in roofline_svg(
        "t", [], [(above, "elementwise"), (on_it, "gemm")], CEILINGS
    )
    assert "above the roof" not in roofline_svg("t", [], [(on_it, "gemm")], CEILINGS)
