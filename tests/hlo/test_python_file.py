"""A function of a Python file as a program: which one it is, its arguments, and the errors of the user's own code."""

import sys

import jax
import pytest

from fusionlab.errors import InputError
from fusionlab.hlo.argument_shapes import parse_shapes
from fusionlab.hlo.python_file import program_of_python

LAYERS = """import jax.numpy as jnp
def dense(x, w):
    return jnp.tanh(x @ w)
"""
MODEL = """import functools
import jax, jax.numpy as jnp
from layers import dense
print("noise")
def energy(x):
    return dense(x, jnp.ones((3, 8))).sum()
jitted = jax.jit(energy)
batched = jax.vmap(energy)
half = functools.partial(dense, w=jnp.ones((3, 4)))
def params(p, x):
    return dense(x, p["w"][0])
params.example_args = ({"w": [jnp.ones((3, 2))]}, jnp.ones((5, 3)))
def sample(key, x):
    return jax.random.normal(key, x.shape) + x
def factor(x):
    return jnp.linalg.cholesky(x)
def constant():
    return jnp.ones(3) * 2
class Net:
    def apply(self, x):
        return jnp.sin(x)
net = Net()
scale = 3
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """``program("model.py:energy", "f32[7,3]", files={...})``: the program of a file in a folder with ``layers.py``."""
    monkeypatch.chdir(tmp_path)

    def run(reference, *shapes, platforms=("cpu",), **files):
        for name, text in {"layers": LAYERS, "model": MODEL, **files}.items():
            (tmp_path / f"{name}.py").write_text(text)
        return program_of_python(reference, shapes, platforms)

    return run


def types(values):
    return [str(value) for value in values]


@pytest.mark.parametrize(
    ("name", "shapes", "inputs", "outputs"),
    [
        ("energy", "f32[7,3]", ["7x3xf32"], ["f32"]),
        ("jitted", "float32[7,3]", ["7x3xf32"], ["f32"]),
        ("batched", "f32[2,7,3]", ["2x7x3xf32"], ["2xf32"]),
        ("half", "bf16[7, 3]", ["7x3xbf16"], ["7x4xf32"]),
        ("sample", "key, f32[4]", ["2xui32", "4xf32"], ["4xf32"]),
        ("sample", "key f32[4]", ["2xui32", "4xf32"], ["4xf32"]),
        ("net.apply", "c64[2]", ["2xcomplex<f32>"], ["2xcomplex<f32>"]),
        ("params", "", ["3x2xf32", "5x3xf32"], ["5x2xf32"]),
        ("constant", "", [], ["3xf32"]),
    ],
)
def test_functions_of_all_kinds(name, shapes, inputs, outputs, program, capsys):
    found = program(f"model.py:{name}", *([shapes] if shapes else []))
    assert (types(found.inputs), types(found.outputs)) == (inputs, outputs)
    assert (found.name, found.provenance) == (name.replace(".", "_"), f"model.py:{name}")
    assert capsys.readouterr() == ("", "noise\n")  # stdout is for results


def test_source_lines_are_those_of_the_files(program):
    text = program("model.py:energy", "f32[7,3]").text
    assert 'layers.py":3' in text
    assert 'model.py":6' in text


@pytest.mark.parametrize(
    ("text", "args", "shape"),
    [
        ("def f(x): return x", ["i32[2]"], "2xi32"),  # the only function
        ("def f(x): return x\nf.example_args = (np.ones(3, 'f'),)\ndef g(x): return x", [], "3xf32"),
        ("def f(x): return x\nexample_args = (np.ones(4, 'f'),)", [], "4xf32"),
        ("def f(x): return x\nexample_args = lambda: (np.ones(5, 'f'),)", [], "5xf32"),
        ("def f(x): return x\nf.example_args = (np.ones(6, 'f'),)\nexample_args = (1.0,)", [], "6xf32"),
        ("def f(x): return x\nexample_args = (1.0,)", ["f16[7]"], "7xf16"),
        ("import jax\n@jax.jit\ndef f(x): return x\nf.example_args = (np.ones(8, 'f'),)", [], "8xf32"),
    ],
)
def test_the_obvious_function_and_its_arguments(text, args, shape, program):
    assert types(program("own.py", *args, own=f"import numpy as np\n{text}\n").outputs) == [shape]


def test_a_value_that_a_function_computes_and_drops_is_kept(program):
    """A Laplacian is found by the value that it is of, which JAX drops where it is not returned."""
    text = "import jax\nimport jax.numpy as jnp\ndef f(x):\n    jnp.cosh(x)\n    return x\n"
    assert "cosh" in program("own.py", "f32[2]", own=text).text


def test_one_program_of_two_platforms(program):
    both = {"platforms": ("cuda", "cpu")}
    assert program("model.py:energy", "f32[7,3]", **both).platform == "any"
    with pytest.raises(InputError, match=r"model.py:factor: lowers differently for cuda and cpu; name targets of one"):
        program("model.py:factor", "f32[3,3]", **both)


def test_two_versions_of_a_file_import_their_own_modules(program, tmp_path):
    before, modules, path = program("model.py:energy", "f32[7,3]"), set(sys.modules), list(sys.path)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "layers.py").write_text(LAYERS.replace("tanh", "sin"))
    (tmp_path / "new" / "model.py").write_text(MODEL)
    after = program_of_python("new/model.py:energy", ["f32[7,3]"], ["cpu"])
    assert ("stablehlo.tanh" in before.text, "stablehlo.tanh" in after.text) == (True, False)
    assert {name for name in set(sys.modules) - modules if "layers" in name or "model" in name} == set()
    assert sys.path == path


def test_settings_of_the_file_are_for_its_program_alone(program):
    text = "import jax, sys\njax.config.update('jax_enable_x64', True)\nsys.path.clear()\ndef f(x): return x * 2\n"
    path = list(sys.path)
    assert types(program("own.py", "f64[2]", own=text).outputs) == ["2xf64"]
    assert not jax.config.jax_enable_x64
    assert sys.path == path


@pytest.mark.parametrize(
    ("reference", "args", "said"),
    [
        ("absent.py:f", [], ["absent.py: cannot be read: No such file"]),
        ("model.py:enrgy", [], ["model.py: there is no function 'enrgy'; the file defines energy, jitted, batched"]),
        ("model.py:net.call", [], ["there is no function 'net.call'"]),
        ("model.py:", [], ["there is no function ''"]),
        ("model.py:scale", [], ["model.py:scale: is of type int, not a function; the file defines energy"]),
        ("model.py:Net", [], ["model.py:Net: is a class, not a function"]),
        ("two.py", [], ["two.py: defines 2 functions (f, g); name one, as two.py:f"]),
        ("none.py", [], ["none.py: defines no function"]),
        ("model.py:energy", [], ["model.py:energy: takes (x); name their shapes, as --args 'f32[8,3] i32[]'"]),
        ("typed.py", [], ["typed.py:g: takes (x: Array, scale: Any = 'a.b'); name"]),
        ("model.py:params", ["f32[3]"], ["takes (p, x), and --args has 1 argument: missing a required argument: 'x'"]),
        ("model.py:energy", ["f32[3]", "f32[3]"], ["--args has 2 arguments: too many positional arguments"]),
        ("listed.py", [], ["listed.py: example_args is of type list; write a tuple"]),
        ("model.py:energy", ["f32[2,4]"], ["model.py:energy: raises TypeError: dot_general requires contracting dim",
         "\n  model.py:6, in energy: return dense(x, jnp.ones((3, 8))).sum()\n  layers.py:3, in dense: return"]),
        ("raising.py:f", ["f32[2]"], ["raising.py:f: raises KeyError: 'mine'\n  raising.py:2, in f: raise KeyError"]),
        ("raising.py:g", ["f32[2]"], ["raising.py:g: raises SystemExit: stop\n  raising.py:4, in g: raise SystemExit"]),
        ("raising.py:h", [], ["raising.py: example_args(): raises ZeroDivisionError: division by zero\n  raising."]),
        ("raising.py:text", ["f32[2]"], ["raising.py:text: JAX cannot trace it with these arguments: TypeError"]),
        ("imports.py", [], ["imports.py: raises ModuleNotFoundError: No module named 'nosuchpackage'\n  imports.py:1, "
         "in <module>: import nosuchpackage"]),
        ("syntax.py", [], ["syntax.py, line 2: SyntaxError: '(' was never closed"]),
    ],
)  # fmt: skip
def test_errors_say_what_and_where(reference, args, said, program):
    files = {
        "two": "def f(x): return x\ndef g(x): return x\n",
        "none": "x = 1\n",
        "typed": "import jax, typing\ndef g(x: jax.Array, scale: typing.Any = 'a.b'): return x\n",
        "listed": "def f(x): return x\nexample_args = [1]\n",
        "raising": "def f(x):\n    raise KeyError('mine')\ndef g(x):\n    raise SystemExit('stop')\n"
        "def bad(): return 1 / 0\ndef h(x): return x\nh.example_args = bad\ndef text(x): return 'text'\n",
        "imports": "import nosuchpackage\n",
        "syntax": "def f(x):\n    return (x\n",
    }
    with pytest.raises(InputError) as caught:
        program(reference, *args, **files)
    assert [part for part in said if part not in str(caught.value)] == [], str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.skipif(jax.default_backend() == "gpu", reason="JAX lowers callbacks for the GPU that is attached")
def test_a_callback_is_lowered_for_the_platform_that_is_attached(program):
    """JAX's own error blames the platform of a backend; the callback may be inside a loop."""
    text = (
        "import jax\ndef f(x):\n    def body(i, y):\n        return jax.pure_callback(abs, y, y)\n"
        "    return jax.lax.fori_loop(0, 3, body, x)\n"
    )
    assert types(program("own.py:f", "f32[2]", own=text).outputs) == ["2xf32"]
    said = (
        r"own.py:f: Python is called while the program runs \(pure_callback at own.py:4.*\), and JAX cannot lower that "
        r"for cuda, which is not attached; give the target cpu \(--target cpu\)"
    )
    with pytest.raises(InputError, match=said):
        program("own.py:f", "f32[2]", own=text, platforms=("cuda",))


