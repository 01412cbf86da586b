// The published test vectors: FIPS 180-4's examples for SHA-256, RFC 4231's for HMAC-SHA-256.
#include "base/hmac.h"

#include <gtest/gtest.h>

#include <string>

namespace headway::base {
namespace {

std::string hex(const Digest& digest) {
  std::string out;
  for (const unsigned char each : digest.bytes) {
    out += "0123456789abcdef"[each >> 4];
    out += "0123456789abcdef"[each & 15];
  }
  return out;
}

std::string sha256(const std::string& text) {
  return hex(Sha256().add(text.data(), text.size()).finish());
}

std::string hmac(const std::string& key, const std::string& text) {
  return hex(HmacKey(key.data(), key.size()).of(text.data(), text.size()));
}

TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Every place at which a text may end in a block, taken whole and byte by byte.
TEST(Sha256, PiecesGiveTheSame) {
  for (size_t length = 0; length < 200; ++length) {
    const std::string text(length, char('a' + length % 26));
    Sha256 pieces;
    for (const char each : text) pieces.add(&each, 1);
    EXPECT_EQ(hex(pieces.finish()), sha256(text)) << length;
  }
}

TEST(Hmac, PublishedTestCases) {
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string counted;
  for (char c = 1; c <= 25; ++c) counted += c;
  EXPECT_EQ(hmac(counted, std::string(50, '\xcd')),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(
      hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hmac(std::string(131, '\xaa'),
                 "This is a test using a larger than block-size key and a larger than block-size "
                 "data. The key needs to be hashed before being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(Hmac, EveryByteCounts) {
  const Digest a = HmacKey("key", 3).of("text", 4);
  for (size_t i = 0; i < sizeof a.bytes; ++i) {
    Digest b = a;
    EXPECT_TRUE(same_digest(a, b));
    b.bytes[i] ^= 1;
    EXPECT_FALSE(same_digest(a, b)) << i;
  }
}

}  // namespace
}  // namespace headway::base
