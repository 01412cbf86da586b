// Core lists: a mask of cores as a short text for a card. Thread: any. Owns nothing. Invariant:
// what write_cores makes, read_cores understands, and nothing of it is a comma or a blank.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headway::runtime {

inline constexpr size_t mask_words = 8;  // 512 cores
inline constexpr size_t core_list_max = 160;

// "0-63", "0-15+32+40-41"; "-": none. A mask with too many gaps is written as its words, in hex:
// "x5.5".
void write_cores(const uint64_t (&cores)[mask_words], char (&out)[core_list_max]);
// What follows the list, or null: it is none.
[[nodiscard]] const char* read_cores(const char* text, uint64_t (&cores)[mask_words]);

}  // namespace headway::runtime
