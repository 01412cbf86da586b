/* rows: see rows.h. */
#include "rows.h"

#include <string.h>

enum {
  PLACE_BITS = 10,
  PLACES = 1 << PLACE_BITS,
  HALF = 1 << 15,      /* numbers of operations may be that far before the first one of a block */
  NO_KIND = UINT16_MAX /* of a shape that no event has */
};
_Static_assert(PLACES == (int)RECORD_PLACES && PLACES >= 2 * (int)RECORD_SHAPES, "room for all");

void record_empty_rows(RecordThread* me) {
  me->next = me->rows;
  me->limit = me->rows + RECORD_ROWS;
  me->shape_count = 0;
  me->far_rows = 0;
  memset(me->places, 0, sizeof me->places);
  /* The next event has no shape that is expected. */
  me->shapes[RECORD_SHAPES].kind = NO_KIND;
  me->behind[RECORD_SHAPES] = RECORD_SHAPES;
  me->at = RECORD_SHAPES;
  me->epoch += RECORD_EPOCH;
}

static bool is_same(const RecordShape* a, const RecordShape* b) {
  return memcmp(a, b, sizeof *a) == 0; /* it has no holes */
}

static size_t place_of(const RecordShape* shape) {
  uint64_t words[4], all = 0;
  memcpy(words, shape, sizeof words);
  for (int i = 0; i < 4; ++i) all = (all ^ words[i]) * 0x9e3779b97f4a7c15u;
  return (size_t)(all >> (64 - PLACE_BITS));
}

/* Its index, of a new one, too; RECORD_SHAPES: there are too many. */
static unsigned find_shape(RecordThread* me, const RecordShape* shape) {
  size_t at = place_of(shape);
  for (; me->places[at]; at = (at + 1) % PLACES) {
    const unsigned found = me->places[at] - 1u;
    /* Behind those that count is what layer_cost.h has left. */
    if (found < me->shape_count && is_same(&me->shapes[found], shape)) return found;
  }
  if (me->shape_count == RECORD_SHAPES) return RECORD_SHAPES;
  const unsigned made = me->shape_count++;
  me->shapes[made] = *shape;
  me->behind[made] = (uint16_t)made;
  me->places[at] = (uint16_t)(made + 1);
  return made;
}

bool record_add_row(RecordThread* me, const RecordEvent* event) {
  if (me->next == me->rows) {
    me->first = me->before = event->begin;
    me->last = event->end;
    if (event->request) me->requests = event->request - HALF;
  }
  const uint64_t since = event->begin - me->before, took = event->end - event->begin;
  /* Also of one that began before the one before it. */
  if ((since | took) >> 48 || event->end < me->last) return false;
  const bool completes = event->kind == RECORD_COMPLETION;
  const bool like_before =
      completes && me->next != me->rows && since == 0 && event->end == me->last;
  const bool far = !like_before && (completes || (uint32_t)(since | took) >> 16);
  if (me->limit - me->next < 1 + far) return false;
  const uint32_t request = event->request ? event->request - me->requests : 0;
  if (event->request && request - 1 >= UINT16_MAX) return false;
  const RecordShape shape = {.kind = event->kind,
                             .thread = event->thread,
                             .flags = event->flags,
                             .site = event->site,
                             .comm = event->comm,
                             .peer = event->peer,
                             .tag = event->tag,
                             .since = (uint16_t)(since >> 32),
                             .took = like_before ? 0 : (uint16_t)(took >> 32),
                             .bytes = event->bytes};
  const unsigned found = find_shape(me, &shape);
  if (found == RECORD_SHAPES) return false;
  if (me->at != RECORD_SHAPES) me->behind[me->at] = (uint16_t)found;
  RecordRow* row = me->next;
  if (far) {
    *row++ = (RecordRow){(uint16_t)(since >> 16), (uint16_t)(took >> 16), RECORD_FAR, 0};
    ++me->far_rows;
  }
  *row++ = (RecordRow){(uint16_t)since, like_before ? 0 : (uint16_t)took, (uint16_t)found,
                       (uint16_t)request};
  __atomic_store_n(&me->next, row, __ATOMIC_RELEASE); /* pairs with record_head_of */
  me->before = event->begin;
  me->last = event->end;
  me->at = (uint16_t)(me->vain.count ? RECORD_SHAPES : found);
  return true;
}

RecordBlockHead record_head_of(const RecordThread* of) {
  /* First the rows: all shapes of those that are seen are there. */
  const RecordRow* const next = __atomic_load_n(&of->next, __ATOMIC_ACQUIRE);
  const uint32_t rows = (uint32_t)(next - of->rows);
  uint32_t far = of->far_rows;
  if (of != record_me) { /* that one may have gone on since */
    far = 0;
    for (uint32_t i = 0; i < rows; ++i) far += of->rows[i].shape == RECORD_FAR;
  }
  return (RecordBlockHead){.rows = rows,
                           .shapes = __atomic_load_n(&of->shape_count, __ATOMIC_RELAXED),
                           .begin = of->first,
                           .requests = of->requests,
                           .events = rows - far};
}

uint64_t record_last_of(const RecordThread* of, const RecordBlockHead* head) {
  if (of == record_me) return of->last;
  /* That one may have gone on since. */
  uint64_t begin = head->begin, last = begin, since = 0, took = 0;
  bool far = false;
  for (uint32_t i = 0; i < head->rows; ++i) {
    const RecordRow* row = &of->rows[i];
    if (row->shape == RECORD_FAR) {
      since = (uint64_t)row->since << 16;
      took = (uint64_t)row->took << 16;
      far = true;
      continue;
    }
    const RecordShape* shape = &of->shapes[row->shape];
    if (shape->kind != RECORD_COMPLETION || far) {
      begin += since + row->since + ((uint64_t)shape->since << 32);
      const uint64_t end = begin + took + row->took + ((uint64_t)shape->took << 32);
      if (end > last) last = end;
    }
    since = took = 0;
    far = false;
  }
  return last;
}
