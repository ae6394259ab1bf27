"""PTX as text: kernels, instructions, operands, labels, shared arrays."""

from fusionlab.device_code.ptx import parse_ptx, split_operands
from tests.device_code.ptx_texts import HEADER, kernel

SEVERAL = (
    HEADER
    + """
.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .b8 table[16] = {1, 2};
.visible .entry first(
	.param .u64 .ptr .align 16 first_param_0
)
.maxntid 64
{
	.reg .b32 	%r<9>;
	// demoted variable
	.shared .align 8 .b8 tile[20];
	.shared .align 16 .b32 word;
	// begin inline asm
	{
	.reg .pred 	p;
	@!%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 16 ];
	}
	// end inline asm
$L__BB0_1:
	red.relaxed.gpu.global.add.f32 	[%rd1], %r1;
	@%p2 bra 	$L__BB0_1;
	atom.global.cas.b32 	%r5, [%rd1], %r1, %r2;
	cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;
	mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 	{%r1,%r2}, {%r3}, {%r4}, {%r1,%r2};
	ex2.approx.ftz.f32 	%r6, %r5; /* a comment; with a semicolon */
	div.rn.f32 	%r6, %r5, %r6;
	div.u32 	%r6, %r5, 3;
	ret;
}
"""
    + kernel("st.global.b32 [%rd1], %r1", name="second")
)


def test_two_kernels_of_two_modules():
    first, second = parse_ptx(SEVERAL)
    assert (first.name, second.name) == ("first", "second")
    assert (first.parameters, second.parameters) == (("first_param_0",), ("second_param_0", "second_param_1"))
    assert (first.threads, second.threads_per_block) == ((1, 1, 1), 128)
    assert (first.architecture, first.symbols) == ("sm_80", ("table",))
    assert second.module.count(".entry") == 1


def test_shared_arrays_are_aligned_and_dynamic_ones_last():
    first, second = parse_ptx(SEVERAL)
    assert first.shared == {"tile": 0, "word": 32, "dynamic": 48}
    assert first.shared_bytes == 48
    assert second.shared == {}


def test_instructions():
    load, add, branch, swap, copy, product, power, quotient, whole, end = parse_ptx(SEVERAL)[0].instructions
    assert (load.opcode, load.guard, load.negated) == ("ld.global.v4.b32", "%p1", True)
    assert (load.access, load.space, load.bytes_per_lane, load.address) == ("load", "global", 16, "%rd1 + 16")
    assert (add.access, add.operation, add.scope, add.bytes_per_lane) == ("reduction", "add", "gpu", 4)
    assert branch.is_branch
    assert (swap.access, swap.operation, swap.scope) == ("atomic", "cas", "gpu")
    assert (copy.access, copy.bytes_per_lane, copy.address) == ("load", 16, "%rd1 + 0")
    assert (product.is_tensor, power.is_special, quotient.is_special, whole.is_special) == (True, True, True, False)
    assert end.is_branch
    assert parse_ptx(SEVERAL)[0].labels == {"$L__BB0_1": 1}


def test_lines_are_those_of_the_text():
    first = parse_ptx(SEVERAL)[0]
    lines = first.text.splitlines()
    assert all(one.opcode in lines[one.line] for one in first.instructions)


def test_operands_between_commas():
    assert split_operands("{%r1, %r2}, [%rd1+4]") == ("{%r1, %r2}", "[%rd1+4]")
    assert split_operands("(a, b), c") == ("(a, b)", "c")
    assert split_operands("") == ()


def test_no_kernel():
    assert parse_ptx("") == ()
    assert parse_ptx(HEADER) == ()
