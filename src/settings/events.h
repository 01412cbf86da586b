// Events: the one table that names and explains what tools can listen to by MPI_T, and how a room
// tells of one: settings::tell<kind>(fields). MPI_T and the events page of the documentation are
// made from the table. Thread: any. Owner: none, plain data; what is told lies in
// base/tool_events. Invariants: event_table has one row for each EventKind, in their order; who
// tells gives as many fields as the row has.
#pragma once
#include <type_traits>

#include "base/tool_events.h"
#include "settings/category.h"

namespace headway::settings {

enum class EventKind : uint8_t {
  thread_woken,
  wait_began,
  wait_ended,
  receive_posted,
  message_matched,
  message_unexpected,
  receive_released,
  page_touched,
  prefetch_hit,
  prefetch_missed,
  schedule_step,
  count
};

// What a tool reads it as.
enum class FieldKind : uint8_t {
  number,   // MPI_UNSIGNED_LONG_LONG
  integer,  // MPI_COUNT: may be negative
  call      // MPI_INT: the number of a function of MPI; told as its name, a constant text, or null
};

struct EventField {
  const char* name = nullptr;
  FieldKind kind = FieldKind::number;
  const char* help = "";
};

struct EventInfo {
  EventKind kind;
  const char* name;  // MPI_T puts headway_ before it
  Category category;
  Audience audience;
  base::EventSource source;  // program: or the message thread, whichever sees it
  const char* counter;       // that counts the same; empty: none does
  const char* help;
  EventField fields[base::most_event_fields];
};

inline constexpr EventInfo event_table[] = {
    {EventKind::thread_woken,
     "thread_woken",
     Category::progress,
     Audience::tuner,
     base::EventSource::thread,
     "thread_wakes",
     "the message thread was woken",
     {{"for_page", FieldKind::number, "1: somebody waits for a closed page"}}},
    {EventKind::wait_began,
     "wait_began",
     Category::progress,
     Audience::user,
     base::EventSource::program,
     "",
     "a call does not find at once what it waits for",
     {{"call", FieldKind::call,
       "the call (where several threads are in MPI perhaps another's), -1: none of the program"},
      {"peer", FieldKind::integer, "whose message it needs: the rank in MPI_COMM_WORLD, -1: any"}}},
    {EventKind::wait_ended,
     "wait_ended",
     Category::progress,
     Audience::user,
     base::EventSource::program,
     "",
     "such a wait is over",
     {{"call", FieldKind::call, "as in wait_began"},
      {"peer", FieldKind::integer, "whose message it needed last"}}},
    {EventKind::receive_posted,
     "receive_posted",
     Category::matching,
     Audience::user,
     base::EventSource::program,
     "posted_entries",
     "a receive waits for its message, those of collectives with them",
     {{"source", FieldKind::integer, "the rank in its communicator, -1: any"},
      {"tag", FieldKind::integer, "-1: any"},
      {"bytes", FieldKind::number, "of its buffer"}}},
    {EventKind::message_matched,
     "message_matched",
     Category::matching,
     Audience::user,
     base::EventSource::program,
     "messages_received",
     "a receive has met its message",
     {{"source", FieldKind::integer, "the sender's rank in the communicator"},
      {"tag", FieldKind::integer, "the message's"},
      {"bytes", FieldKind::number, "of the message"}}},
    {EventKind::message_unexpected,
     "message_unexpected",
     Category::matching,
     Audience::user,
     base::EventSource::program,
     "unexpected",
     "a message has come before its receive",
     {{"source", FieldKind::integer, "the sender's rank in the communicator"},
      {"tag", FieldKind::integer, "the message's"},
      {"bytes", FieldKind::number, "of the message"}}},
    {EventKind::receive_released,
     "receive_released",
     Category::early_release,
     Audience::user,
     base::EventSource::program,
     "released",
     "a receive, or a collective, has let its user go on before its data had come",
     {{"peer", FieldKind::integer,
       "the sender's rank in MPI_COMM_WORLD, -1: not known, or a collective"},
      {"foreseen", FieldKind::number, "1: before its match"}}},
    {EventKind::page_touched,
     "page_touched",
     Category::early_release,
     Audience::user,
     base::EventSource::pages,
     "page_faults",
     "a thread of the program waits for a closed page",
     {{"address", FieldKind::number, "of the page"},
      {"closing", FieldKind::number,
       "which closed range it is, counted from 1; 0: it was open again"}}},
    {EventKind::prefetch_hit,
     "prefetch_hit",
     Category::prefetching,
     Audience::user,
     base::EventSource::program,
     "prefetch_hits",
     "a message was sent of which some had come before",
     {{"peer", FieldKind::integer, "the sender's rank in MPI_COMM_WORLD"},
      {"bytes", FieldKind::number, "that came before the send, and that the send confirmed"},
      {"spared", FieldKind::number, "nanoseconds that those take on the link, 0: not known"}}},
    {EventKind::prefetch_missed,
     "prefetch_missed",
     Category::prefetching,
     Audience::user,
     base::EventSource::program,
     "",
     "a message that was asked for before its send has brought nothing by that",
     {{"peer", FieldKind::integer, "the sender's rank in MPI_COMM_WORLD"},
      {"bytes", FieldKind::number, "that were asked for"}}},
    {EventKind::schedule_step,
     "schedule_step",
     Category::collectives,
     Audience::tuner,
     base::EventSource::program,
     "",
     "a collective begins a step; blocking ones of a few bytes have none",
     {{"step", FieldKind::number,
       "0: send, 1: receive, 2: copy, 3: reduce, 4: wait for others, 5: for a file"},
      {"collective", FieldKind::call, "the blocking function of its kind, -1: none of the program"},
      {"peer", FieldKind::integer, "of a send or receive: the rank in MPI_COMM_WORLD; else -1"}}},
};
inline constexpr size_t event_count = size_t(EventKind::count);
static_assert(event_count <= base::most_event_kinds);
static_assert(event_count == sizeof(event_table) / sizeof(event_table[0]));

consteval bool each_event_has_its_row() {
  for (size_t i = 0; i < event_count; ++i) {
    if (size_t(event_table[i].kind) != i) return false;
  }
  return true;
}
static_assert(each_event_has_its_row());

constexpr size_t field_count(size_t kind) {
  size_t count = 0;
  while (count < base::most_event_fields && event_table[kind].fields[count].name) ++count;
  return count;
}

struct EventSourceInfo {
  const char* name;  // MPI_T puts headway_ before it
  const char* help;
};
// By base::EventSource.
inline constexpr EventSourceInfo event_source_table[] = {
    {"program", "threads of the program in MPI calls, and what they find there"},
    {"message_thread", "the message thread, which works while the program computes"},
    {"pages", "closed pages that somebody touches"},
};
static_assert(sizeof(event_source_table) / sizeof(event_source_table[0]) == base::event_sources);

inline bool is_told(EventKind kind) { return base::is_listened(uint8_t(kind)); }

template <class Field>
constexpr uint64_t as_field(Field value) {
  if constexpr (std::is_pointer_v<Field>) {
    return uint64_t(reinterpret_cast<uintptr_t>(value));
  } else {
    return uint64_t(value);  // of a negative number its 64 bits
  }
}

// Functions are told by name, all else is a number.
template <class... Field>
consteval bool are_fields_of(size_t kind) {
  const bool are_names[] = {std::is_same_v<Field, const char*>...};
  for (size_t i = 0; i < sizeof...(Field); ++i) {
    if (are_names[i] != (event_table[kind].fields[i].kind == FieldKind::call)) return false;
  }
  return sizeof...(Field) == field_count(kind);
}

// Apart from where it happens, so that nothing there pays for it.
template <EventKind kind, class... Field>
[[gnu::cold, gnu::noinline]] void tell_listeners(Field... fields) {
  const uint64_t values[] = {as_field(fields)...};
  base::put_event(uint8_t(kind), event_table[size_t(kind)].source, values, sizeof...(fields));
}

// That has happened, now. One load and a branch where nobody listens.
template <EventKind kind, class... Field>
inline void tell(Field... fields) {
  static_assert(are_fields_of<Field...>(size_t(kind)));
  if (is_told(kind)) [[unlikely]]
    tell_listeners<kind>(fields...);
}

}  // namespace headway::settings
