#include "datatypes/pack.h"

#include <cstring>

namespace headway::datatypes {
namespace {

using detail::smaller;

// Copies without a call where a block is short: two overlapping moves cover each class of sizes.
inline void copy_block(char* to, const char* from, uint64_t n) {
  const auto ends = [=]<class Word>(Word) {
    Word first, last;
    memcpy(&first, from, sizeof(Word));
    memcpy(&last, from + n - sizeof(Word), sizeof(Word));
    memcpy(to, &first, sizeof(Word));
    memcpy(to + n - sizeof(Word), &last, sizeof(Word));
  };
  struct Sixteen {
    uint64_t words[2];
  };
  struct ThirtyTwo {
    uint64_t words[4];
  };
  if (n > 64) {
    memcpy(to, from, n);
  } else if (n > 32) {
    ends(ThirtyTwo{});
  } else if (n > 16) {
    ends(Sixteen{});
  } else if (n >= 8) {
    ends(uint64_t{});
  } else if (n >= 4) {
    ends(uint32_t{});
  } else {
    for (uint64_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

enum class Direction { pack, unpack };

// The laid-out side is `memory`, the packed side `string`.
template <Direction direction>
struct CopySink {
  char* string;

  static void move(char* string, char* memory, uint64_t n) {
    if constexpr (direction == Direction::pack) {
      copy_block(string, memory, n);
    } else {
      copy_block(memory, string, n);
    }
  }

  bool run(uintptr_t at, uint64_t bytes) {
    move(string, reinterpret_cast<char*>(at), bytes);
    string += bytes;
    return true;
  }

  // The block length as a constant lets the compiler make each block one or two moves.
  template <uint64_t bytes>
  bool fixed(uintptr_t at, int64_t stride, uint64_t count) {
    char* memory = reinterpret_cast<char*>(at);
    char* out = string;
#pragma GCC unroll 4
    for (uint64_t i = 0; i < count; ++i) {
      if constexpr (direction == Direction::pack) {
        memcpy(out, memory, bytes);
      } else {
        memcpy(memory, out, bytes);
      }
      out += bytes;
      memory += stride;
    }
    string = out;
    return true;
  }

  bool strided(uintptr_t at, uint64_t bytes, int64_t stride, uint64_t count) {
    switch (bytes) {
      case 1: return fixed<1>(at, stride, count);
      case 2: return fixed<2>(at, stride, count);
      case 4: return fixed<4>(at, stride, count);
      case 8: return fixed<8>(at, stride, count);
      case 12: return fixed<12>(at, stride, count);
      case 16: return fixed<16>(at, stride, count);
      case 24: return fixed<24>(at, stride, count);
      case 32: return fixed<32>(at, stride, count);
      case 40: return fixed<40>(at, stride, count);
      case 48: return fixed<48>(at, stride, count);
      case 64: return fixed<64>(at, stride, count);
      default: break;
    }
    for (uint64_t i = 0; i < count; ++i, at += uintptr_t(stride)) run(at, bytes);
    return true;
  }
};

template <Direction direction>
size_t transfer(const Type& type, const void* base, uint64_t count, uint64_t offset, char* string,
                size_t n) {
  CopySink<direction> sink{string};
  detail::walk_message(type, base, count, offset, n, sink);
  return size_t(sink.string - string);
}

}  // namespace

size_t pack(const Type& type, const void* base, uint64_t count, uint64_t offset, void* out,
            size_t n) {
  return transfer<Direction::pack>(type, base, count, offset, static_cast<char*>(out), n);
}

size_t unpack(const Type& type, void* base, uint64_t count, uint64_t offset, const void* in,
              size_t n) {
  // The sink only reads the string in this direction.
  char* string = static_cast<char*>(const_cast<void*>(in));
  return transfer<Direction::unpack>(type, base, count, offset, string, n);
}

uint64_t packed_size(const Type& type, uint64_t count) {
  uint64_t bytes;
  return __builtin_mul_overflow(type.size(), count, &bytes) ? UINT64_MAX : bytes;
}

uint64_t copy(const Type& from_type, const void* from, uint64_t from_count, const Type& to_type,
              void* to, uint64_t to_count) {
  const uint64_t n = smaller(packed_size(from_type, from_count), packed_size(to_type, to_count));
  if (n == 0) return 0;
  if (from_type.is_contiguous(from_count)) {
    const uintptr_t start = reinterpret_cast<uintptr_t>(from) + uintptr_t(from_type.true_lb());
    return unpack(to_type, to, to_count, 0, reinterpret_cast<const void*>(start), n);
  }
  if (to_type.is_contiguous(to_count)) {
    const uintptr_t start = reinterpret_cast<uintptr_t>(to) + uintptr_t(to_type.true_lb());
    return pack(from_type, from, from_count, 0, reinterpret_cast<void*>(start), n);
  }
  char piece[4096];  // stays in the first-level cache
  for (uint64_t done = 0; done < n;) {
    const size_t part = size_t(smaller(n - done, sizeof piece));
    pack(from_type, from, from_count, done, piece, part);
    unpack(to_type, to, to_count, done, piece, part);
    done += part;
  }
  return n;
}

uint64_t runs(const Type& type, uint64_t count) {
  if (count == 0 || type.size() == 0) return 0;
  return type.is_contiguous(count) ? 1 : type.layout().runs * count;
}

Filled fill_iovecs(const Type& type, const void* base, uint64_t count, uint64_t offset, iovec* out,
                   size_t max) {
  Filled filled{0, 0};
  for_each_run(type, base, count, offset, UINT64_MAX, [&](char* at, size_t bytes) {
    if (filled.vectors != 0) {
      iovec& last = out[filled.vectors - 1];
      if (static_cast<char*>(last.iov_base) + last.iov_len == at) {
        last.iov_len += bytes;
        filled.bytes += bytes;
        return true;
      }
    }
    if (filled.vectors == max) return false;
    out[filled.vectors++] = {at, bytes};
    filled.bytes += bytes;
    return true;
  });
  return filled;
}

}  // namespace headway::datatypes
