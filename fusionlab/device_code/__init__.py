"""The code of kernels: PTX and SASS, what warps do in it, the resources that it takes, and the launches that run it.

- ``ptx``: PTX text -> kernels and their instructions.
- ``arithmetic``, ``warps``: the index arithmetic of sampled warps, executed; every memory request with its addresses.
- ``requests``: sectors, bytes and bank conflicts of memory requests.
- ``assembler``: registers, spills and SASS, by NVIDIA's ``ptxas`` and ``nvdisasm`` where they are installed.
- ``occupancy``: warps that fit on an SM, waves of blocks.
- ``kernel_rows``: these facts of every launch of a compiled program; ``findings``: what is in excess, by op and source.
"""
