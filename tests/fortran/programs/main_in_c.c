/* main_in_c: a main program in C that calls MPI_Init, and a part in Fortran (part.f90). The library
   knows Fortran before MPI_Init; handles go both ways. */
#include <mpi.h>
#include <stdio.h>

void part_(MPI_Fint* comm, MPI_Fint* type, int* sum);

int main(int argc, char** argv) {
  int truth = 0, falsehood = 1, is_set = 0, sum = 0, wrong = 0, keys = 0;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Datatype type;
  MPI_Fint comm_number, type_number;
  MPI_Abi_get_fortran_booleans((int)sizeof truth, &truth, &falsehood, &is_set);
  if (!is_set || truth == falsehood || falsehood != 0) wrong |= 1;
  MPI_Abi_get_fortran_info(&info);
  if (info == MPI_INFO_NULL) wrong |= 2;
  MPI_Info_get_nkeys(info, &keys);
  if (keys < 4) wrong |= 4;
  /* What it knows may be told again. */
  if (MPI_Abi_set_fortran_info(info) != MPI_SUCCESS) wrong |= 8;
  if (MPI_Abi_set_fortran_booleans((int)sizeof truth, &truth, &falsehood) != MPI_SUCCESS)
    wrong |= 16;
  MPI_Info_free(&info);
  MPI_Init(&argc, &argv);
  MPI_Type_contiguous(2, MPI_INT, &type);
  MPI_Type_commit(&type);
  comm_number = MPI_Comm_c2f(MPI_COMM_SELF);
  type_number = MPI_Type_c2f(type);
  part_(&comm_number, &type_number, &sum);
  if (sum != 1 + 2 + 3 + 4) wrong |= 32;
  MPI_Type_free(&type);
  MPI_Finalize();
  if (wrong)
    printf("wrong: %d\n", wrong);
  else
    printf("ok\n");
  return wrong;
}
