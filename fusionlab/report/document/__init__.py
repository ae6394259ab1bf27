"""The study document: all numbers of ``fusionlab study`` as one JSON document; ``report.html`` only presents it.

``lines`` holds every op that is shown anywhere, once; other parts name ops by their position there. ``programs`` are
levels of detail (``scope_tree``), ``targets`` what was measured before and after for each target.
"""
