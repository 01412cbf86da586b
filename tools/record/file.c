/* file: see file.h. */
#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clocks.h"
#include "folder.h"
#include "library_events.h"
#include "same_file.h"

enum {
  MAGIC = 0x31525748,
  PAGE = 4096,      /* of the file in memory, on most machines */
  FILLED = 8 * PAGE /* from so many bytes on what is written is filled up to a page */
};

typedef struct Block {
  uint32_t magic;
  uint16_t type, thread;
  uint64_t length, first, last;
} Block;

bool record_over;

static struct {
  int file, rank;
  RecordSameFile is;
  pid_t pid;
  RecordPlace place;
  uint64_t at; /* where the next block goes */
  uint64_t written, lost;
  uint64_t calls;  /* of which records were written */
  const char* why; /* records were lost */
} self = {.file = -1};

bool record_make_file(int rank, int size) {
  self.rank = rank;
  self.file = record_open(&self.place, rank, size);
  if (self.file < 0) {
    record_say("rank %d runs unrecorded: %s cannot be made: %s", rank,
               self.place.folder[0] ? self.place.path : "its folder", strerror(errno));
    return false;
  }
  self.is = record_file_now(self.file);
  self.pid = getpid();
  return true;
}

/* The program may have closed it, and its number may be another file's by now. */
static bool is_still_there(void) {
  if (record_is_same(self.file, self.is)) return true;
  const int again = open(self.place.path, O_WRONLY | O_CLOEXEC);
  if (record_is_same(again, self.is)) {
    self.file = again;
    return true;
  }
  if (again >= 0) close(again);
  return false;
}

bool record_has_file(void) { return self.file >= 0; }
bool record_is_others_file(void) { return self.pid != 0 && getpid() != self.pid; }
bool record_may_write(void) { return self.file >= 0 && !record_over && getpid() == self.pid; }

