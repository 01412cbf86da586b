"""The real codes, in the order in which they are built."""

from codes import boost, fftw, hypre, mpi4py_fft, petsc, petsc4py

ALL = {code.name: code for code in (fftw.Fftw(), mpi4py_fft.Mpi4pyFft(), hypre.Hypre(), boost.Boost(),
                                    petsc.Petsc(), petsc4py.Petsc4py())}
