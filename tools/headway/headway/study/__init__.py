"""`headway study`: what overlaps, what blocks, in any MPI. After the overlap and progress paper and the
non-blocking paper.

definitions  what is meant by overlap, its bounds, progress, to block: pure
mpis         which MPIs there are, and how they are named
plan         what is run: programs, sizes, estimates of time
blocking     the non-blocking paper's kernel: what is asked of it, and what its answers mean
run          one study: its folder, its store, its starts
samr         the adaptive mesh: cases, ways that are valid, what rows say; samr_run runs them
value        a median with its interval, and how figures are said
findings     what all samples of a study say
verdicts     the same in words; meshes: of the adaptive mesh
page, plots  the same to look at
command      the command line
"""
