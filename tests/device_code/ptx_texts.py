"""Small kernels in PTX, written by hand."""

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"


def kernel(body: str, *, parameters: int = 2, threads: str = "128, 1, 1", name: str = "k") -> str:
    """A module with one kernel; ``%rd1``, ``%rd2``, ... are its parameters' addresses, ``%r1`` the thread's number."""
    declared = ",\n".join(f"\t.param .u64 .ptr .align 16 {name}_param_{at}" for at in range(parameters))
    loads = "".join(f"\tld.param.b64 \t%rd{at + 1}, [{name}_param_{at}];\n" for at in range(parameters))
    index = "\tmov.u32 \t%r90, %tid.x;\n\tmov.u32 \t%r91, %ctaid.x;\n\tmov.u32 \t%r92, %ntid.x;\n"
    index += "\tmad.lo.s32 \t%r1, %r91, %r92, %r90;\n"
    lines = "".join(f"\t{line};\n" if not line.endswith(":") else f"{line}\n" for line in body.strip().splitlines())
    return f"{HEADER}.visible .entry {name}(\n{declared}\n)\n.reqntid {threads}\n{{\n{loads}{index}{lines}\tret;\n}}\n"
