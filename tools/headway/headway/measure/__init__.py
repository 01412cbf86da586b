"""The measuring library: what `headway study` and the benchmarks in bench/ share.

plan        names of cases, who comes when in paired runs
contestants MPIs, how each is compiled for and started
processes   starts with a time limit
programs    C programs compiled by each contestant's own wrapper; what they print
hosts       the simulated cluster under a measurement
validity    which runs count
statistics  medians, intervals, slopes
store       every result in one SQLite file; resumption
machine     what the machine is
bar         the progress bar
"""
