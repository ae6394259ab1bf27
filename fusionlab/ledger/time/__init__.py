"""The time of a launch by model: ``model`` chooses one, ``products`` has that of a library's matrix products, and
``constants`` are fitted. The time of kernels by their code is ``device_code.kernel_time``."""
