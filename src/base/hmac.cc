#include "base/hmac.h"

#include <bit>
#include <cstring>

namespace headway::base {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4).
constexpr uint32_t round_words[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const unsigned char* at) {
  return uint32_t(at[0]) << 24 | uint32_t(at[1]) << 16 | uint32_t(at[2]) << 8 | at[3];
}

void put_big_endian(uint32_t value, unsigned char* at) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<unsigned char>(value >> (24 - 8 * i));
}

}  // namespace

void Sha256::take_block(const unsigned char* block) {
  uint32_t words[64];
  for (int i = 0; i < 16; ++i) words[i] = big_endian(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    const uint32_t x = words[i - 15], y = words[i - 2];
    const uint32_t low = std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3;
    const uint32_t high = std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10;
    words[i] = words[i - 16] + low + words[i - 7] + high;
  }
  uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3];
  uint32_t e = state_[4], f = state_[5], g = state_[6], h = state_[7];
  for (int i = 0; i < 64; ++i) {
    const uint32_t choice = (e & f) ^ (~e & g);
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choice +
                           round_words[i] + words[i];
    const uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const uint32_t more[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += more[i];
}

Sha256& Sha256::add(const void* data, size_t n) {
  const auto* at = static_cast<const unsigned char*>(data);
  while (n) {
    const size_t have = length_ % 64;
    const size_t take = n < 64 - have ? n : 64 - have;
    memcpy(rest_ + have, at, take);
    at += take;
    n -= take;
    length_ += take;
    if (have + take == 64) take_block(rest_);
  }
  return *this;
}

Digest Sha256::finish() {
  const uint64_t bits = length_ * 8;
  constexpr unsigned char padding[64] = {0x80};
  const size_t have = length_ % 64;
  add(padding, have < 56 ? 56 - have : 120 - have);
  unsigned char length[8];
  put_big_endian(uint32_t(bits >> 32), length);
  put_big_endian(uint32_t(bits), length + 4);
  add(length, sizeof length);
  Digest out;
  for (int i = 0; i < 8; ++i) put_big_endian(state_[i], out.bytes + 4 * i);
  return out;
}

HmacKey::HmacKey(const void* key, size_t n) {
  unsigned char block[64] = {};
  if (n > sizeof block) {
    const Digest shorter = Sha256().add(key, n).finish();
    memcpy(block, shorter.bytes, sizeof shorter.bytes);
  } else if (n) {
    memcpy(block, key, n);
  }
  unsigned char padded[64];
  for (size_t i = 0; i < sizeof block; ++i) padded[i] = block[i] ^ 0x36;
  inner_.add(padded, sizeof padded);
  for (size_t i = 0; i < sizeof block; ++i) padded[i] = block[i] ^ 0x5c;
  outer_.add(padded, sizeof padded);
}

Digest HmacKey::of(const void* text, size_t n) const {
  Sha256 inner = inner_, outer = outer_;
  const Digest first = inner.add(text, n).finish();
  return outer.add(first.bytes, sizeof first.bytes).finish();
}

bool same_digest(const Digest& a, const Digest& b) {
  unsigned char difference = 0;
  for (size_t i = 0; i < sizeof a.bytes; ++i) {
    difference = static_cast<unsigned char>(difference | (a.bytes[i] ^ b.bytes[i]));
  }
  return difference == 0;
}

}  // namespace headway::base
