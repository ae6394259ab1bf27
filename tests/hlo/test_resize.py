"""Modules whose calls have callees of their own."""

import re

from fusionlab.hlo.resize import view_of_copies
from fusionlab.hlo.view import functions_of

CALLS = 40
TEXT = """
module {{
  func.func private @f(%x: tensor<3xf32>) -> tensor<3xf32> {{
    %0 = call @g(%x) : (tensor<3xf32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }}
  func.func private @g(%x: tensor<3xf32>) -> tensor<3xf32> {{
    return %x : tensor<3xf32>
  }}
  func.func private @f_4(%x: tensor<3xf32>) -> tensor<3xf32> {{
    return %x : tensor<3xf32>
  }}
  func.func public @main(%0: tensor<3xf32>) -> tensor<3xf32> {{
{calls}
    %{last} = call @f_4(%{before}) : (tensor<3xf32>) -> tensor<3xf32>
    return %{last} : tensor<3xf32>
  }}
}}
"""


def text():
    call = "    %{} = call @f(%{}) : (tensor<3xf32>) -> tensor<3xf32>"
    calls = "\n".join(call.format(at + 1, at) for at in range(CALLS))
    return TEXT.format(calls=calls, last=CALLS + 1, before=CALLS)


def test_every_call_has_a_callee_of_its_own(program_of_text):
    module = program_of_text(text()).parse()
    view_of_copies(module)
    called = re.findall(r"call @(\w+)\(", str(module))
    assert len(functions_of(module)) == 1 + 2 * CALLS + 1  # @main, @f and @g for each call, @f_4
    assert len(called) == len(set(called)) == len(functions_of(module)) - 1
