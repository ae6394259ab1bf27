"""Bodies that an op names, its composite's decomposition, and tuples: compared by what they compute, never by name."""

import pytest

from fusionlab.equivalence.exact.identity import compare_exactly
from fusionlab.hlo.diff.numbering import content_digest
from fusionlab.hlo.program import program_view
from fusionlab.hlo.resize import resize, view_of_copies
from fusionlab.hlo.view import view_of

BODY = """
  func.func private @{name}(%x: tensor<3xf32>) -> tensor<3xf32> {{
    %c = stablehlo.constant dense<{number}> : tensor<3xf32>
    %0 = stablehlo.{op} %x, %c : tensor<3xf32>
    return %0 : tensor<3xf32>
  }}"""
MAIN = """
  func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
    %0 = {call} : (tensor<3xf32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }}"""
COMPOSITE = 'stablehlo.composite "my.op" %x {{decomposition = @{name}}}'
CALLED = "stablehlo.custom_call @mine(%x) {{called_computations = [@{name}]}}"
IN_A_DICTIONARY = "stablehlo.custom_call @mine(%x) {{mhlo.backend_config = {{body = @{name}}}}}"
FORMS = (COMPOSITE, CALLED, IN_A_DICTIONARY)


def module(form, *, name="impl", op="add", number="2.0", inner=""):
    body = BODY.format(name=name, op=op, number=number)
    return f"module {{{inner}{body}{MAIN.format(call=form.format(name=name))}\n}}"


OUTER = """
  func.func private @outer(%x: tensor<3xf32>) -> tensor<3xf32> {{
    %0 = {call} : (tensor<3xf32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }}"""


def through(form, **body):
    """A body that names another one."""
    text = module(CALLED, inner=OUTER.format(call=form.format(name="impl")), **body)
    main, last = text.split("func.func public")
    return f"{main}func.func public{last.replace('@impl', '@outer')}"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("other", [{"op": "multiply"}, {"number": "3.0"}, {"op": "subtract"}])
def test_other_bodies_of_one_name_are_other_functions(form, other, program_of_text):
    first, second = program_of_text(module(form)), program_of_text(module(form, **other))
    assert compare_exactly(first, second).result == "not-identical"
    assert content_digest(first) != content_digest(second)


@pytest.mark.parametrize("form", FORMS)
def test_equal_bodies_of_other_names_are_the_same_function(form, program_of_text):
    first, second = program_of_text(module(form)), program_of_text(module(form, name="another"))
    assert compare_exactly(first, second).result == "identical"
    assert content_digest(first) == content_digest(second)


@pytest.mark.parametrize("form", FORMS)
def test_a_body_counts_with_those_that_it_names(form, program_of_text):
    first, second, third = (program_of_text(through(form, number=number)) for number in ("2.0", "2.0", "3.0"))
    assert compare_exactly(first, second).result == "identical"
    assert compare_exactly(first, third).result == "not-identical"


def test_a_string_is_no_name(program_of_text):
    texts = [module(CALLED).replace("{called", f'{{backend_config = "{told}", called') for told in ("@impl", "@other")]
    assert compare_exactly(*map(program_of_text, texts)).result == "not-identical"


def test_a_composite_is_its_decomposition(program_of_text):
    program = program_of_text(module(COMPOSITE))
    assert [node.name for node in program_view(program).nodes] == ["stablehlo.constant", "stablehlo.add"]
    plain = program_of_text(module("func.call @{name}(%x)"))
    assert compare_exactly(program, plain).result == "identical"


def test_a_composite_is_resized_with_its_decomposition(program_of_text):
    view = view_of_copies(program_of_text(module(COMPOSITE)).parse())
    resize(view, dict.fromkeys((*view.arguments, *(v for node in view.nodes for v in node.results)), (2,)))
    assert [value.type.shape for value in view_of(view.module).returns] == [(2,)]


TUPLE = """
module {
  func.func public @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
    %t = stablehlo.tuple %x, %y : tuple<tensor<3xf32>, tensor<3xf32>>
    %0 = stablehlo.get_tuple_element %t[INDEX] : (tuple<tensor<3xf32>, tensor<3xf32>>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}"""


def test_an_element_of_a_tuple_is_what_was_put_into_it(program_of_text):
    first, second = (program_of_text(TUPLE.replace("INDEX", index)) for index in "01")
    assert compare_exactly(first, first).result == "identical"
    assert compare_exactly(first, second).result == "not-identical"
    view = program_view(second)
    assert (view.nodes, view.returns) == ([], view.arguments[1:])


def test_an_element_of_an_unknown_tuple_is_refused_by_its_type(program_of_text):
    text = TUPLE.replace("INDEX", "0").replace(
        "stablehlo.tuple %x, %y :", "stablehlo.custom_call @two(%x, %y) : (tensor<3xf32>, tensor<3xf32>) ->"
    )
    found = compare_exactly(program_of_text(text), program_of_text(text))
    assert (found.result, "tuple<" in found.reason) == ("not-covered", True)
