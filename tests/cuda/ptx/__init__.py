"""A machine that runs PTX, the instructions that NVRTC makes of the kernels, thread beside thread on arrays of NumPy.

It is written from NVIDIA's description of the instructions ("Parallel Thread Execution ISA", version 8.8), and knows
nothing of the kernels' source. Besides computing it judges: memory that a launch was not given, shared memory that
nobody wrote or that two threads use without a barrier between them, copies that nobody waited for, barriers that some
threads do not reach. It stops at an instruction that it does not know.

It shows neither the assembler's work on PTX nor a card's execution.
"""