@pytest.mark.parametrize(
    ("text", "why", "at"),
    [
        ("f32[2] f33[8,3]", "unknown element type 'f33'; did you mean: f32", 7),
        ("f32[2,x]", "expected an element type with a shape, as f32[8,3], i32[] or key", 0),
        ("f32[2", "expected an element type with a shape", 0),
        ("f32[2]i32[]", "expected an element type with a shape", 0),
        ("i32[],-", "expected an element type with a shape", 6),
        ("key f32", "f32 has no shape; write f32[] for a scalar", 7),
        ("f32[99999999999,99999999999]", "more elements than any memory holds", 4),
        ("i32[] f64[2]", "JAX makes f64 a 32-bit type here; write jax.config.update('jax_enable_x64', True)", 6),
    ],
)
def test_a_wrong_shape_is_pointed_at(text, why, at):
    with pytest.raises(InputError) as caught:
        parse_shapes(text)
    first, shown, mark = str(caught.value).split("\n")
    assert first.startswith(f"--args: {why}")
    assert (shown, mark) == (f"  {text}", f"  {' ' * at}^")


def test_shapes_of_every_kind():
    found = parse_shapes("f32[8, 3],i32[] pred[2]\ns8[0] key key[2]")
    assert [str(one.dtype) for one in found] == ["float32", "int32", "bool", "int8", "key<fry>", "key<fry>"]
    assert [one.shape for one in found] == [(8, 3), (), (2,), (0,), (), (2,)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(x):\n    yield x\n", "is a generator or a coroutine, which JAX does not trace"),
        ("async def f(x):\n    return x\n", "is a generator or a coroutine, which JAX does not trace"),
        (
            "class Odd:\n    def __call__(self, x): return x\n"
            "    def __getattr__(self, name): raise RuntimeError(name)\nf = Odd()\n",
            "RuntimeError",
        ),
    ],
)
def test_what_a_users_object_raises_is_the_users(text, said, program):
    with pytest.raises(InputError, match=said):
        program("odd.py:f", "f32[3]", odd=text)


def test_the_file_sees_its_own_name_as_the_only_argument(program):
    text = (
        "import sys\nassert len(sys.argv) == 1 and sys.argv[0].endswith('own.py'), sys.argv\ndef f(x): return x * 2\n"
    )
    before = list(sys.argv)
    assert types(program("own.py:f", "f32[3]", own=text).outputs) == ["3xf32"]
    assert sys.argv == before


def test_an_extent_beyond_any_memory_is_refused_where_another_is_0():
    with pytest.raises(InputError, match="more elements than any memory holds"):
        parse_shapes("f32[99999999999999999999,0]")
