// Outcome: how a bootstrap call ended, and the limits of its texts. Plain data, shared by the
// launcher protocols of this room.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headway::bootstrap {

enum class [[nodiscard]] Outcome : uint8_t {
  ok,
  not_found,       // get: nobody has put that key (yet: fence first)
  too_long,        // a key, a value or the caller's buffer does not fit
  wrong_launcher,  // open: started by a launcher that we cannot speak to
  launcher_lost,   // the launcher closed the connection or ended
  bad_reply,       // the launcher answered something that is not its protocol
  refused          // the launcher said no (another rank is gone, it does not know the call, ...)
};

inline constexpr size_t key_max = 64;      // with the final zero, as everywhere below
inline constexpr size_t value_max = 1024;  // what PMI-1 promises; binary data goes as hex
inline constexpr int any_rank = -1;

}  // namespace headway::bootstrap
