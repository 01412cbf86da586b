#include "matching/matcher.h"

#include <algorithm>
#include <sys/auxv.h>

#include "base/clock.h"
#include "base/vec.h"

namespace headway::matching {

uint64_t table_secret() {
  uint64_t secret = 0;
  // 16 random bytes that the system gives to each program.
  const auto* random = reinterpret_cast<const char*>(getauxval(AT_RANDOM));
  if (random) memcpy(&secret, random, sizeof secret);
  return (secret ? secret : base::now_ns() * 0x9E3779B97F4A7C15u) | 1;
}

// --- posted ---

bool PostedQueue::prepare(const Config& config) {
  promises_ = config.promises;
  if (config.design == Design::headway) return table_.prepare();
  lists_ = Lists<true>::make(config);
  return lists_;
}

void PostedQueue::post_slowly(Hook* receive) {
  if (lists_) {
    lists_->add(receive, counters);
    return;
  }
  if (promises_) promises_->forget(receive->key.context);  // it was broken
  ++wild_;
  ++wild_of_[wild_kind(receive->key)];
  table_.add(receive);
}

void PostedQueue::take_out(Hook* receive) {
  if (lists_) {
    lists_->remove(receive);
    return;
  }
  if (receive->key.is_wild()) {
    --wild_;
    --wild_of_[wild_kind(receive->key)];
  }
  table_.remove(receive);
}

Hook* PostedQueue::find(const Key& message, Traffic traffic, uint64_t& traversed) {
  if (lists_) return lists_->find(message, traffic, traversed);
  Hook* found = table_.find(message, traversed);
  if (!wild_) [[likely]]
    return found;
  const uint8_t unused = promises_ ? promises_->of(message.context) : 0;
  for (int kind = 0; kind < wild_kinds; ++kind) {
    if (wild_of_[kind] == 0 || (unused >> kind & 1)) continue;
    found = older(found, table_.find(blur(message, kind), traversed));
  }
  return found;
}

Hook* PostedQueue::match_slowly(const Key& message, Traffic traffic, uint64_t& traversed) {
  Hook* found = find(message, traffic, traversed);
  if (found) take_out(found);
  return found;
}

// --- unexpected ---

bool UnexpectedQueue::prepare(const Config& config) {
  promises_ = config.promises;
  if (config.design == Design::headway) return table_.prepare();
  lists_ = Lists<false>::make(config);
  return lists_;
}

void UnexpectedQueue::add(Message* message) {
  HEADWAY_CHECK(!message->queued && !message->key.is_wild());
  message->order = order_++;
  message->queued = true;
  message->indexed = 0;
  ++counters.kind(message->traffic).entries;
  counters.longest.raise_to(++size_);
  if (lists_) {
    lists_->add(message, counters);
    return;
  }
  table_.add(message);
  if (indexes_) add_to_indexes(message);
}

void UnexpectedQueue::remove(Message* message) {
  HEADWAY_CHECK(message->queued);
  message->queued = false;
  --size_;
  if (lists_) {
    lists_->remove(message);
    return;
  }
  table_.remove(message);
  if (message->indexed) remove_from_indexes(message);
}

size_t UnexpectedQueue::memory() const {
  return lists_ ? lists_->memory()
                : table_.memory() + any_source_.memory() + any_tag_.memory() + any_.memory();
}

void UnexpectedQueue::add_to_indexes(Message* message) {
  const uint8_t unused = promises_ ? promises_->of(message->key.context) : 0;
  // Collectives know their sources and tags.
  const uint8_t wanted = message->traffic.collective ? 0 : indexes_ & ~unused;
  if (wanted & 1) any_source_.add(message);
  if (wanted & 2) any_tag_.add(message);
  if (wanted & 4) any_.add(message);
  message->indexed = wanted;
}

void UnexpectedQueue::remove_from_indexes(Message* message) {
  if (message->indexed & 1) any_source_.remove(message);
  if (message->indexed & 2) any_tag_.remove(message);
  if (message->indexed & 4) any_.remove(message);
}

void UnexpectedQueue::drop_indexes() {
  any_source_.clear();
  any_tag_.clear();
  any_.clear();
  table_.each([](Hook* hook) { hook->indexed = 0; });
  indexes_ = 0;
}

// All messages are put into the index in the order in which they came. False without memory.
bool UnexpectedQueue::begin_index(int kind) {
  const bool prepared = kind == 0   ? any_source_.prepare()
                        : kind == 1 ? any_tag_.prepare()
                                    : any_.prepare();
  base::Vec<Message*> messages;
  if (!prepared || !messages.reserve(table_.count())) return false;
  table_.each([&](Hook* hook) { (void)messages.push(static_cast<Message*>(hook)); });
  std::sort(messages.begin(), messages.end(),
            [](const Hook* one, const Hook* other) { return one->order < other->order; });
  const uint8_t others = indexes_;
  indexes_ = uint8_t(1 << kind);
  for (Message* message : messages) {
    const uint8_t before = message->indexed;
    add_to_indexes(message);
    message->indexed |= before;
  }
  indexes_ |= others;
  return true;
}

Hook* UnexpectedQueue::find_wild(const Key& wanted, uint64_t& traversed) {
  const int kind = wild_kind(wanted);
  if (promises_ && promises_->version() != version_) {
    drop_indexes();
    version_ = promises_->version();
  }
  const bool is_promised = promises_ && (promises_->of(wanted.context) >> kind & 1);
  if (is_promised || (!(indexes_ >> kind & 1) && !begin_index(kind))) {
    return find_by_age(wanted, traversed);
  }
  return kind == 0   ? any_source_.find(wanted, traversed)
         : kind == 1 ? any_tag_.find(wanted, traversed)
                     : any_.find(wanted, traversed);
}

// Without an index.
Hook* UnexpectedQueue::find_by_age(const Key& wanted, uint64_t& traversed) const {
  Hook* found = nullptr;
  table_.each([&](Hook* hook) {
    ++traversed;
    if (wanted.takes(hook->key)) found = older(found, hook);
  });
  return found;
}

}  // namespace headway::matching
