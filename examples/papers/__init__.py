"""The papers' figures and tables, measured: `make papers` writes docs/results/papers.md.

Zhuge, Garcia-Molina, Wiener, PDIS 1996 (Examples, Figure 7.2, C-Strobe's bound) and Agrawal, El
Abbadi, Singh, Yurek, SIGMOD 1997 (Table 1, Nested SWEEP); Beyer et al., *Immediate Propagate
Deferred Apply* (sections 3 and 4). A reproduction, no part of the product:
it uses the simulation and the checker, never Spark. No clock decides anything, so that a second run
writes the same page. The examples themselves are scripts in tests/papers/examples.
"""
