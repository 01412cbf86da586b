/* arrays: what an array with gaps has beside its buffer's address, count and datatype. Thread: any.
   Owner: the call, then its request (pending.c). */
#ifndef HEADWAY_FORTRAN_ARRAYS_H
#define HEADWAY_FORTRAN_ARRAYS_H
#include "fortran.h"

struct HfMore {
  MPI_Datatype type; /* made for this call, or MPI_DATATYPE_NULL */
  unsigned how;
  void* copy;      /* the section's elements, contiguous, or null */
  void* as_it_was; /* what was copied, where something may come in */
  size_t bytes;
  struct HfPending* pending; /* memory for its request's, so that none is missing when it is made */
  HfDescriptor array;
};
struct HfPending* hf_new_pending(void); /* null without memory; to be freed */

void hf_more_starts(HfMore* more);  /* copies the section's elements as they are now */
void hf_more_is_done(HfMore* more); /* copies back what has come in */
void hf_free_more(HfMore* more);

#endif /* HEADWAY_FORTRAN_ARRAYS_H */
