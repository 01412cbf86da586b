/* Sends that are put off, with waits of our own in the place of MPI's: what a wait writes beside
   another such buffer, on a page of it, ends that one too, before the program runs again. Linked
   with libtrying. Prints "ok", or what is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "try.h"

enum { PAGE = 65536, PAGES = 2, SENDS = 4 };

/* A page of any system, or several. Of each the last 64 bytes are other variables of the program.
 */
static struct {
  char buffer[PAGES * PAGE - 64];
  char beside[64];
} sends[SENDS] __attribute__((aligned(PAGE)));
static int waited[SENDS], wrong;

static TryRange range_of(int number) {
  const uintptr_t begin = (uintptr_t)sends[number].buffer;
  return (TryRange){begin, begin + sizeof sends[number].buffer};
}

/* Each one's wait has something for a variable beside the next one's buffer, but for the last. */
static int wait_for(TryRequest* request) {
  const int number = request->bytes[0];
  ++waited[number];
  if (number < SENDS - 2) sends[number + 1].beside[0] = 1;
  return 0;
}

static void check(const char* what, int found, int wanted) {
  if (found == wanted) return;
  printf("%s: %d, wanted %d\n", what, found, wanted);
  wrong = 1;
}

static void put_off_all(void) {
  for (int i = 0; i < SENDS; ++i) {
    const TryEnvelope envelope = {(uintptr_t)&put_off_all, (uintptr_t)i, 1, 0, i};
    TryRequest request = {{0}};
    request.bytes[0] = (unsigned char)i;
    waited[i] = 0;
    if (!try_put_off(range_of(i), &envelope, &request)) check("put off", 0, 1);
  }
  check("put off", try_count, SENDS);
}

static void expect_all_but_the_last(const char* what) {
  check(what, try_count, 1);
  for (int i = 0; i < SENDS - 1; ++i) check(what, waited[i], 1);
  check(what, waited[SENDS - 1], 0);
}

int main(void) {
  try_start_pages(wait_for, (const void*)&printf);

  /* MPI writes beside the first one. */
  try_depth = 1;
  put_off_all();
  sends[0].beside[0] = 1;
  try_leave();
  expect_all_but_the_last("a chain behind a call");

  /* The last one is watched still. */
  sends[SENDS - 1].buffer[0] = 1;
  check("a write to the last buffer", try_count, 0);
  check("a write to the last buffer", waited[SENDS - 1], 1);

  /* The program writes to the first one. */
  try_depth = 1;
  put_off_all();
  try_leave();
  sends[0].buffer[0] = 1;
  expect_all_but_the_last("a chain behind a write");
  sends[SENDS - 1].beside[0] = 1;
  check("a write beside the last buffer", try_count, 0);

  if (!wrong) puts("ok");
  return wrong;
}
