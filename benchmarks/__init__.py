"""Speed, measured: `python -m benchmarks` (make bench), `python -m benchmarks --smoke`."""
