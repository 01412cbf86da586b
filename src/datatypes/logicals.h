// Fortran's logicals as the program's compiler has them: which bits are .FALSE. (all others are
// true), and which an operation leaves for .TRUE.. Thread: any; told before the first reduction.
// Owner: the process. Invariant: while nothing is told, or .TRUE. is 1 and .FALSE. 0 as with
// gfortran and flang, the kernels of C's integers do the work.
#pragma once
#include <cstddef>

namespace headway::datatypes {

// Of logicals of 1, 2, 4, 8 or 16 bytes.
void tell_logicals(size_t size, const void* truth, const void* falsehood);

}  // namespace headway::datatypes
