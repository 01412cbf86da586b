// Reduction kernels with 256-bit vectors, chosen at run time where the processor has them.
// The standard headers come before the pragma: their inline functions are shared with files that
// must run on every processor.
#if defined(__x86_64__)
#include <cstddef>
#include <cstdint>
#include <utility>

#include "datatypes/detail/kernel_table.h"

// Without fma: GCC 12 makes fused multiply-adds of a complex product even where fp-contract is off,
// and the bits would differ from the base build. For the same reason there is no AVX-512 build,
// where they cannot be switched off.
#pragma GCC target("avx2,no-fma,no-avx512f")
#include "datatypes/detail/kernels.h"

namespace headway::datatypes {

constinit const KernelTable avx2_kernels =
    Fill<true>::table("avx2", std::make_index_sequence<op_count>{});

}  // namespace headway::datatypes
#endif
