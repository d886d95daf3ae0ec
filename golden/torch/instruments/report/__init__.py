"""One page about what low precision did inside a model: ``python -m golden.torch report RUN [RUN2 ...]``.

It reads the observations of a run:

- `reading` checks the lines of ``observations.jsonl`` and adds them up in `records`;
- `judging` measures every layer and pass by the limits of `limits`, and orders them;
- `window` finds the loss scales that a run's gradients allow; the `rules` of the `advice` say what to change;
- `histograms`, `timeline`, `curves` compute drawings; `page` sets the `views` into a template.
"""
