/* callbacks: Fortran procedures that C calls. Operations and error handlers carry no state of the
   user, so a pool of functions of C remembers one procedure each; all others get it with their
   extra state.

   Thread: any. Owner: what is made here lives until the process ends, but for generalized requests:
   of all else MPI does not tell when it calls a procedure for the last time. Invariant: the same
   procedure has the same function of C. */
#ifndef HEADWAY_FORTRAN_CALLBACKS_H
#define HEADWAY_FORTRAN_CALLBACKS_H
#include "fortran.h"

typedef void (*HfFunction)(void);

typedef enum HfPredefined { HF_OWN, HF_PREDEFINED_NULL, HF_PREDEFINED_DUP } HfPredefined;
HfPredefined hf_predefined(HfFunction function);

enum { HF_POOL = 256 }; /* procedures of one kind */
/* Null when the pool is full. */
MPI_User_function* hf_operation(HfFunction procedure);
MPI_User_function_c* hf_operation_c(HfFunction procedure);
MPI_Comm_errhandler_function* hf_comm_errhandler(HfFunction procedure);
MPI_File_errhandler_function* hf_file_errhandler(HfFunction procedure);
MPI_Session_errhandler_function* hf_session_errhandler(HfFunction procedure);
MPI_Win_errhandler_function* hf_win_errhandler(HfFunction procedure);

/* Procedures with an extra state of the user's; `narrow`: their values are INTEGERs, as in
   MPI-1. */
typedef struct HfProxy {
  struct HfProxy* next;
  HfFunction procedures[3];
  MPI_Aint extra_state;
  int narrow;
} HfProxy;
/* Null without memory. */
HfProxy* hf_proxy(HfFunction first, HfFunction second, HfFunction third, MPI_Aint extra_state,
                  int narrow);

/* Of a generalized request; all others stay. */
void hf_free_proxy(HfProxy* proxy);

/* Given to C together with a proxy. Those of attributes are HF_PREDEFINED_*'s where they are. */
MPI_Comm_copy_attr_function* hf_comm_copy(HfFunction procedure);
MPI_Comm_delete_attr_function* hf_comm_delete(HfFunction procedure);
MPI_Type_copy_attr_function* hf_type_copy(HfFunction procedure);
MPI_Type_delete_attr_function* hf_type_delete(HfFunction procedure);
MPI_Win_copy_attr_function* hf_win_copy(HfFunction procedure);
MPI_Win_delete_attr_function* hf_win_delete(HfFunction procedure);
int hf_grequest_query(void* proxy, MPI_Status* status);
int hf_grequest_free(void* proxy);
int hf_grequest_cancel(void* proxy, int complete);
int hf_datarep_extent(MPI_Datatype datatype, MPI_Aint* extent, void* proxy);
/* The procedures of a proxy: extent, read, write. */
int hf_datarep_read(void* userbuf, MPI_Datatype datatype, int count, void* filebuf,
                    MPI_Offset position, void* proxy);
int hf_datarep_write(void* userbuf, MPI_Datatype datatype, int count, void* filebuf,
                     MPI_Offset position, void* proxy);
int hf_datarep_read_c(void* userbuf, MPI_Datatype datatype, MPI_Count count, void* filebuf,
                      MPI_Offset position, void* proxy);
int hf_datarep_write_c(void* userbuf, MPI_Datatype datatype, MPI_Count count, void* filebuf,
                       MPI_Offset position, void* proxy);

/* Values of attributes. C sees a value that Fortran set as the address of an MPI_Aint; Fortran sees
   one that C set as its address. Null without memory. */
void* hf_value_to_c(MPI_Aint value);
MPI_Aint hf_value_from_c(void* value);

#endif /* HEADWAY_FORTRAN_CALLBACKS_H */
