// Reduction kernels for every processor of the family, and those that vectors do not help.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "datatypes/detail/kernel_table.h"

#if defined(__x86_64__)
// In case the whole library is built for a newer processor: see kernels_avx2.cc.
#pragma GCC target("no-fma,no-avx512f")
#endif
#include "datatypes/detail/kernels.h"

namespace headway::datatypes {

constinit const KernelTable base_kernels =
    Fill<false>::table("base", std::make_index_sequence<op_count>{});

}  // namespace headway::datatypes
