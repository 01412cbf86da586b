// Hmac: HMAC-SHA-256 (FIPS 180-4, RFC 2104), by which ranks prove to each other that they know the
// secret of their job without saying it. Thread: any, everything is plain values. Owner: none.
// Invariant: allocates nothing and calls nothing; the time it takes does not depend on the bytes.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headway::base {

struct Digest {
  unsigned char bytes[32] = {};
};

class Sha256 {
 public:
  Sha256& add(const void* data, size_t n);
  Digest finish();

 private:
  void take_block(const unsigned char* block);

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint64_t length_ = 0;
  unsigned char rest_[64] = {};
};

// A key whose two blocks have been hashed already: a short text costs three more.
class HmacKey {
 public:
  HmacKey() : HmacKey(nullptr, 0) {}
  HmacKey(const void* key, size_t n);
  Digest of(const void* text, size_t n) const;

 private:
  Sha256 inner_, outer_;
};

// Compares in a time that does not depend on where the two differ.
bool same_digest(const Digest& a, const Digest& b);

}  // namespace headway::base
