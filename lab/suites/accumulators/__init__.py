"""`golden.accumulators` against outside judges: MMA-Sim, Spike, QEMU and this machine's processor."""

__all__: list[str] = []
