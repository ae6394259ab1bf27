"""Foreign modules and HLO are parsed in a process of their own, under limits: parsers crash or hang on damaged files.

    client        starts and asks the process, and ends it: after 10 s and 2 s per MB, and after a file above 1 MB
    worker        the process: parses, verifies and writes bytecode, in three quarters of the machine's memory
    validation    what is refused of text before MLIR parses it, and of a module after

A crash or a time limit is an ``Unreadable``. Neither side unpickles, and there are no core dumps. The limits guard
against damaged files, not against an attacker: the process has the user's rights (docs/decisions/0007).
"""
