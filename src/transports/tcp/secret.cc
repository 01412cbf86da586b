// What the secret is used for: the key of a job and the seals of its records.
#include <cstring>

#include "base/clock.h"
#include "transports/tcp/detail/impl.h"
#include "transports/tcp/tcp.h"

namespace headway::tcp {
namespace {

// All that a seal is over, in one text of one length. `record` is the magic of what carries it, so
// that none passes for another, nor in the other direction.
struct Sealed {
  uint64_t record;
  uint32_t version, from, to, size;
  uint64_t attempt;
  Purpose purpose;
  uint32_t verdict;
  Nonce connector, acceptor;
};
static_assert(sizeof(Sealed) == 72, "nothing between the members");

base::Digest seal(const base::HmacKey& key, uint64_t record, const Hello& hello, Verdict verdict,
                  const Nonce& acceptor) {
  const Sealed all = {record,        hello.version, hello.from,        hello.to,    hello.size,
                      hello.attempt, hello.purpose, uint32_t(verdict), hello.nonce, acceptor};
  return key.of(&all, sizeof all);
}

}  // namespace

base::HmacKey key_of(const unsigned char (&secret)[16], const char* job) {
  char text[128] = "headway tcp ";
  const size_t head = strlen(text);
  size_t length = 0;
  for (; length < sizeof text - head && job[length]; ++length) text[head + length] = job[length];
  const base::Digest key = base::HmacKey(secret, sizeof secret).of(text, head + length);
  return {key.bytes, sizeof key.bytes};
}

Nonce make_nonce(const base::HmacKey& key, uint32_t rank, uint64_t number) {
  const uint64_t text[] = {rank, number, base::now_ns()};
  const base::Digest digest = key.of(text, sizeof text);
  Nonce nonce;
  memcpy(nonce.bytes, digest.bytes, sizeof nonce.bytes);
  return nonce;
}

base::Digest seal_hello(const base::HmacKey& key, const Hello& hello) {
  return seal(key, hello_magic, hello, Verdict::accept, {});
}

base::Digest seal_answer(const base::HmacKey& key, const Hello& hello, const Answer& answer) {
  return seal(key, answer_magic, hello, answer.verdict, answer.nonce);
}

base::Digest seal_confirm(const base::HmacKey& key, const Hello& hello, const Nonce& answered) {
  return seal(key, confirm_magic, hello, Verdict::accept, answered);
}

void Tcp::set_secret(const unsigned char (&secret)[16], const char* job) {
  memcpy(impl_->config.secret, secret, sizeof secret);
  impl_->key = key_of(secret, job);
}

}  // namespace headway::tcp
