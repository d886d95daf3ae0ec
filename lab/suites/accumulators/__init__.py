"""`golden.accumulators` against those who know the machines: MMA-Sim, Spike and this machine's own processor."""

__all__: list[str] = []
