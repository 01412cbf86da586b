// Arrays of plain malloc, as programs have them: not initialized, so that large ones cost nothing
// before they are used.
#pragma once

#include <cstdlib>
#include <memory>

namespace apps {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

template <class T>
using Array = std::unique_ptr<T[], Free>;

// Null if there is not enough memory.
template <class T>
Array<T> make_array(long count) {
  return Array<T>(static_cast<T*>(std::malloc(static_cast<size_t>(count) * sizeof(T))));
}

}  // namespace apps
