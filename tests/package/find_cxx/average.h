// The average of one number of each rank of a communicator.
#pragma once
#include <mpi.h>

double average(double mine, MPI_Comm communicator);