/* All of it at the file's end, or none of it. */
static bool put(struct iovec* parts, int count) {
  size_t whole = 0, done = 0;
  for (int i = 0; i < count; ++i) whole += parts[i].iov_len;
  if (!is_still_there()) {
    self.why = "the program closed it, and it is not there any more";
    record_over = true;
    return false;
  }
  while (done < whole) {
    const ssize_t wrote = pwritev(self.file, parts, count, (off_t)(self.at + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      self.why = wrote < 0 ? strerror(errno) : "nothing could be written";
      if (ftruncate(self.file, (off_t)self.at) != 0)
        record_over = true; /* half a block stays at the end */
      return false;
    }
    done += (size_t)wrote;
    size_t left = (size_t)wrote;
    for (; count > 0 && left >= parts->iov_len; --count) left -= (parts++)->iov_len;
    if (count > 0) {
      parts->iov_base = (char*)parts->iov_base + left;
      parts->iov_len -= left;
    }
  }
  self.at += whole;
  return true;
}

bool record_put_block(enum RecordBlockType type, unsigned thread, const void* data, size_t length,
                      uint64_t first, uint64_t last) {
  static const char spaces[8] = "        ";
  const size_t more = (8 - length % 8) % 8;
  Block block = {MAGIC, (uint16_t)type, (uint16_t)thread, length + more, first, last};
  struct iovec parts[] = {{&block, sizeof block}, {(void*)data, length}, {(void*)spaces, more}};
  return put(parts, 3);
}

void record_put_clock(void) {
  const RecordReading now = record_read_clocks();
  record_put_block(RECORD_CLOCK, 0, &now, sizeof now, 0, 0);
}

/* The filling's payload, behind so many bytes that are written: the next block begins at a page,
   and the kernel need not put two of them together in one, which costs it half as much again. */
static size_t filling_behind(size_t bytes) {
  if (bytes < FILLED) return 0;
  return PAGE - (self.at + bytes + sizeof(Block)) % PAGE;
}

/* The block, and behind it a clock. */
static bool put_with_clock(const Block* block, const void* head, size_t head_length,
                           const struct iovec* data) {
  static const char zeros[PAGE];
  RecordReading now = record_read_clocks();
  Block clock = {MAGIC, RECORD_CLOCK, 0, sizeof now, 0, 0};
  const size_t filled = filling_behind(2 * sizeof *block + block->length + sizeof now);
  Block filling = {MAGIC, RECORD_FILLING, 0, filled, 0, 0};
  struct iovec parts[] = {{(void*)block, sizeof *block},
                          {(void*)head, head_length},
                          data[0],
                          data[1],
                          {(void*)zeros, (8 - data[1].iov_len % 8) % 8},
                          {&clock, sizeof clock},
                          {&now, sizeof now},
                          {&filling, sizeof filling},
                          {(void*)zeros, filled}};
  return put(parts, filled ? 9 : 7);
}

void record_put_events(unsigned thread, const RecordEvent* events, size_t count) {
  uint64_t first = events[0].begin, last = events[0].end;
  for (size_t i = 0; i < count; ++i) {
    if (events[i].begin < first) first = events[i].begin;
    if (events[i].end > last) last = events[i].end;
  }
  const size_t length = count * sizeof *events;
  const Block block = {MAGIC, RECORD_EVENTS, (uint16_t)thread, length, first, last};
  const struct iovec data[] = {{NULL, 0}, {(void*)events, length}};
  if (put_with_clock(&block, NULL, 0, data)) {
    self.written += count;
  } else {
    record_count_lost(count);
  }
}

void record_put_rows(const RecordThread* of, const RecordBlockHead* head) {
  const size_t shapes = head->shapes * sizeof *of->shapes, rows = head->rows * sizeof *of->rows;
  const size_t length = sizeof *head + shapes + rows;
  const Block block = {MAGIC,  RECORD_NARROW_EVENTS, of->number,
                       length, head->begin,          record_last_of(of, head)};
  const struct iovec data[] = {{(void*)of->shapes, shapes}, {(void*)of->rows, rows}};
  if (put_with_clock(&block, head, sizeof *head, data)) {
    self.written += head->events;
    self.calls += of->calls;
  } else {
    record_count_lost(head->events);
  }
}

void record_put_list(enum RecordBlockType type, RecordText* list) {
  if (list->length == 0) return;
  list->data[list->length] = ']';
  if (record_put_block(type, 0, list->data, list->length + 1, 0, 0)) list->length = 0;
}

void record_count_lost(uint64_t count) {
  if (self.lost == 0 && self.why) {
    record_say("rank %d loses records: %s: %s. What was written before stays", self.rank,
               self.place.path, self.why);
  }
  self.lost += count;
}

/* A share in %, of two digits. In whole numbers: the program may have chosen a comma for fractions.
 */
static void put_share(char* to, size_t room, double share) {
  const unsigned hundredths = (unsigned)(share * 1e4 + 0.5);
  if (hundredths) {
    snprintf(to, room, "%u.%02u", hundredths / 100, hundredths % 100);
  } else {
    snprintf(to, room, "less than 0.01");
  }
}

static double share_of(RecordCost cost, double call_ns) {
  return ((double)self.calls * call_ns + cost.timed_ns) / cost.time_ns;
}

/* The line that the user sees at the end. What it took is told of the process that speaks. */
static void tell_end(RecordCost cost) {
  char took[320] = "";
  if (cost.least_ns > 0 && cost.time_ns > 0) {
    char least[32], most[32], whom[32] = "this process", share[80], call[80];
    put_share(least, sizeof least, share_of(cost, cost.least_ns));
    put_share(most, sizeof most, share_of(cost, cost.most_ns));
    snprintf(share, sizeof share, strcmp(least, most) == 0 ? "%s" : "%s to %s", least, most);
    snprintf(call, sizeof call, "%.0f to %.0f ns", cost.least_ns, cost.most_ns);
    if (self.rank >= 0) snprintf(whom, sizeof whom, "rank %d", self.rank);
    snprintf(took, sizeof took,
             ", which took %s %% of %s's time (%llu calls of %s, %.0f us for files)", share, whom,
             (unsigned long long)self.calls, call, cost.timed_ns * 1e-3);
  }
  record_say("recorded into %s%s; headway trace %s shows it", self.place.folder, took,
             self.place.folder);
}

void record_finish_file(int finalized, bool speaks, RecordCost cost) {
  char why[512] = "", text[1024];
  if (self.why) record_append_json(why, sizeof why, self.why);
  const int length =
      snprintf(text, sizeof text,
               "{\"finalized\":%s,\"odd\":%s,\"events\":%llu,\"lost\":%llu,"
               "\"library_lost\":%llu,\"why\":\"%s\",\"cost\":{\"calls\":%llu,"
               "\"call\":%.0f,\"call_at_most\":%.0f,\"timed\":%.0f,\"time\":%.0f}}",
               finalized ? "true" : "false", record_now_page->odd ? "true" : "false",
               (unsigned long long)self.written, (unsigned long long)self.lost,
               (unsigned long long)record_library_lost(), why, (unsigned long long)self.calls,
               cost.least_ns * 1e3, cost.most_ns * 1e3, cost.timed_ns, cost.time_ns);
  record_put_clock();
  record_put_block(RECORD_END, 0, text, (size_t)length, 0, 0);
  if (self.lost) {
    record_say("rank %d lost %llu of %llu records: %s", self.rank, (unsigned long long)self.lost,
               (unsigned long long)(self.lost + self.written),
               self.why ? self.why : "MPI was not initialized");
  }
  if (speaks) {
    tell_end(cost);
    record_close(&self.place);
  }
  if (record_is_same(self.file, self.is)) close(self.file);
  self.file = -1;
}
