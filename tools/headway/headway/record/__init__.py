"""Recordings of MPI programs: what a rank wrote (format), the run as one (model), and what it says."""
